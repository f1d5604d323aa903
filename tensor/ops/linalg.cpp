/// Linear algebra of small matrices: factorisations, systems of equations, and functions composed of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops/detail/matrices.h"

namespace ferrite {

// ---- factorisations: Cholesky, QR, eigenvalues of symmetric matrices --------------------------------------

namespace detail {
namespace {

Tensor symmetric_part(const Tensor& x) { return 0.5 * (x + transpose(x)); }

struct Cholesky {
  static constexpr auto name = "cholesky", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "lower triangular L with L L^T = (A + A^T) / 2; refuses an A that is not positive definite";
  static constexpr Reads reads = reads_outputs;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const NoAttrs&) {
    check_square(name, in[0]);
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    const Tensor A = dense(in[0]);
    const std::int64_t n = A.shape()[-1];
    each_matrix(A, [&](std::int64_t i, auto zero) {
      using T = decltype(zero);
      Room<T> work(n * n);
      const Pivot bad =
          linalg_in_use.of<T>().cholesky(n, A.data<T>() + i * n * n, Writer::data<T>(out[0]) + i * n * n, work.get());
      if (bad.at >= 0)
        throw ValueError("cholesky: " + name_of_matrix(A.shape(), i) + " is not positive definite: pivot " +
                         std::to_string(bad.at) + " is " + Scalar(bad.value).str());
    });
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    const Tensor& L = v.out();
    const Tensor Lt = transpose(L);
    const Tensor P = weighted_triangles(matmul(Lt, v.grad()), 1, 0.5, 0);
    const Tensor half = call_solve_triangular(Lt, P, {.upper = true});             // L^-T P
    const Tensor S = call_solve_triangular(Lt, transpose(half), {.upper = true});  // L^-T P^T L^-1
    return {symmetric_part(S)};
  }
};

struct Qr {
  static constexpr auto name = "qr", onnx = "", stablehlo = "";
  static constexpr auto summary = "A = Q R, [..., m, n] -> [..., m, k], [..., k, n], k the smaller of m and n";
  static constexpr Reads reads{1, 0b11};

