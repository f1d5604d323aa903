#pragma once
/// Kernels of small matrices: factorisations and solutions, each of one row-major matrix.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// How a factorisation ended.
struct Pivot {
  std::int64_t at = -1;  ///< the first that does not allow to go on; -1: none
  double value = 0;
};

/// Which triangle is read, and whether its diagonal is taken for ones.
struct Triangle {
  bool upper = false, unit = false;
};

template <class T>
struct LinalgKernels {
  /// a [n, n], read as (a + a^T) / 2 -> l with l l^T = a, zeros above its diagonal. `work`: n n elements.
  Pivot (*cholesky)(std::int64_t n, const T* a, T* l, T* work);
  /// x [n, m] becomes a^-1 x.
  void (*solve_triangular)(std::int64_t n, std::int64_t m, const T* a, T* x, Triangle triangle);
  /// a [n, n] becomes its factors, l without its diagonal of ones and u; row i was exchanged for row rows[i] >= i, the
  /// one with the largest element. The first pivot that is 0 or NaN is told; all are tried.
  Pivot (*lu)(std::int64_t n, T* a, std::int64_t* rows);
  /// x [n, m] becomes a^-1 x.
  void (*lu_solve)(std::int64_t n, std::int64_t m, const T* lu, const std::int64_t* rows, T* x);
  /// a [m, n], overwritten -> q [m, k], r [k, n], k the smaller extent, by Householder's reflections with LAPACK's
  /// signs. `work`: m + n + k elements.
  void (*qr)(std::int64_t m, std::int64_t n, T* a, T* q, T* r, T* work);
};

/// Symmetric eigenvalues, of f64.
struct EighKernels {
  /// a [n, n], symmetric, overwritten -> eigenvalues w [n] ascending and eigenvectors in the rows of v, by
  /// Householder's tridiagonal form and implicit QL steps. The largest element of each is positive, the first of equal
  /// ones. `work`: 4 n elements.
  void (*eigh)(std::int64_t n, double* a, double* w, double* v, double* work);
};

/// Those of the level in use.
extern const FloatTablesInUse<LinalgKernels> linalg_in_use;
extern const TableInUse<EighKernels> eigh_in_use;

}  // namespace ferrite::detail
