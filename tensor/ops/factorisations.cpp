/// Factorisations of small matrices: Cholesky, QR, eigenvalues of symmetric ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/ops/detail/matrices.h"

namespace ferrite {
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
  /// Of a matrix with at least as many rows as columns: (gQ + Q M) R^-T, M the symmetric matrix with the lower triangle
  /// of R gR^T - gQ^T Q.
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

Family factorisation_family() {
  static constexpr const Primitive* list[] = {&structured<Cholesky>, &structured<Qr>, &structured<Eigh>};
  return list;
}

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

}  // namespace ferrite