  static Specs infer(Inputs in, const NoAttrs&) {
    check_matrices(name, in[0]);
    const Shape& s = in[0].shape();
    const std::int64_t m = s[-2], n = s[-1], k = std::min(m, n);
    return {{with_axes(batch_shape(s), {m, k}), in[0].dtype()}, {with_axes(batch_shape(s), {k, n}), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    const Tensor A = dense(in[0]);
    const std::int64_t m = A.shape()[-2], n = A.shape()[-1], k = std::min(m, n);
    each_matrix(A, [&](std::int64_t i, auto zero) {
      using T = decltype(zero);
      Room<T> copy(m * n), work(m + n + k);
      std::copy_n(A.data<T>() + i * m * n, m * n, copy.get());
      linalg_in_use.of<T>().qr(m, n, copy.get(), Writer::data<T>(out[0]) + i * m * k,
                               Writer::data<T>(out[1]) + i * k * n, work.get());
    });
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    const Tensor &Q = v.out(0), &R = v.out(1), gQ = v.grad_or_zeros(0), gR = v.grad_or_zeros(1);
    const std::int64_t k = Q.shape()[-1], n = R.shape()[-1];
    if (n == k) return {of_tall(Q, R, gQ, gR)};
    const Tensor rest = slice(v.in(0), -1, k), gV = slice(gR, -1, k);
    const Tensor first = of_tall(Q, slice(R, -1, 0, k), gQ + matmul(rest, transpose(gV)), slice(gR, -1, 0, k));
    return {concat({first, matmul(Q, gV)}, -1)};
  }
  /// Returns the gradient for a matrix with at least as many rows as columns: (gQ + Q M) R^-T, M the symmetric matrix
  /// with the lower triangle of R gR^T - gQ^T Q.
  static Tensor of_tall(const Tensor& Q, const Tensor& R, const Tensor& gQ, const Tensor& gR) {
    const double least = R.dtype() == Dtype::f32 ? 0x1p-126 : 0x1p-1022;
    checked(detach(abs(diagonals(R))), least, std::numeric_limits<double>::infinity(),
            "gradient of qr: the leading columns are dependent: |pivot|");
    const Tensor M = weighted_triangles(matmul(R, transpose(gR)) - matmul(transpose(gQ), Q), 1, 0.5, 0);
    const Tensor total = gQ + matmul(Q, M + transpose(M));
    return transpose(call_solve_triangular(R, transpose(total), {.upper = true}));
  }
};

struct Eigh {
  static constexpr auto name = "eigh", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "eigenvalues, ascending, and eigenvectors, in columns, of (A + A^T) / 2, [..., n, n] -> [..., n], [..., n, n]";
  static constexpr Reads reads = reads_outputs;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const NoAttrs&) {
    check_square(name, in[0]);
    return {{batch_shape(in[0].shape(), 1), in[0].dtype()}, in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    const Tensor A = dense(in[0]);
    const std::int64_t n = A.shape()[-1];
    Room<double> a(n * n), w(n), v(n * n), work(4 * n);
    each_matrix(A, [&](std::int64_t index, auto zero) {
      using T = decltype(zero);
      const T* from = A.data<T>() + index * n * n;
      bool finite = true;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const double x = from[i * n + j], y = from[j * n + i];
          a.get()[i * n + j] = 0.5 * (x + y);
          finite = finite && std::isfinite(x);
        }
      if (!finite) throw ValueError("eigh: " + name_of_matrix(A.shape(), index) + " has elements that are not finite");
      eigh_in_use.get().eigh(n, a.get(), w.get(), v.get(), work.get());
      T *values = Writer::data<T>(out[0]) + index * n, *vectors = Writer::data<T>(out[1]) + index * n * n;
      for (std::int64_t i = 0; i < n; ++i) {
        values[i] = static_cast<T>(w.get()[i]);
        for (std::int64_t j = 0; j < n; ++j) vectors[j * n + i] = static_cast<T>(v.get()[i * n + j]);
      }
    });
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    const Tensor &w = v.out(0), &V = v.out(1);
    Tensor inner = diagonal_matrices(v.grad_or_zeros(0));
    if (v.grad(1).defined()) {
      // 1 / (w_j - w_i), 0 on the diagonal.
      const std::int64_t n = w.shape()[-1];
      const Tensor gap = unsqueeze(w, -2) - unsqueeze(w, -1) + eye(n, n, w.dtype());
      inner = inner + weighted_triangles(matmul(transpose(V), v.grad(1)) / gap, 1, 0, 1);
    }
    return {symmetric_part(matmul(matmul(V, inner), transpose(V)))};
  }
};

}  // namespace

}  // namespace detail

Tensor cholesky(const Tensor& A, bool upper) {
  const Tensor L = detail::call(detail::structured<detail::Cholesky>, {{&A}});
  return upper ? transpose(L) : L;
}

QrResult qr(const Tensor& A) {
  const Tensor* in[] = {&A};
  const Tensors out = detail::structured<detail::Qr>.apply(in);
  return {out[0], out[1]};
}

EighResult eigh(const Tensor& A) {
  const Tensor* in[] = {&A};
  const Tensors out = detail::structured<detail::Eigh>.apply(in);
  return {out[0], out[1]};
}

// ---- systems and determinants, by elimination and by substitution -----------------------------------------

namespace detail {

FERRITE_FLOAT_TABLES(LinalgKernels, linalg_kernels, linalg_in_use)
FERRITE_TABLES(EighKernels, eigh_kernels, eigh_in_use)

namespace {

/// Checks that two operands have equal batches, [..., n, n] and [..., n, m].
void check_system(std::string_view where, Inputs in) {
  check_square(where, in[0]);
  check_matrices(where, in[1]);
  if (in[0].dtype() != in[1].dtype())
    throw_dtype(where, "dtypes differ: " + in[0].spec().str() + " and " + in[1].spec().str() + "; cast one of them");
  if (in[0].shape()[-1] != in[1].shape()[-2] || batch_shape(in[0].shape()) != batch_shape(in[1].shape()))
    throw_shape(where, "the equations do not fit: " + in[0].shape().str() + " and " + in[1].shape().str());
}

/// Two operands expanded to the same batch.
struct System {
  Tensor A, B;
};
System broadcast_batches(std::string_view where, const Tensor& A, const Tensor& B) {
  const Shape batch = broadcast(batch_shape(A.shape()), batch_shape(B.shape()), where);
  return {expand(A, with_axes(batch, {A.shape()[-2], A.shape()[-1]})),
          expand(B, with_axes(batch, {B.shape()[-2], B.shape()[-1]}))};
}

struct SolveAttrs {
  Label who{};  ///< name for errors about singular matrices
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

/// Calls f(index, diagonal of the triangular factor, whether an odd number of rows was exchanged) for each matrix.
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

/// Returns the gradient of ln |det A|, scaled for each matrix.
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
        sign *= p > 0 ? T(1) : p < 0 ? T(-1) : p;                             // 0 and NaN
        total += static_cast<T>(std::log(static_cast<double>(std::abs(p))));  // rounded once
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

// ---- composed of factorisations, systems and products -----------------------------------------------------

namespace detail {
namespace {

Tensor identity_like(const Tensor& A) { return expand(eye(A.shape()[-1], A.shape()[-1], A.dtype()), A.shape()); }

struct Inverse {
  static constexpr auto name = "inverse", onnx = "", summary = "A^-1, [..., n, n]; refuses singular matrices";

