/// Products of matrices, vectors and tensors.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {

// ---- the matrix product -----------------------------------------------------------------------------------

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

/// Merges the leading axes into the rows where that takes no copy: one product instead of many.
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

/// The product a [..., M, K] . b [..., K, N] -> [..., M, N]; `matmul` makes matrices of vectors before.
struct MatMul {
  static constexpr auto name = "matmul", onnx = "MatMul", stablehlo = "dot_general";
  static constexpr TimeRule time = TimeRule::multiplies;
  static constexpr auto summary = "matrix product of the last two axes, leading axes broadcast";
  static constexpr Linearity linearity = Linearity::in_each;
  static constexpr Reads reads = reads_inputs;
  static constexpr Effects effects{};  // operands are read in place, and the workspace of a thread is allocated once

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

  /// Multiplies few rows by a matrix that is stored by columns, whose transposition costs as much as the product: from
  /// the second use on, it is read from a packed copy on its storage. Returns whether it was done.
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

// ---- composed of matmul, views and elementwise products ----------------------------------------------------

namespace detail {
namespace {

struct Outer {
  static constexpr auto name = "outer", onnx = "", summary = "a[i] b[j] of two vectors";

  static Tensor parts(Inputs in, const NoAttrs&) { return unsqueeze(in[0], 1) * in[1]; }
};

struct Cross {
  using Attributes = AxisAttrs;
  static constexpr auto name = "cross", onnx = "", summary = "vector product along an axis of extent 3";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensors x = unbind(in[0], a.axis), y = unbind(in[1], a.axis);
    return stack({x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]}, a.axis);
  }
};

/// Adds leading axes of extent 1 up to a rank.
Tensor led(const Tensor& x, int rank) {
  Shape s = Shape::filled(rank - x.rank(), 1);
  for (const std::int64_t e : x.shape()) s.push_back(e);
  return reshape(x, s);
}

struct Kron {
  static constexpr auto name = "kron", onnx = "",
                        summary = "Kronecker product: every element of a times the whole of b";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const int rank = std::max(in[0].rank(), in[1].rank());
    Tensor a = led(in[0], rank);
    const Tensor b = led(in[1], rank);
    const Shape counts = a.shape();
    for (int k = 0; k < rank; ++k)
      if (b.shape()[k] != 1) a = repeat_interleave(a, b.shape()[k], k);
    return a * tile(b, counts);
  }
};

struct TensordotAttrs {
  Shape a{}, b{};
  static constexpr auto fields = attr_list(attr("a", &TensordotAttrs::a), attr("b", &TensordotAttrs::b));
};

/// Returns the axes that are not in a list.
Shape others(int rank, const Shape& axes) {
  Shape out;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.push_back(i);
  return out;
}

struct Tensordot {
  using Attributes = TensordotAttrs;
  static constexpr auto name = "tensordot", onnx = "", summary = "sums products over axes of a and of b, in pairs";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape rows = others(in[0].rank(), a.a), columns = others(in[1].rank(), a.b);
    Shape left = rows, right = a.b, result;
    std::int64_t inner = 1, n = 1, m = 1;
    for (const std::int64_t k : a.a) {
      left.push_back(k);
      inner = checked_mul(inner, in[0].shape()[static_cast<int>(k)], name);
    }
    for (const std::int64_t k : rows) {
      result.push_back(in[0].shape()[static_cast<int>(k)]);
      n = checked_mul(n, result[-1], name);
    }
    for (const std::int64_t k : columns) {
      right.push_back(k);
      result.push_back(in[1].shape()[static_cast<int>(k)]);
      m = checked_mul(m, result[-1], name);
    }
    const Tensor x = reshape(permute(in[0], left), {n, inner}), y = reshape(permute(in[1], right), {inner, m});
    return reshape(matmul(x, y), result);
  }
};

struct VanderAttrs {
  std::int64_t n = 0;
  bool increasing = false;
  static constexpr auto fields = attr_list(attr("n", &VanderAttrs::n), attr("increasing", &VanderAttrs::increasing));
};

