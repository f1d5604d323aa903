/// Small matrices, factored row by row: inner loops run along rows, in the order of their elements, and compilers
/// vectorise them.
#include "ferrite/tensor/kernel/linalg.h"

#include <cmath>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// Computes y [n] -= s x [n].
template <class T>
[[gnu::always_inline]] inline void subtract(std::int64_t n, T s, const T* __restrict x, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= s * x[i];
}

template <class T>
Pivot cholesky(std::int64_t n, const T* a, T* l, T* work) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i; j < n; ++j) work[i * n + j] = static_cast<T>(0.5) * (a[i * n + j] + a[j * n + i]);
  for (std::int64_t k = 0; k < n; ++k) {  // of the transposed factor, whose rows are contiguous
    T* row = work + k * n;
    if (!(row[k] > 0)) return {k, static_cast<double>(row[k])};
    const T pivot = std::sqrt(row[k]);
    row[k] = pivot;
    for (std::int64_t j = k + 1; j < n; ++j) row[j] /= pivot;
    for (std::int64_t i = k + 1; i < n; ++i) subtract(n - i, row[i], row + i, work + i * n + i);
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) l[i * n + j] = j <= i ? work[j * n + i] : T(0);
  return {};
}

template <class T>
void solve_triangular(std::int64_t n, std::int64_t m, const T* a, T* x, Triangle triangle) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t k = triangle.upper ? n - 1 - step : step;
    T* row = x + k * m;
    if (!triangle.unit)
      for (std::int64_t j = 0; j < m; ++j) row[j] /= a[k * n + k];
    const std::int64_t begin = triangle.upper ? 0 : k + 1, end = triangle.upper ? k : n;
    for (std::int64_t i = begin; i < end; ++i) subtract(m, a[i * n + k], row, x + i * m);
  }
}

template <class T>
void exchange_rows(std::int64_t m, T* a, T* b) {
  for (std::int64_t j = 0; j < m; ++j) {
    const T t = a[j];
    a[j] = b[j];
    b[j] = t;
  }
}

template <class T>
Pivot lu(std::int64_t n, T* a, std::int64_t* rows) {
  Pivot first;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[best * n + k])) best = i;
    rows[k] = best;
    if (best != k) exchange_rows(n, a + k * n, a + best * n);
    const T pivot = a[k * n + k];
    if ((pivot == 0 || pivot != pivot) && first.at < 0) first = {k, static_cast<double>(pivot)};
    if (pivot == 0) continue;
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = a[i * n + k] / pivot;
      a[i * n + k] = factor;
      subtract(n - k - 1, factor, a + k * n + k + 1, a + i * n + k + 1);
    }
  }
  return first;
}

template <class T>
void lu_solve(std::int64_t n, std::int64_t m, const T* lu, const std::int64_t* rows, T* x) {
  for (std::int64_t k = 0; k < n; ++k)
    if (rows[k] != k) exchange_rows(m, x + k * m, x + rows[k] * m);
  solve_triangular(n, m, lu, x, {false, true});
  solve_triangular(n, m, lu, x, {true, false});
}

/// Replaces a [rows, columns] by (1 - tau v v^T) a; its rows are `stride` apart. `sums`: as many elements as columns.
template <class T>
void reflect(std::int64_t rows, std::int64_t columns, const T* v, T tau, T* a, std::int64_t stride, T* sums) {
  for (std::int64_t j = 0; j < columns; ++j) sums[j] = 0;
  for (std::int64_t i = 0; i < rows; ++i) subtract(columns, -(tau * v[i]), a + i * stride, sums);
  for (std::int64_t i = 0; i < rows; ++i) subtract(columns, v[i], sums, a + i * stride);
}

template <class T>
void qr(std::int64_t m, std::int64_t n, T* a, T* q, T* r, T* work) {
  const std::int64_t k = m < n ? m : n;
  T *v = work, *sums = work + m, *taus = sums + n;
  for (std::int64_t c = 0; c < k; ++c) {
    double below = 0;
    for (std::int64_t i = c + 1; i < m; ++i)
      below += static_cast<double>(a[i * n + c]) * static_cast<double>(a[i * n + c]);
    taus[c] = 0;
    if (below == 0) continue;
    const T alpha = a[c * n + c];
    const double norm = std::sqrt(static_cast<double>(alpha) * static_cast<double>(alpha) + below);
    const T beta = static_cast<T>(alpha < 0 ? norm : -norm);
    taus[c] = (beta - alpha) / beta;
    v[c] = 1;
    for (std::int64_t i = c + 1; i < m; ++i) v[i] = a[i * n + c] / (alpha - beta);
    reflect(m - c, n - c - 1, v + c, taus[c], a + c * n + c + 1, n, sums);
    a[c * n + c] = beta;
    for (std::int64_t i = c + 1; i < m; ++i) a[i * n + c] = v[i];  // for q
  }
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < k; ++j) q[i * k + j] = i == j ? T(1) : T(0);
  for (std::int64_t c = k - 1; c >= 0; --c) {
    if (taus[c] == 0) continue;
    v[c] = 1;
    for (std::int64_t i = c + 1; i < m; ++i) v[i] = a[i * n + c];
    reflect(m - c, k - c, v + c, taus[c], q + c * k + c, k, sums);
  }
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = 0; j < n; ++j) r[i * n + j] = j < i ? T(0) : a[i * n + j];
}