  static Tensor parts(Inputs in, const NoAttrs&) { return call_solve(in[0], identity_like(in[0]), name_label()); }
  static Label name_label() { return "inverse"; }
};

struct Eigvalsh {
  static constexpr auto name = "eigvalsh", onnx = "", summary = "eigenvalues, ascending, of (A + A^T) / 2, [..., n]";

  static Tensor parts(Inputs in, const NoAttrs&) { return eigh(in[0]).eigenvalues; }
};

struct Lstsq {
  static constexpr auto name = "lstsq", onnx = "";
  static constexpr auto summary = "X of least sum((A X - B)^2), of full rank, [..., m, n], [..., m, k] -> [..., n, k]";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor &A = in[0], &B = in[1];
    const std::int64_t m = A.shape()[-2], n = A.shape()[-1];
    const auto [Q, R] = qr(m >= n ? A : transpose(A));
    if (R.numel() > 0) {
      const Tensor pivots = detach(abs(diagonals(R)));
      const double epsilon = A.dtype() == Dtype::f32 ? 0x1p-23 : 0x1p-52;
      const Tensor least = amin(pivots, {-1}), most = amax(pivots, {-1});
      checked(where(gt(most, 0), least / most, 0.0), epsilon * static_cast<double>(std::max(m, n)), 1.0,
              "lstsq: the rank is not full: smallest pivot by largest");
    }
    if (m >= n) return call_solve_triangular(R, matmul(transpose(Q), B), {.upper = true});
    return matmul(Q, call_solve_triangular(transpose(R), B, {.upper = false}));
  }
};

struct PowerAttrs {
  std::int64_t exponent = 1;
  static constexpr auto fields = attr_list(attr("exponent", &PowerAttrs::exponent));
};

struct MatrixPower {
  using Attributes = PowerAttrs;
  static constexpr auto name = "matrix_power", onnx = "";
  static constexpr auto summary = "A A ... A, [..., n, n]; the inverse's for negative exponents";

