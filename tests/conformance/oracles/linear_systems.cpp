// Oracles and samples of tensor/ops/linalg.cpp.
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/matrices.h"

namespace oracles::linear_systems {
namespace {

/// Solves by Gauss-Jordan with the largest pivot of the whole rest, in double: a [n, n + m] -> the solution in its last
/// columns. Returns the determinant.
double eliminate(std::vector<std::vector<double>>& a) {
  const std::size_t n = a.size();
  double determinant = 1;
  std::vector<std::size_t> from(n);
  std::vector<bool> used(n);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t row = k, column = n;
    for (std::size_t i = k; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (!used[j] && (column == n || std::fabs(a[i][j]) > std::fabs(a[row][column]))) row = i, column = j;
    std::swap(a[k], a[row]);
    if (row != k) determinant = -determinant;
    used[column] = true;
    from[k] = column;
    const double pivot = a[k][column];
    determinant *= pivot;
    if (pivot == 0) return 0;
    for (double& x : a[k]) x /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = a[i][column];
      if (i == k || factor == 0) continue;
      for (std::size_t j = 0; j < a[i].size(); ++j) a[i][j] -= factor * a[k][j];
    }
  }
  std::vector<std::vector<double>> sorted(n);
  for (std::size_t k = 0; k < n; ++k) {
    sorted[from[k]] = a[k];
    for (std::size_t l = 0; l < k; ++l)
      if (from[l] > from[k]) determinant = -determinant;
  }
  a = sorted;
  return determinant;
}

/// Returns matrix `index` of a batch with the columns of another appended.
std::vector<std::vector<double>> rows_of(const Dense& a, std::int64_t index, const Dense* b = nullptr) {
  const std::int64_t n = a.shape[-1], m = b ? b->shape[-1] : 0;
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    auto& row = rows[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < n; ++j) row.push_back(a.values[static_cast<std::size_t>((index * n + i) * n + j)]);
    for (std::int64_t j = 0; j < m; ++j) row.push_back(b->values[static_cast<std::size_t>((index * n + i) * m + j)]);
  }
  return rows;
}

std::int64_t matrices_in(const Dense& a) { return batch_shape(a.shape).numel(); }

/// Solves all systems of a batch.
void solve_all(const Dense& a, const Dense& b, Dense& out) {
  const std::int64_t n = a.shape[-1], m = b.shape[-1];
  for (std::int64_t index = 0; index < matrices_in(a); ++index) {
    auto rows = rows_of(a, index, &b);
    eliminate(rows);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        out.values[static_cast<std::size_t>((index * n + i) * m + j)] =
            rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(n + j)];
  }
}

const std::vector<double> kMatrices = {2, 0.5, -1, 0.25, 3, 1, -0.5, 1, -2.5, 0.5, -2, 1.5, 0.75, -1, 4, -0.5, 0.25};

struct SolveAttrs {
  Label who{};  ///< name of the function that refuses singular matrices
  static constexpr auto fields = attr_list(attr("who", &SolveAttrs::who));
};

struct Solve {
  using Attributes = SolveAttrs;
  static constexpr auto name = "solve";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    solve_all(in[0], in[1], out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}, {{3, 2}}}, .attrs = SolveAttrs{}, .values = kMatrices},
            {.inputs = {{{2, 2, 2}}, {{2, 2, 1}}}, .attrs = SolveAttrs{"samples"}, .values = kMatrices},
            {.inputs = {{{4, 4}}, {{4, 3}}}, .attrs = SolveAttrs{}, .values = kMatrices},
            {.inputs = {{{1, 1}}, {{1, 2}}}, .attrs = SolveAttrs{}, .values = kMatrices},
            {.inputs = {{{2, 2}}, {{2, 1}}}, .attrs = SolveAttrs{}, .values = {0, 2, 3, 0, 1, -1}},
            {.inputs = {{{0, 2, 2}}, {{0, 2, 1}}}, .attrs = SolveAttrs{}},
            {.inputs = {{{0, 0}}, {{0, 2}}}, .attrs = SolveAttrs{}}};
  }
};

struct TriangleAttrs {
  bool upper = false, unit = false;
  static constexpr auto fields = attr_list(attr("upper", &TriangleAttrs::upper), attr("unit", &TriangleAttrs::unit));
};

struct SolveTriangular {
  using Attributes = TriangleAttrs;
  static constexpr auto name = "solve_triangular";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    Dense a = in[0];
    for_each_index(a.shape, [&](const Shape& i) {
      if (attrs.upper ? i[-1] < i[-2] : i[-1] > i[-2]) a.at(i) = 0;
      if (attrs.unit && i[-1] == i[-2]) a.at(i) = 1;
    });
    solve_all(a, in[1], out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}, {{3, 2}}}, .attrs = TriangleAttrs{}, .values = kMatrices},
            {.inputs = {{{4, 4}}, {{4, 5}}}, .attrs = TriangleAttrs{true}, .values = kMatrices},
            {.inputs = {{{2, 2, 2}}, {{2, 2, 3}}}, .attrs = TriangleAttrs{true, true}, .values = kMatrices},
            {.inputs = {{{3, 3}}, {{3, 1}}}, .attrs = TriangleAttrs{false, true}},
            {.inputs = {{{0, 2, 2}}, {{0, 2, 1}}}, .attrs = TriangleAttrs{}}};
  }
};

std::vector<Sample> square_samples() {
  return {{.inputs = {{{3, 3}}}, .values = kMatrices},
          {.inputs = {{{2, 4, 4}}}, .values = kMatrices},
          {.inputs = {{{2, 2}}}, .values = {0, 2, -0.5, 0}},
          {.inputs = {{{1, 1}}}, .values = {-2}},
          {.inputs = {{{0, 3, 3}}}},
          {.inputs = {{{2, 0, 0}}}}};
}

struct Det {
  static constexpr auto name = "det";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t i = 0; i < matrices_in(in[0]); ++i) {
      auto rows = rows_of(in[0], i);
      out[0].values[static_cast<std::size_t>(i)] = eliminate(rows);
    }
  }
  static std::vector<Sample> samples() { return square_samples(); }
};

struct Slogdet {
  static constexpr auto name = "slogdet";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t i = 0; i < matrices_in(in[0]); ++i) {
      auto rows = rows_of(in[0], i);
      const double d = eliminate(rows);
      out[0].values[static_cast<std::size_t>(i)] = d > 0 ? 1 : d < 0 ? -1 : 0;
      out[1].values[static_cast<std::size_t>(i)] = std::log(std::fabs(d));
    }
  }
  static std::vector<Sample> samples() { return square_samples(); }
};

const Added added = add<Solve, SolveTriangular, Det, Slogdet>();

}  // namespace
}  // namespace oracles::linear_systems
