/// The matrix product.
#include "ferrite/tensor/kernel/product.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {
namespace detail {
namespace {

/// An operand of a product as a batch of matrices.
struct Batch {
  Shape lead;  ///< extents before the last two axes
  Shape lead_strides;
  std::int64_t rows, columns;
  std::int64_t row, column;  ///< strides
};

Batch batch_of(const Tensor& x) {
  Batch b;
  const int r = x.rank();
  for (int i = 0; i + 2 < r; ++i) {
    b.lead.push_back(x.shape()[i]);
    b.lead_strides.push_back(x.strides()[i]);
  }
  b.rows = x.shape()[r - 2];
  b.columns = x.shape()[r - 1];
  b.row = x.strides()[r - 2];
  b.column = x.strides()[r - 1];
  return b;
}

/// Makes the leading axes part of the rows where that takes no copy: one product instead of many.
void fold_lead(Batch& a) {
  Walk<1> merged;
  for (int i = 0; i < a.lead.rank(); ++i) merged.push(a.lead[i], {a.lead_strides[i]});
  if (a.rows != 1) merged.push(a.rows, {a.row});
  if (merged.shape.rank() > 1) return;
  a.rows = merged.shape.rank() ? merged.shape[0] : 1;
  a.row = merged.shape.rank() ? merged.strides[0][0] : a.columns;
  a.lead = {};
  a.lead_strides = {};
}

[[noreturn]] void throw_inner(const Shape& a, const Shape& b) {
  throw_shape("matmul", "inner extents differ: " + a.str() + " . " + b.str());
}

/// a [..., M, K] . b [..., K, N] -> [..., M, N]; vectors are made matrices by `matmul` before.
struct MatMul {
  static constexpr auto name = "matmul", onnx = "MatMul", stablehlo = "dot_general";
  static constexpr TimeRule time = TimeRule::multiplies;
  static constexpr auto summary = "matrix product of the last two axes, leading axes broadcast";
  static constexpr Linearity linearity = Linearity::in_each;
  static constexpr Reads reads = reads_inputs;
  static constexpr Effects effects{};  // operands are read where they lie, and the room of a thread is taken once