/// Rotates rows x, y to c x - s y, s x + c y.
void rotate(std::int64_t n, double c, double s, double* __restrict x, double* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/// Makes a symmetric a [n, n] tridiagonal, with d on its diagonal and e [n - 1] next to it, by Householder reflections,
/// whose product transposed is v. `work`: 3 n elements.
void tridiagonal(std::int64_t n, double* a, double* d, double* e, double* v, double* work) {
  double *x = work, *p = work + n, *sums = work + 2 * n;
  for (std::int64_t i = 0; i < n * n; ++i) v[i] = i % (n + 1) == 0 ? 1 : 0;
  for (std::int64_t k = 0; k + 1 < n; ++k) {
    const std::int64_t m = n - k - 1;
    const double* row = a + k * n + k + 1;
    double below = 0;
    for (std::int64_t i = 1; i < m; ++i) below += row[i] * row[i];
    d[k] = a[k * n + k];
    e[k] = row[0];
    if (below == 0) continue;
    const double norm = std::sqrt(row[0] * row[0] + below);
    e[k] = row[0] < 0 ? norm : -norm;
    for (std::int64_t i = 0; i < m; ++i) x[i] = row[i];
    x[0] -= e[k];
    const double beta = 2 / (x[0] * x[0] + below);
    double* rest = a + (k + 1) * n + k + 1;
    for (std::int64_t i = 0; i < m; ++i) p[i] = 0;
    for (std::int64_t i = 0; i < m; ++i) subtract(m, -(beta * x[i]), rest + i * n, p);
    double half = 0;
    for (std::int64_t i = 0; i < m; ++i) half += x[i] * p[i];
    subtract(m, 0.5 * beta * half, x, p);
    for (std::int64_t i = 0; i < m; ++i) {
      subtract(m, x[i], p, rest + i * n);
      subtract(m, p[i], x, rest + i * n);
    }
    reflect(m, n, x, beta, v + (k + 1) * n, n, sums);
  }
  if (n > 0) d[n - 1] = a[n * n - 1];
}

/// Performs one implicit QL step on rows [l, m] of a tridiagonal matrix.
void ql_step(std::int64_t n, std::int64_t l, std::int64_t m, double* d, double* e, double* v) {
  double g = (d[l + 1] - d[l]) / (2 * e[l]);
  const double root = std::sqrt(g * g + 1);
  g = d[m] - d[l] + e[l] / (g < 0 ? g - root : g + root);
  double s = 1, c = 1, p = 0;
  for (std::int64_t i = m - 1; i >= l; --i) {
    const double f = s * e[i], b = c * e[i];
    const double r = std::sqrt(f * f + g * g);
    if (i + 1 < m) e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const double t = (d[i] - g) * s + 2 * c * b;
    p = s * t;
    d[i + 1] = g + p;
    g = c * t - b;
    rotate(n, c, s, v + i * n, v + (i + 1) * n);
  }
  d[l] -= p;
  e[l] = g;
}

void eigh(std::int64_t n, double* a, double* w, double* v, double* work) {
  double scale = 0;  // so that no square leaves the range
  for (std::int64_t i = 0; i < n * n; ++i) scale = std::abs(a[i]) > scale ? std::abs(a[i]) : scale;
  if (scale == 0) scale = 1;
  for (std::int64_t i = 0; i < n * n; ++i) a[i] /= scale;
  double* e = work;
  tridiagonal(n, a, w, e, v, work + n);
  constexpr int kMostSteps = 60;
  for (std::int64_t l = 0; l < n; ++l)
    for (int step = 0; step < kMostSteps; ++step) {
      std::int64_t m = l;
      while (m + 1 < n && !(std::abs(e[m]) <= 0x1p-53 * (std::abs(w[m]) + std::abs(w[m + 1])) + 0x1p-80)) ++m;
      if (m == l) break;
      ql_step(n, l, m, w, e, v);
    }
  for (std::int64_t i = 0; i < n; ++i) w[i] *= scale;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j > 0 && w[j] < w[j - 1]; --j) {
      exchange_rows(1, w + j, w + j - 1);
      exchange_rows(n, v + j * n, v + (j - 1) * n);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = v + i * n;
    std::int64_t largest = 0;
    for (std::int64_t j = 1; j < n; ++j)
      if (std::abs(row[j]) > std::abs(row[largest])) largest = j;
    if (row[largest] < 0)
      for (std::int64_t j = 0; j < n; ++j) row[j] = -row[j];
  }
}

template <class T>
constexpr LinalgKernels<T> kernels_of() {
  return {.cholesky = cholesky<T>,
          .solve_triangular = solve_triangular<T>,
          .lu = lu<T>,
          .lu_solve = lu_solve<T>,
          .qr = qr<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(LinalgKernels, linalg_kernels, kernels_of)
extern const EighKernels eigh_kernels;
constinit const EighKernels eigh_kernels = {.eigh = eigh};

}  // namespace ferrite::detail::FERRITE_LEVEL
