// Oracles and samples of tensor/ops/linalg.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/matrices.h"

namespace oracles::composite_linalg {
namespace {

/// Returns an element of one matrix of a batch.
double element(const Dense& a, std::int64_t index, std::int64_t i, std::int64_t j) {
  return a.values[static_cast<std::size_t>((index * a.shape[-2] + i) * a.shape[-1] + j)];
}

double& element(Dense& a, std::int64_t index, std::int64_t i, std::int64_t j) {
  return a.values[static_cast<std::size_t>((index * a.shape[-2] + i) * a.shape[-1] + j)];
}

std::int64_t matrices_in(const Dense& a) { return batch_shape(a.shape).numel(); }

/// Replaces a [n, n] by its inverse, by Gauss-Jordan without exchanges; its leading submatrices must not be singular.
void invert(std::vector<double>& a, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a[k * n + k];
    a[k * n + k] = 1;
    for (std::size_t j = 0; j < n; ++j) a[k * n + j] /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k];
      a[i * n + k] = 0;
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
}

std::vector<double> matrix(const Dense& a, std::int64_t index) {
  const std::int64_t size = a.shape[-2] * a.shape[-1];
  const auto begin = a.values.begin() + index * size;
  return {begin, begin + size};
}

const std::vector<double> kMatrices = {2, 0.5, -1, 0.25, 3, 1, -0.5, 1, -2.5, 0.5, -2, 1.5, 0.75, -1, 4, -0.5, 0.25};

struct Inverse {
  static constexpr auto name = "inverse";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const std::int64_t n = in[0].shape[-1];
    for (std::int64_t index = 0; index < matrices_in(in[0]); ++index) {
      std::vector<double> a = matrix(in[0], index);
      invert(a, static_cast<std::size_t>(n));
      std::copy(a.begin(), a.end(), out[0].values.begin() + index * n * n);
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}}, .values = kMatrices},
            {.inputs = {{{2, 2, 2}}}, .values = kMatrices},
            {.inputs = {{{0, 2, 2}}}},
            {.inputs = {{{0, 0}}}}};
  }
};

struct Eigvalsh {
  static constexpr auto name = "eigvalsh";
  /// Computes 2 x 2 matrices in closed form.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t index = 0; index < matrices_in(in[0]); ++index) {
      const std::vector<double> a = matrix(in[0], index);
      const double middle = (a[0] + a[3]) / 2, radius = std::hypot((a[0] - a[3]) / 2, (a[1] + a[2]) / 2);
      out[0].values[static_cast<std::size_t>(2 * index)] = middle - radius;
      out[0].values[static_cast<std::size_t>(2 * index + 1)] = middle + radius;
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 2}}}, .values = {2, 0.5, 1, -1}},
            {.inputs = {{{2, 2, 2}}}, .values = kMatrices},
            {.inputs = {{{0, 2, 2}}}}};
  }
};

struct Lstsq {
  static constexpr auto name = "lstsq";
  /// Computes (A^T A)^-1 A^T B, or A^T (A A^T)^-1 B.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const Dense &A = in[0], &B = in[1];
    const std::int64_t m = A.shape[-2], n = A.shape[-1], k = std::min(m, n), columns = B.shape[-1];
    const bool tall = m >= n;
    for (std::int64_t index = 0; index < matrices_in(A); ++index) {
      std::vector<double> squares(static_cast<std::size_t>(k * k));
      const auto a = [&](std::int64_t i, std::int64_t j) {
        return tall ? element(A, index, i, j) : element(A, index, j, i);
      };
      for (std::int64_t i = 0; i < k * k; ++i)
        for (std::int64_t l = 0; l < std::max(m, n); ++l)
          squares[static_cast<std::size_t>(i)] += a(l, i / k) * a(l, i % k);
      invert(squares, static_cast<std::size_t>(k));
      const auto inverse = [&](std::int64_t i, std::int64_t j) { return squares[static_cast<std::size_t>(i * k + j)]; };
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t c = 0; c < columns; ++c) {
          double total = 0;
          for (std::int64_t l = 0; l < m; ++l)
            for (std::int64_t j = 0; j < k; ++j)
              total += tall ? inverse(i, j) * a(l, j) * element(B, index, l, c)
                            : a(i, j) * inverse(j, l) * element(B, index, l, c);
          element(out[0], index, i, c) = total;
        }
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 2}}, {{4, 3}}}, .values = kMatrices},
            {.inputs = {{{2, 3}}, {{2, 1}}}, .values = kMatrices},
            {.inputs = {{{2, 2, 2}}, {{2, 2, 1}}}, .values = kMatrices},
            {.inputs = {{{0, 3, 2}}, {{0, 3, 1}}}}};
  }
};

