/// Systems of linear equations and determinants, by Gaussian elimination and by substitution.
#include <cmath>
#include <limits>

#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops/detail/matrices.h"
#include "ferrite/tensor/pooled.h"

namespace ferrite {
namespace detail {

FERRITE_FLOAT_TABLES(LinalgKernels, linalg_kernels, linalg_in_use)
FERRITE_TABLES(EighKernels, eigh_kernels, eigh_in_use)

namespace {

/// Two operands of equal batches, [..., n, n] and [..., n, m].
void check_system(std::string_view where, Inputs in) {
  check_square(where, in[0]);
  check_matrices(where, in[1]);
  if (in[0].dtype() != in[1].dtype())
    throw_dtype(where, "dtypes differ: " + in[0].spec().str() + " and " + in[1].spec().str() + "; cast one of them");
  if (in[0].shape()[-1] != in[1].shape()[-2] || batch_shape(in[0].shape()) != batch_shape(in[1].shape()))
    throw_shape(where, "the equations do not fit: " + in[0].shape().str() + " and " + in[1].shape().str());
}

/// Both with the same batch.
struct System {
  Tensor A, B;
};
System broadcast_batches(std::string_view where, const Tensor& A, const Tensor& B) {
  const Shape batch = broadcast(batch_shape(A.shape()), batch_shape(B.shape()), where);
  return {expand(A, with_axes(batch, {A.shape()[-2], A.shape()[-1]})),
          expand(B, with_axes(batch, {B.shape()[-2], B.shape()[-1]}))};
}

struct SolveAttrs {
  Label who{};  ///< in whose name singular matrices are refused
  static constexpr auto fields = attr_list(attr("who", &SolveAttrs::who));
};

struct Solve {
  using Attributes = SolveAttrs;
  static constexpr auto name = "solve", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "X with A X = B, A [..., n, n], B [..., n, m]; refuses a singular A in the name of `who`";
  static constexpr Reads reads{0b01, 1};
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    check_system(a.who.empty() ? name : a.who.text(), in);
    return {in[1].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const Tensor A = dense(in[0]), B = dense(in[1]);
    const std::int64_t n = A.shape()[-1], m = B.shape()[-1];
    PooledVector<std::int64_t> rows;
    rows.resize(static_cast<std::size_t>(n));
    each_matrix(A, [&](std::int64_t i, auto zero) {
      using T = decltype(zero);
      Room<T> factors(n * n);
      std::copy_n(A.data<T>() + i * n * n, n * n, factors.get());
      const Pivot bad = linalg_in_use.of<T>().lu(n, factors.get(), rows.data());
      if (bad.at >= 0)
        throw ValueError(std::string(attrs.who.empty() ? name : attrs.who.text()) + ": " +
                         name_of_matrix(A.shape(), i) + " is singular: pivot " + std::to_string(bad.at) + " is " +
                         (bad.value == 0 ? "0" : "nan"));
      T* x = Writer::data<T>(out[0]) + i * n * m;
      std::copy_n(B.data<T>() + i * n * m, n * m, x);
      linalg_in_use.of<T>().lu_solve(n, m, factors.get(), rows.data(), x);
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const Tensor g = call_solve(transpose(v.in(0)), v.grad(), a.who);
    return {v.wants(0) ? -matmul(g, transpose(v.out())) : Tensor(), g};
  }
};

struct TriangleAttrs {
  bool upper = false, unit = false;
  static constexpr auto fields = attr_list(attr("upper", &TriangleAttrs::upper), attr("unit", &TriangleAttrs::unit));
};

struct SolveTriangular {
  using Attributes = TriangleAttrs;
  static constexpr auto name = "solve_triangular", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "X with A X = B, of A's lower or upper triangle, whose diagonal may be taken for ones; by substitution";
  static constexpr Reads reads{0b01, 1};

  static Specs infer(Inputs in, const Attributes&) {
    check_system(name, in);
    return {in[1].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const Tensor A = dense(in[0]), B = dense(in[1]);
    const std::int64_t n = A.shape()[-1], m = B.shape()[-1];
    each_matrix(A, [&](std::int64_t i, auto zero) {
      using T = decltype(zero);
      T* x = Writer::data<T>(out[0]) + i * n * m;
      std::copy_n(B.data<T>() + i * n * m, n * m, x);
      linalg_in_use.of<T>().solve_triangular(n, m, A.data<T>() + i * n * n, x, {attrs.upper, attrs.unit});
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const Tensor g = call_solve_triangular(transpose(v.in(0)), v.grad(), {!a.upper, a.unit});
    if (!v.wants(0)) return {Tensor(), g};
    const Tensor all = -matmul(g, transpose(v.out()));
    return {weighted_triangles(all, a.upper ? 0 : 1, a.unit ? 0 : 1, a.upper ? 1 : 0), g};
  }
};

/// f(index, diagonal of the triangular factor, whether an odd number of rows was exchanged) for each matrix.
template <class F>
void each_elimination(const Tensor& x, const F& f) {
  const Tensor A = dense(x);
  const std::int64_t n = A.shape()[-1];
  PooledVector<std::int64_t> rows;
  rows.resize(static_cast<std::size_t>(n));
  each_matrix(A, [&](std::int64_t i, auto zero) {
    using T = decltype(zero);
    Room<T> factors(n * n);
    std::copy_n(A.data<T>() + i * n * n, n * n, factors.get());
    linalg_in_use.of<T>().lu(n, factors.get(), rows.data());
    bool odd = false;
    for (std::int64_t k = 0; k < n; ++k) odd ^= rows[static_cast<std::size_t>(k)] != k;
    f(
        i, [&](std::int64_t k) { return factors.get()[k * n + k]; }, odd, zero);
  });
}

/// The gradient of ln |det A|, scaled for each matrix.
Tensor scaled_inverse(const Tensor& A, const Tensor& scale, Label who) {
  const Tensor I = expand(eye(A.shape()[-1], A.shape()[-1], A.dtype()), A.shape());
  return unsqueeze(unsqueeze(scale, -1), -1) * transpose(call_solve(A, I, who));
}

struct Det {
  static constexpr auto name = "det", onnx = "Det", stablehlo = "";
  static constexpr auto summary = "determinants, [..., n, n] -> [...]";
  static constexpr Reads reads{1, 1};

  static Specs infer(Inputs in, const NoAttrs&) {
    check_square(name, in[0]);
    return {{batch_shape(in[0].shape()), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    each_elimination(in[0], [&](std::int64_t i, const auto& pivot, bool odd, auto zero) {
      using T = decltype(zero);
      T product = odd ? T(-1) : T(1);
      for (std::int64_t k = 0; k < in[0].shape()[-1]; ++k) product *= pivot(k);
      Writer::data<T>(out[0])[i] = product;
    });
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    return {scaled_inverse(v.in(0), v.grad() * v.out(), "gradient of det")};
  }
};

struct Slogdet {
  static constexpr auto name = "slogdet", onnx = "", stablehlo = "";
  static constexpr auto summary = "sign and ln of the absolute value of determinants, [..., n, n] -> [...], [...]";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const NoAttrs&) {
    check_square(name, in[0]);
    const Spec s{batch_shape(in[0].shape()), in[0].dtype()};
    return {s, s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    each_elimination(in[0], [&](std::int64_t i, const auto& pivot, bool odd, auto zero) {
      using T = decltype(zero);
      T sign = odd ? T(-1) : T(1), total = 0;
      for (std::int64_t k = 0; k < in[0].shape()[-1]; ++k) {
        const T p = pivot(k);
        sign *= p > 0 ? T(1) : p < 0 ? T(-1) : p;  // 0 and NaN
        total += std::log(std::abs(p));
      }
      Writer::data<T>(out[0])[i] = sign;
      Writer::data<T>(out[1])[i] = sign == 0 ? -std::numeric_limits<T>::infinity() : total;
    });
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    if (!v.grad(1).defined()) return {zeros_like(v.in(0))};
    return {scaled_inverse(v.in(0), v.grad(1), "gradient of slogdet")};
  }
};

}  // namespace

Tensor call_solve(const Tensor& A, const Tensor& B, Label who) {
  return call(structured<Solve>, {{&A, &B}}, SolveAttrs{who});
}
Tensor call_solve_triangular(const Tensor& A, const Tensor& B, Triangle triangle) {
  return call(structured<SolveTriangular>, {{&A, &B}}, TriangleAttrs{triangle.upper, triangle.unit});
}

Family linear_system_family() {
  static constexpr const Primitive* list[] = {&structured<Solve>, &structured<SolveTriangular>, &structured<Det>,
                                              &structured<Slogdet>};
  return list;
}

}  // namespace detail

Tensor solve(const Tensor& A, const Tensor& B) {
  detail::check_square("solve", A);
  const Shape& s = B.shape();
  const bool vector = s.rank() == 1 || (s.rank() + 1 == A.rank() && s == detail::batch_shape(A.shape(), 1));
  if (!vector) detail::check_matrices("solve", B);
  const auto [a, b] = detail::broadcast_batches("solve", A, vector ? unsqueeze(B, -1) : B);
  const Tensor x = detail::call_solve(a, b, {});
  return vector ? squeeze(x, -1) : x;
}

Tensor solve_triangular(const Tensor& A, const Tensor& B, const TriangularOptions& o) {
  detail::check_square("solve_triangular", A);
  detail::check_matrices("solve_triangular", B);
  const auto [a, b] =
      detail::broadcast_batches("solve_triangular", o.left ? A : transpose(A), o.left ? B : transpose(B));
  const Tensor x = detail::call_solve_triangular(a, b, {o.upper == o.left, o.unit_diagonal});
  return o.left ? x : transpose(x);
}

Tensor det(const Tensor& A) { return detail::call(detail::structured<detail::Det>, {{&A}}); }

SlogdetResult slogdet(const Tensor& A) {
  const Tensor* in[] = {&A};
  const Tensors out = detail::structured<detail::Slogdet>.apply(in);
  return {out[0], out[1]};
}

}  // namespace ferrite
