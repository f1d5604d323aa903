// Oracles and samples of tensor/ops/linalg.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/matrices.h"

namespace oracles::factorisations {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const Dense& a, std::int64_t index) {
  const std::int64_t m = a.shape[-2], n = a.shape[-1];
  Rows rows(static_cast<std::size_t>(m));
  for (std::int64_t i = 0; i < m; ++i) {
    const auto begin = a.values.begin() + (index * m + i) * n;
    rows[static_cast<std::size_t>(i)].assign(begin, begin + n);
  }
  return rows;
}

void put(const Rows& rows, std::int64_t index, Dense& out) {
  auto to = out.values.begin() + index * out.shape[-2] * out.shape[-1];
  for (std::int64_t i = 0; i < out.shape[-2]; ++i)
    to = std::copy_n(rows[static_cast<std::size_t>(i)].begin(), out.shape[-1], to);
}

Rows symmetric(const Rows& a) {
  Rows s = a;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j) s[i][j] = (a[i][j] + a[j][i]) / 2;
  return s;
}

Rows identity(std::size_t n) {
  Rows one(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) one[i][i] = 1;
  return one;
}

Rows product(const Rows& a, const Rows& b) {
  Rows c(a.size(), std::vector<double>(b.empty() ? 0 : b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < c[i].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

struct Cholesky {
  static constexpr auto name = "cholesky";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t index = 0; index < batch_shape(in[0].shape).numel(); ++index) {
      const Rows a = symmetric(rows_of(in[0], index));
      Rows l(a.size(), std::vector<double>(a.size()));
      for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          double rest = a[i][j];
          for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
          l[i][j] = i == j ? std::sqrt(rest) : rest / l[j][j];
        }
      put(l, index, out[0]);
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}}, .values = {4, 1, -0.5, 0.5, 3, 1, -1, 0.25, 2}},
            {.inputs = {{{2, 2, 2}}}, .values = {2, 1, -0.5, 1, 5, 0, 1, 0.75}},
            {.inputs = {{{1, 1}}}, .values = {2.25}},
            {.inputs = {{{0, 3, 3}}}},
            {.inputs = {{{2, 0, 0}}}}};
  }
};

struct Qr {
  static constexpr auto name = "qr";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t index = 0; index < batch_shape(in[0].shape).numel(); ++index) {
      Rows r = rows_of(in[0], index), q = identity(r.size());
      for (std::size_t c = 0; c + 1 < r.size() && c < r[0].size(); ++c) {
        std::vector<double> u(r.size());
        double all = 0, squares = 0;
        for (std::size_t i = c; i < r.size(); ++i) u[i] = r[i][c], all += u[i] * u[i];
        u[c] += u[c] < 0 ? -std::sqrt(all) : std::sqrt(all);
        for (const double x : u) squares += x * x;
        Rows h = identity(r.size());
        for (std::size_t i = 0; i < u.size(); ++i)
          for (std::size_t j = 0; j < u.size(); ++j) h[i][j] -= 2 * u[i] * u[j] / squares;
        r = product(h, r);
        q = product(q, h);
      }
      for (std::size_t i = 0; i < r.size(); ++i)
        for (std::size_t j = 0; j < std::min(i, r[0].size()); ++j) r[i][j] = 0;
      put(q, index, out[0]);
      put(r, index, out[1]);
    }
  }
  static std::vector<Sample> samples() {
    const std::vector<double> v = {2, 0.5, -1, 0.25, 3, 1, -0.5, 1, -2.5, 0.5, -2, 1.5, 0.75, -1, 4, -0.5, 0.25};
    return {{.inputs = {{{3, 3}}}, .values = v}, {.inputs = {{{2, 4, 2}}}, .values = v},
            {.inputs = {{{2, 3}}}, .values = v}, {.inputs = {{{2, 1, 3}}}, .values = v},
            {.inputs = {{{3, 1}}}, .values = v}, {.inputs = {{{1, 1}}}, .values = {-2}},
            {.inputs = {{{0, 3, 2}}}},           {.inputs = {{{3, 0}}}}};
  }
};

struct Eigh {
  static constexpr auto name = "eigh";
  /// Computes by Jacobi's classical method: rotates the largest element away.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const auto n = static_cast<std::size_t>(in[0].shape[-1]);
    for (std::int64_t index = 0; index < batch_shape(in[0].shape).numel(); ++index) {
      Rows a = symmetric(rows_of(in[0], index)), v = identity(n);
      for (int turn = 0; turn < 200; ++turn) {
        std::size_t p = 0, q = 0;
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = i + 1; j < n; ++j)
            if (q == 0 || std::fabs(a[i][j]) > std::fabs(a[p][q])) p = i, q = j;
        if (q == 0 || std::fabs(a[p][q]) < 1e-30) break;
        const double angle = std::atan2(2 * a[p][q], a[q][q] - a[p][p]) / 2;
        Rows g = identity(n), back = g;
        g[p][p] = g[q][q] = back[p][p] = back[q][q] = std::cos(angle);
        g[p][q] = back[q][p] = std::sin(angle);
        g[q][p] = back[p][q] = -std::sin(angle);
        a = product(product(back, a), g);
        v = product(v, g);
      }
      std::vector<std::size_t> order(n);
      for (std::size_t i = 0; i < n; ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i][i] < a[j][j]; });
      Rows sorted = v;
      for (std::size_t j = 0; j < n; ++j) {
        double largest = 0;
        for (std::size_t i = 0; i < n; ++i)
          if (std::fabs(v[i][order[j]]) > std::fabs(largest)) largest = v[i][order[j]];
        for (std::size_t i = 0; i < n; ++i) sorted[i][j] = v[i][order[j]] * (largest < 0 ? -1 : 1);
        out[0].values[static_cast<std::size_t>(index) * n + j] = a[order[j]][order[j]];
      }
      put(sorted, index, out[1]);
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 3}}}, .values = {1, 0.2, 0.1, 0.3, 3, -0.3, 0.1, -0.5, 6}},
            {.inputs = {{{2, 2, 2}}}, .values = {2, 0.5, 0.5, -1, 0.3, -1, -1, 4}},
            {.inputs = {{{4, 4}}}, .values = {-3, 0.5, 1, 0, 0.5, 0.25, 1, -1, 1, 1, 5, 0.5, 0, -1, 0.5, 2}},
            {.inputs = {{{1, 1}}}, .values = {-2}},
            {.inputs = {{{0, 3, 3}}}},
            {.inputs = {{{2, 0, 0}}}}};
  }
};

const Added added = add<Cholesky, Qr, Eigh>();

}  // namespace
}  // namespace oracles::factorisations