  static Tensor parts(Inputs in, const Attributes& a) {
    if (a.exponent == 0) return identity_like(in[0]);
    Tensor square = a.exponent < 0 ? call_solve(in[0], identity_like(in[0]), "matrix_power") : in[0], result;
    for (std::uint64_t n = a.exponent < 0 ? 0 - static_cast<std::uint64_t>(a.exponent)
                                          : static_cast<std::uint64_t>(a.exponent);
         n > 0; n /= 2) {
      if (n % 2 == 1) result = result.defined() ? matmul(result, square) : square;
      if (n > 1) square = matmul(square, square);
    }
    return result;
  }
};

struct MatrixNormAttrs {
  int norm = 0;
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("norm", &MatrixNormAttrs::norm), attr("keepdim", &MatrixNormAttrs::keepdim));
};

struct MatrixNorms {
  using Attributes = MatrixNormAttrs;
  static constexpr auto name = "matrix_norm", onnx = "";
  static constexpr auto summary =
      "root of the sum of squares, or an extreme sum of |a_ij| along an axis, of the last two";

  static bool along_columns(MatrixNorm n) { return n == MatrixNorm::one || n == MatrixNorm::minus_one; }
  static bool is_largest(MatrixNorm n) { return n == MatrixNorm::one || n == MatrixNorm::infinity; }
  static Tensor parts(Inputs in, const Attributes& a) {
    const auto norm = static_cast<MatrixNorm>(a.norm);
    Tensor y;
    if (norm == MatrixNorm::frobenius) {
      const Tensor squares = sum(square(in[0]), {-2, -1}, true), some = gt(squares, 0);
      y = where(some, sqrt(where(some, squares, 1.0)), squares);  // NaN is not above 0
    } else {
      const Tensor sums = sum(abs(in[0]), {along_columns(norm) ? -2 : -1}, true);
      const std::int64_t axis = along_columns(norm) ? -1 : -2;
      y = is_largest(norm) ? amax(sums, {axis}, true) : amin(sums, {axis}, true);
    }
    return a.keepdim ? y : reshape(y, batch_shape(in[0].shape()));
  }
};

}  // namespace

}  // namespace detail

using detail::composed;

Tensor inverse(const Tensor& A) {
  detail::check_square("inverse", A);
  return composed<detail::Inverse>({{&A}});
}

Tensor eigvalsh(const Tensor& A) {
  detail::check_square("eigvalsh", A);
  return composed<detail::Eigvalsh>({{&A}});
}

Tensor lstsq(const Tensor& A, const Tensor& B) {
  detail::check_matrices("lstsq", A);
  detail::check_matrices("lstsq", B);
  if (A.dtype() != B.dtype())
    detail::throw_dtype("lstsq", "dtypes differ: " + A.spec().str() + " and " + B.spec().str() + "; cast one of them");
  if (A.shape()[-2] != B.shape()[-2] || detail::batch_shape(A.shape()) != detail::batch_shape(B.shape()))
    detail::throw_shape("lstsq", "the equations do not fit: " + A.shape().str() + " and " + B.shape().str());
  return composed<detail::Lstsq>({{&A, &B}});
}

Tensor matrix_power(const Tensor& A, std::int64_t exponent) {
  detail::check_square("matrix_power", A);
  return composed<detail::MatrixPower>({{&A}}, {exponent});
}

Tensor matrix_norm(const Tensor& A, MatrixNorm norm, bool keepdim) {
  detail::check_matrices("matrix_norm", A);
  return composed<detail::MatrixNorms>({{&A}}, {static_cast<int>(norm), keepdim});
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family linalg_family() {
  static constexpr const Primitive* list[] = {&structured<Solve>,   &structured<SolveTriangular>, &structured<Det>,
                                              &structured<Slogdet>, &structured<Cholesky>,        &structured<Qr>,
                                              &structured<Eigh>};
  return list;
}

Family composite_linalg_family() {
  static constexpr const Primitive* list[] = {&composite<Inverse>, &composite<Eigvalsh>, &composite<Lstsq>,
                                              &composite<MatrixPower>, &composite<MatrixNorms>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