struct Vander {
  using Attributes = VanderAttrs;
  static constexpr auto name = "vander", onnx = "", summary = "powers 0..n - 1 of a vector as columns";

  static Tensor parts(Inputs in, const Attributes& a) {
    if (a.n == 0) return slice(unsqueeze(in[0], 1), 1, 0, 0);
    const Tensor exponents = a.increasing ? arange(0, a.n, 1, in[0].dtype()) : arange(a.n - 1, -1, -1, in[0].dtype());
    return pow(unsqueeze(in[0], 1), exponents);
  }
};

void check_ranks(std::string_view where, const Tensor& a, int rank_a, const Tensor& b, int rank_b) {
  if (a.rank() == rank_a && b.rank() == rank_b) return;
  throw_shape(where, "operands of ranks " + std::to_string(rank_a) + " and " + std::to_string(rank_b) +
                         " are needed, got " + a.shape().str() + " and " + b.shape().str());
}

}  // namespace

}  // namespace detail

using namespace detail;

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t n) {
  if (n < 0 || n > a.rank() || n > b.rank())
    throw ValueError("tensordot: the number of axes must lie in 0..the ranks of " + a.shape().str() + " and " +
                     b.shape().str() + ", got " + std::to_string(n));
  Shape of_a, of_b;
  for (std::int64_t k = 0; k < n; ++k) {
    of_a.push_back(a.rank() - n + k);
    of_b.push_back(k);
  }
  return tensordot(a, b, of_a, of_b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b) {
  check_float(a, "tensordot");
  if (axes_a.rank() != axes_b.rank())
    throw ValueError("tensordot: axes " + axes_a.str() + " and " + axes_b.str() + " are not as many");
  Shape of_a, of_b;
  for (const std::int64_t k : axes_a) of_a.push_back(axis_of(k, a.rank(), "tensordot"));
  for (const std::int64_t k : axes_b) of_b.push_back(axis_of(k, b.rank(), "tensordot"));
  check_axes("tensordot", of_a, a.rank());
  check_axes("tensordot", of_b, b.rank());
  for (int k = 0; k < of_a.rank(); ++k)
    if (a.shape()[static_cast<int>(of_a[k])] != b.shape()[static_cast<int>(of_b[k])])
      throw_shape("tensordot", "extents differ: axis " + std::to_string(of_a[k]) + " of " + a.shape().str() +
                                   " and axis " + std::to_string(of_b[k]) + " of " + b.shape().str());
  return composed<Tensordot>({{&a, &b}}, {of_a, of_b});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_ranks("outer", a, 1, b, 1);
  return composed<Outer>({{&a, &b}});
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_ranks("bmm", a, 3, b, 3);
  if (a.shape()[0] != b.shape()[0])
    throw_shape("bmm", "batches differ: " + a.shape().str() + " and " + b.shape().str());
  return matmul(a, b);
}

Tensor mv(const Tensor& matrix, const Tensor& vector) {
  check_ranks("mv", matrix, 2, vector, 1);
  return matmul(matrix, vector);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_ranks("dot", a, 1, b, 1);
  return matmul(a, b);
}

Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis) {
  const Shape common = broadcast(a.shape(), b.shape(), "cross");
  const int at = axis_of(axis, common.rank(), "cross");
  const int on_a = at - common.rank() + a.rank(), on_b = at - common.rank() + b.rank();
  if (on_a < 0 || on_b < 0 || a.shape()[on_a] != 3 || b.shape()[on_b] != 3)
    throw_shape("cross",
                "axis " + std::to_string(axis) + " must have extent 3: " + a.shape().str() + " and " + b.shape().str());
  const Tensor x = led(a, common.rank()), y = led(b, common.rank());
  return composed<Cross>({{&x, &y}}, {at});
}

Tensor kron(const Tensor& a, const Tensor& b) { return composed<Kron>({{&a, &b}}); }