struct PowerAttrs {
  std::int64_t exponent = 1;
  static constexpr auto fields = attr_list(attr("exponent", &PowerAttrs::exponent));
};

struct MatrixPower {
  using Attributes = PowerAttrs;
  static constexpr auto name = "matrix_power";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const std::int64_t n = in[0].shape[-1];
    for (std::int64_t index = 0; index < matrices_in(in[0]); ++index) {
      std::vector<double> a = matrix(in[0], index);
      if (attrs.exponent < 0) invert(a, static_cast<std::size_t>(n));
      std::vector<double> total(a.size());
      for (std::int64_t i = 0; i < n; ++i) total[static_cast<std::size_t>(i * n + i)] = 1;
      for (std::int64_t step = 0; step < std::abs(attrs.exponent); ++step) {
        std::vector<double> next(a.size());
        for (std::int64_t i = 0; i < n * n; ++i)
          for (std::int64_t k = 0; k < n; ++k)
            next[static_cast<std::size_t>(i)] +=
                total[static_cast<std::size_t>(i / n * n + k)] * a[static_cast<std::size_t>(k * n + i % n)];
        total = next;
      }
      std::copy(total.begin(), total.end(), out[0].values.begin() + index * n * n);
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}}, .attrs = PowerAttrs{5}, .range = {-1, 1}},
            {.inputs = {{{2, 2}}}, .attrs = PowerAttrs{1}},
            {.inputs = {{{2, 2}}}, .attrs = PowerAttrs{-3}, .values = kMatrices},
            {.inputs = {{{0, 2, 2}}}, .attrs = PowerAttrs{2}}};
  }
};

struct NormAttrs {
  int norm = 0;
  bool keepdim = false;
  static constexpr auto fields = attr_list(attr("norm", &NormAttrs::norm), attr("keepdim", &NormAttrs::keepdim));
};

struct MatrixNorms {
  using Attributes = NormAttrs;
  static constexpr auto name = "matrix_norm";
  static bool along_columns(MatrixNorm n) { return n == MatrixNorm::one || n == MatrixNorm::minus_one; }
  static bool is_largest(MatrixNorm n) { return n == MatrixNorm::one || n == MatrixNorm::infinity; }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto norm = static_cast<MatrixNorm>(a.norm);
    const std::int64_t m = in[0].shape[-2], n = in[0].shape[-1];
    for (std::int64_t index = 0; index < matrices_in(in[0]); ++index) {
      std::vector<double> sums(static_cast<std::size_t>(along_columns(norm) ? n : m));
      double squares = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const double x = element(in[0], index, i, j);
          squares += x * x;
          sums[static_cast<std::size_t>(along_columns(norm) ? j : i)] += std::fabs(x);
        }
      out[0].values[static_cast<std::size_t>(index)] = norm == MatrixNorm::frobenius ? std::sqrt(squares)
                                                       : is_largest(norm) ? *std::max_element(sums.begin(), sums.end())
                                                                          : *std::min_element(sums.begin(), sums.end());
    }
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (int norm = 0; norm < 5; ++norm)
      list.push_back({.inputs = {{{2, 3, 4}}}, .attrs = NormAttrs{norm, norm == 1}, .smooth_at_ties = false});
    list.push_back({.inputs = {{{0, 3, 4}}}, .attrs = NormAttrs{}});
    list.push_back({.inputs = {{{3, 0}}}, .attrs = NormAttrs{}});
    return list;
  }
};

const Added added = add<Inverse, Eigvalsh, Lstsq, MatrixPower, MatrixNorms>();

}  // namespace
}  // namespace oracles::composite_linalg
