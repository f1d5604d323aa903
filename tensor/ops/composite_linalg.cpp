/// Functions of small matrices that are composed of factorisations, systems and products.
#include <algorithm>

#include "ferrite/tensor/ops/detail/matrices.h"

namespace ferrite {
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

struct NormAttrs {
  int norm = 0;
  bool keepdim = false;
  static constexpr auto fields = attr_list(attr("norm", &NormAttrs::norm), attr("keepdim", &NormAttrs::keepdim));
};

struct MatrixNorms {
  using Attributes = NormAttrs;
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

Family composite_linalg_family() {
  static constexpr const Primitive* list[] = {&composite<Inverse>, &composite<Eigvalsh>, &composite<Lstsq>,
                                              &composite<MatrixPower>, &composite<MatrixNorms>};
  return list;
}

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

}  // namespace ferrite