  static Specs infer(Inputs in, const NoAttrs&) {
    const Shape& a = in[0].shape();
    const Shape& b = in[1].shape();
    const Dtype dtype = in[0].dtype();
    if (dtype != in[1].dtype())
      throw_dtype(name, "dtypes differ: " + in[0].spec().str() + " and " + in[1].spec().str() + "; cast one of them");
    if (!is_float(dtype))
      throw_dtype(name, "dtype " + std::string(name_of(dtype)) + " is not supported; cast to a float");
    if (a[-1] != b[-2]) throw_inner(a, b);
    Specs out;
    Spec& s = out.emplace_back();
    s.dtype = dtype;
    if (a.rank() > 2) s.shape = lead(a);
    if (b.rank() > 2) s.shape = broadcast(s.shape, lead(b), name);
    s.shape.push_back(a[-2]);
    s.shape.push_back(b[-1]);
    return out;
  }

  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    if (out[0].dtype() == Dtype::f32) {
      product<float>(in[0], in[1], out[0]);
    } else {
      product<double>(in[0], in[1], out[0]);
    }
  }

  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const NoAttrs&) {
    return out[0].shape.numel() * in[0].shape[-1];
  }

  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    Tensors g(2);
    const Tensor& a = v.in(0);
    const Tensor& b = v.in(1);
    if (v.wants(0)) g[0] = matmul(v.grad(), transpose(b));
    if (!v.wants(1)) return g;
    if (b.rank() == 2 && a.rank() > 2) {  // one product over all rows, not a batch of them and a sum
      g[1] = matmul(transpose(reshape(a, {-1, a.shape()[-1]})), reshape(v.grad(), {-1, v.grad().shape()[-1]}));
    } else {
      g[1] = matmul(transpose(a), v.grad());
    }
    return g;
  }

 private:
  static Shape lead(const Shape& s) {
    Shape out;
    for (int i = 0; i + 2 < s.rank(); ++i) out.push_back(s[i]);
    return out;
  }

  template <class T>
  static void product(const Tensor& x, const Tensor& y, Tensor& out) {
    if (out.numel() == 0) return;
    T* c = Writer::data<T>(out);
    if (x.rank() == 2 && y.rank() == 2 && by_packed_columns<T>(x, y, c)) return;
    if (x.rank() == 2 && y.rank() == 2)
      return one<T>(x.shape()[0], y.shape()[1], x.shape()[1], x.data<T>(), x.strides(), y.data<T>(), y.strides(), c);
    Batch a = batch_of(x);
    const Batch b = batch_of(y);
    if (b.lead.rank() == 0) fold_lead(a);
    if (a.lead.rank() == 0 && b.lead.rank() == 0)
      return gemm<T>(a.rows, b.columns, a.columns, {x.data<T>(), a.row, a.column}, {y.data<T>(), b.row, b.column}, c,
                     b.columns);
    batched(x.data<T>(), a, y.data<T>(), b, c);
  }

  /// Few rows times a matrix that lies by columns, whose transposition costs as much as the product: used again, it is
  /// read from a packed copy on its storage. Whether it could be.
  template <class T>
  static bool by_packed_columns(const Tensor& x, const Tensor& y, T* c) {
    constexpr std::int64_t kFewRows = 8, kWorthPacking = 4096;
    const std::int64_t M = x.shape()[0], K = y.shape()[0], N = y.shape()[1];
    if (M > kFewRows || y.strides()[0] != 1 || y.strides()[1] == 1 || x.strides()[1] != 1 || K * N < kWorthPacking)
      return false;
    if (y.impl()->storage->rewritten || (thread_count() > 1 && M * K * N >= kWorthSharing)) return false;
    const void* pack = find_pack(y, pack_key(y, 1));
    if (!pack) {
      if (count_use(y) == 0) return false;
      pack = column_pack<T>(y);
    }
    const GateMatrix<T> matrix = packed_gates(static_cast<const T*>(pack), K, 1, N);
    products_in_use.of<T>().packed_product(matrix, M, x.data<T>(), x.strides()[0], nullptr, c);
    return true;
  }

  template <class T>
  static void one(std::int64_t M, std::int64_t N, std::int64_t K, const T* a, const Shape& as, const T* b,
                  const Shape& bs, T* c) {
    gemm<T>(M, N, K, {a, as[0], as[1]}, {b, bs[0], bs[1]}, c, N);
  }

  template <class T>
  static void batched(const T* x, const Batch& a, const T* y, const Batch& b, T* c) {
    const Shape lead = broadcast(a.lead, b.lead, name);
    const Shape sa = broadcast_strides(a.lead, a.lead_strides, lead);
    const Shape sb = broadcast_strides(b.lead, b.lead_strides, lead);
    Walk<2> walk;
    for (int i = 0; i < lead.rank(); ++i) walk.push(lead[i], {sa[i], sb[i]});
    walk.rows([&](const std::int64_t* at, std::int64_t n, const std::int64_t* step) {
      for (std::int64_t i = 0; i < n; ++i) {
        gemm<T>(a.rows, b.columns, a.columns, {x + at[0] + i * step[0], a.row, a.column},
                {y + at[1] + i * step[1], b.row, b.column}, c, b.columns);
        c += a.rows * b.columns;
      }
    });
  }
};

Tensor product_of_matrices(const Tensor& a, const Tensor& b) { return call(structured<MatMul>, {{&a, &b}}); }

static_assert(kMostTermsAdded == kBlockK);

template <class T>
void add_matrices(const Tensor& a, const Tensor& b, Tensor& total) {
  const std::int64_t N = b.shape()[1];
  gemm<T>(a.shape()[0], N, a.shape()[1], {a.data<T>(), a.strides()[0], a.strides()[1]},
          {b.data<T>(), b.strides()[0], b.strides()[1]}, Writer::data<T>(total), N, true);
}

}  // namespace

void add_product(const Tensor& a, const Tensor& b, Tensor& total) {
  if (total.dtype() == Dtype::f32) return add_matrices<float>(a, b, total);
  add_matrices<double>(a, b, total);
}

namespace ops {
constinit const Primitive* const matmul = &structured<MatMul>;
}  // namespace ops

Family product_family() {
  static constexpr const Primitive* list[] = {&structured<MatMul>};
  return list;
}

}  // namespace detail

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.rank() >= 2 && b.rank() >= 2) return detail::product_of_matrices(a, b);
  if (a.rank() == 0 || b.rank() == 0)
    detail::throw_shape("matmul", "operands need at least one axis: " + a.shape().str() + " . " + b.shape().str() +
                                      "; multiply by a number with *");
  if (a.shape()[-1] != b.shape()[b.rank() == 1 ? -1 : -2]) detail::throw_inner(a.shape(), b.shape());
  Tensor y = detail::product_of_matrices(a.rank() == 1 ? unsqueeze(a, 0) : a, b.rank() == 1 ? unsqueeze(b, 1) : b);
  if (b.rank() == 1) y = squeeze(y, -1);
  return a.rank() == 1 ? squeeze(y, b.rank() == 1 ? -1 : -2) : y;
}

}  // namespace ferrite