Tensor vander(const Tensor& x, std::int64_t n, bool increasing) {
  check_float(x, "vander");
  if (x.rank() != 1) throw_shape("vander", "a vector is needed, got " + x.shape().str());
  if (n < -1) throw ValueError("vander: the number of powers must not be negative, got " + std::to_string(n));
  return composed<Vander>({{&x}}, {n < 0 ? x.numel() : n, increasing});
}

// ---- Einstein's summation, composed of diagonals, sums and batched matrix products ------------------------

namespace detail {
namespace {

/// The name of an axis: a letter, or -1, -2, ... for the axes of "...", counted from the last.
using Axis = int;
using Axes = std::vector<Axis>;

/// The axes of the operands and of the result. "..." is `ellipsis` until the ranks are known.
struct Equation {
  static constexpr Axis ellipsis = 0;
  std::vector<Axes> operands;
  Axes result;
  bool has_result = false;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& what) {
  throw ValueError("einsum: " + what + ": \"" + std::string(equation) + "\"");
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Equation parse(std::string_view text) {
  Equation e;
  Axes* side = &e.operands.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (is_letter(c)) {
      side->push_back(c);
    } else if (c == ',' && !e.has_result) {
      side = &e.operands.emplace_back();
    } else if (text.substr(i, 2) == "->" && !e.has_result) {
      e.has_result = true;
      side = &e.result;
      ++i;
    } else if (text.substr(i, 3) == "...") {
      if (std::ranges::count(*side, Equation::ellipsis) != 0) refuse(text, "one \"...\" for an operand is allowed");
      side->push_back(Equation::ellipsis);
      i += 2;
    } else {
      refuse(text, "'" + std::string(1, c) + "' stands where a letter, \",\", \"->\" or \"...\" may stand");
    }
  }
  return e;
}

/// Returns axes with those of "..." in place of its mark.
Axes spread(const Axes& side, int count) {
  Axes out;
  for (const Axis a : side) {
    if (a != Equation::ellipsis) out.push_back(a);
    if (a == Equation::ellipsis)
      for (int k = count; k > 0; --k) out.push_back(-k);
  }
  return out;
}

std::int64_t times(const Axes& axes, Axis a) { return std::ranges::count(axes, a); }
bool holds(const Axes& axes, Axis a) { return times(axes, a) != 0; }

/// Returns the letters that occur once, in order, after the axes of "...".
Axes implied_result(const Equation& e, int ellipsis_axes) {
  std::map<Axis, std::int64_t> seen;
  for (const Axes& operand : e.operands)
    for (const Axis a : operand) ++seen[a];
  Axes out = spread({Equation::ellipsis}, ellipsis_axes);
  for (const auto& [a, n] : seen)
    if (n == 1 && a != Equation::ellipsis) out.push_back(a);
  return out;
}

/// The extents of axes, by name, of all operands together.
using AxisExtents = std::map<Axis, std::int64_t>;

/// Returns the equation with "..." replaced by the axes that it denotes.
Equation resolved(std::string_view text, std::span<const Spec> operands) {
  Equation e = parse(text);
  if (e.operands.size() != operands.size())
    throw ValueError("einsum: \"" + std::string(text) + "\" has " + std::to_string(e.operands.size()) +
                     " operands, got " + std::to_string(operands.size()));
  int most = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const int letters = static_cast<int>(e.operands[k].size()) - holds(e.operands[k], Equation::ellipsis);
    const int rest = operands[k].shape.rank() - letters;
    if (rest < 0 || (rest > 0 && !holds(e.operands[k], Equation::ellipsis)))
      throw_shape("einsum", "operand " + std::to_string(k) + " of \"" + std::string(text) + "\" has the shape " +
                                operands[k].shape.str());
    e.operands[k] = spread(e.operands[k], rest);
    if (rest > most) most = rest;
  }
  e.result = e.has_result ? spread(e.result, most) : Axes();
  if (!e.has_result) e.result = implied_result(e, most);
  for (const Axis a : e.result) {
    bool known = false;
    for (const Axes& operand : e.operands) known |= holds(operand, a);
    if (a > 0 && !known)
      refuse(text, "no operand has the result's axis '" + std::string(1, static_cast<char>(a)) + "'");
    if (times(e.result, a) > 1)
      refuse(text, "the result has the axis '" + std::string(1, static_cast<char>(a)) + "' more than once");
  }
  if (static_cast<int>(e.result.size()) > Shape::kMaxRank)
    throw_shape("einsum", "the result of \"" + std::string(text) + "\" has more than 8 axes");
  return e;
}

AxisExtents extents_of(const Equation& e, std::string_view text, std::span<const Spec> operands) {
  AxisExtents all;
  for (std::size_t k = 0; k < operands.size(); ++k)
    for (std::size_t i = 0; i < e.operands[k].size(); ++i) {
      const std::int64_t n = operands[k].shape[static_cast<int>(i)];
      std::int64_t& common = all.try_emplace(e.operands[k][i], n).first->second;
      if (common == 1) common = n;
      if (n != common && n != 1)
        throw_shape("einsum", "extents " + std::to_string(common) + " and " + std::to_string(n) +
                                  " of one axis differ in \"" + std::string(text) + "\"");
    }
  return all;
}

/// A tensor and the names of its axes.
struct Named {
  Tensor x;
  Axes axes;
};

/// Drops the axis at `i`, which has extent 1.
void drop(Named& t, std::size_t i) {
  t.x = squeeze(t.x, static_cast<std::int64_t>(i));
  t.axes.erase(t.axes.begin() + static_cast<std::ptrdiff_t>(i));
}

/// Returns x with each axis once: takes diagonals, and drops extents of 1 that broadcast.
Named simplified(const Tensor& x, const Axes& axes, const AxisExtents& extents) {
  Named t{x, axes};
  for (std::size_t i = 0; i < t.axes.size();) {
    if (t.x.shape()[static_cast<int>(i)] == 1 && extents.at(t.axes[i]) != 1) {
      drop(t, i);
      continue;
    }
    const auto twin = std::find(t.axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.axes.end(), t.axes[i]);
    if (twin == t.axes.end()) {
      ++i;
      continue;
    }
    const auto j = twin - t.axes.begin();
    if (t.x.shape()[static_cast<int>(j)] == 1 && extents.at(t.axes[i]) != 1) {
      drop(t, static_cast<std::size_t>(j));
      continue;
    }
    const Axis both = t.axes[i];
    t.x = diagonal(t.x, 0, static_cast<std::int64_t>(i), j);
    t.axes.erase(twin);
    t.axes.erase(t.axes.begin() + static_cast<std::ptrdiff_t>(i));
    t.axes.push_back(both);
  }
  return t;
}

/// Sums over the axes that no other operand and no result needs.
void sum_alone(Named& t, const Axes& needed) {
  Shape over;
  Axes left;
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    if (holds(needed, t.axes[i])) {
      left.push_back(t.axes[i]);
    } else {
      over.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (over.rank()) t.x = sum(t.x, over);
  t.axes = left;
}

std::int64_t count(const Axes& axes, const AxisExtents& extents) {
  std::int64_t n = 1;
  for (const Axis a : axes) n = checked_mul(n, extents.at(a), "einsum");
  return n;
}

/// Returns the axes in this order, with each group merged into one.
Tensor grouped(const Named& t, std::initializer_list<const Axes*> groups, const AxisExtents& extents) {
  Shape order, shape;
  for (const Axes* group : groups) {
    for (const Axis a : *group) order.push_back(std::ranges::find(t.axes, a) - t.axes.begin());
    shape.push_back(count(*group, extents));
  }
  return reshape(permute(t.x, order), shape);
}

/// Returns the product of two operands, summed over the axes that both have and that are not needed further.
Named product(const Named& a, const Named& b, const Axes& needed, const AxisExtents& extents) {
  Axes batch, inner, rows, columns;
  for (const Axis x : a.axes) (!holds(b.axes, x) ? rows : holds(needed, x) ? batch : inner).push_back(x);
  for (const Axis x : b.axes)
    if (!holds(a.axes, x)) columns.push_back(x);
  const Tensor left = grouped(a, {&batch, &rows, &inner}, extents);
  const Tensor right = grouped(b, {&batch, &inner, &columns}, extents);
  Named out;
  out.axes = batch;
  out.axes.insert(out.axes.end(), rows.begin(), rows.end());
  out.axes.insert(out.axes.end(), columns.begin(), columns.end());
  if (out.axes.size() > Shape::kMaxRank)
    throw_shape("einsum", "a product of two operands has " + std::to_string(out.axes.size()) +
                              " axes, more than 8; sum some of them or change the order of the operands");
  Shape shape;
  for (const Axis x : out.axes) shape.push_back(extents.at(x));
  out.x = reshape(inner.empty()   ? left * right
                  : batch.empty() ? matmul(select(left, 0, 0), select(right, 0, 0))
                                  : matmul(left, right),
                  shape);
  return out;
}

struct EinsumAttrs {
  Label equation{};
  static constexpr auto fields = attr_list(attr("equation", &EinsumAttrs::equation));
};

std::vector<Spec> specs_of(Inputs in) {
  std::vector<Spec> specs;
  for (std::size_t k = 0; k < in.size(); ++k) specs.push_back(in[k].spec());
  return specs;
}

struct Einsum {
  using Attributes = EinsumAttrs;
  static constexpr auto name = "einsum", onnx = "Einsum";
  static constexpr auto summary = "sum of products along axes by letter (Einstein's summation)";

  static Tensor parts(Inputs in, const Attributes& a) {
    const std::vector<Spec> specs = specs_of(in);
    const Equation e = resolved(a.equation.text(), specs);
    const AxisExtents extents = extents_of(e, a.equation.text(), specs);
    std::vector<Named> operands;
    for (std::size_t k = 0; k < in.size(); ++k) operands.push_back(simplified(in[k], e.operands[k], extents));
    /// The axes of the result and of the operands from k on, except operand `but`.
    const auto needed = [&](std::size_t k, std::size_t but) {
      Axes all = e.result;
      for (; k < operands.size(); ++k)
        if (k != but) all.insert(all.end(), operands[k].axes.begin(), operands[k].axes.end());
      return all;
    };
    for (std::size_t k = 0; k < operands.size(); ++k) sum_alone(operands[k], needed(0, k));
    Named total = operands[0];
    for (std::size_t k = 1; k < operands.size(); ++k) total = product(total, operands[k], needed(k + 1, k), extents);
    sum_alone(total, e.result);
    // An axis of the result that every operand has with extent 1 was never dropped: all are there.
    Shape order;
    for (const Axis x : e.result) order.push_back(std::ranges::find(total.axes, x) - total.axes.begin());
    return permute(total.x, order);
  }
};

}  // namespace

}  // namespace detail

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  std::vector<Spec> specs;
  for (const Tensor& x : operands) {
    check_float(x, "einsum");
    if (x.dtype() != operands[0].dtype())
      throw_dtype("einsum", "dtypes differ: " + operands[0].spec().str() + " and " + x.spec().str());
    specs.push_back(x.spec());
  }
  (void)extents_of(resolved(equation, specs), equation, specs);
  return composed<Einsum>(OperandList(operands), {Label::of(equation)});
}
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family composite_product_family() {
  static constexpr const Primitive* list[] = {&composite<Einsum>, &composite<Outer>,     &composite<Cross>,
                                              &composite<Kron>,   &composite<Tensordot>, &composite<Vander>};
  return list;
}

Family product_family() {
  static constexpr const Primitive* list[] = {&structured<MatMul>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
