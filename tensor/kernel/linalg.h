#pragma once
/// Kernels of small matrices: factorisations and solutions, each of one row-major matrix.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// The outcome of a factorisation.
struct Pivot {
  std::int64_t at = -1;  ///< the first pivot at which it had to stop; -1: none
  double value = 0;
};

/// The triangle of a matrix that is read, and whether its diagonal is taken for ones.
struct Triangle {
  bool upper = false, unit = false;
};

template <class T>
struct LinalgKernels {
  /// Factorises a [n, n], read as (a + a^T) / 2, into l with l l^T = a and zeros above its diagonal. `work`: n n
  /// elements.
  Pivot (*cholesky)(std::int64_t n, const T* a, T* l, T* work);
  /// Replaces x [n, m] by a^-1 x for a triangular a.
  void (*solve_triangular)(std::int64_t n, std::int64_t m, const T* a, T* x, Triangle triangle);
  /// Replaces a [n, n] by its factors, l without its diagonal of ones and u; row i was exchanged for row rows[i] >= i,
  /// the one with the largest element. Returns the first pivot that is 0 or NaN, after trying all.
  Pivot (*lu)(std::int64_t n, T* a, std::int64_t* rows);
  /// Replaces x [n, m] by a^-1 x, given the factors of a from `lu`.
  void (*lu_solve)(std::int64_t n, std::int64_t m, const T* lu, const std::int64_t* rows, T* x);
  /// Factorises a [m, n], which is overwritten, into q [m, k] and r [k, n], k the smaller extent, by Householder
  /// reflections with LAPACK's signs. `work`: m + n + k elements.
  void (*qr)(std::int64_t m, std::int64_t n, T* a, T* q, T* r, T* work);
};

/// The kernel of symmetric eigenvalues, for f64.
struct EighKernels {
  /// Computes the eigenvalues w [n], ascending, and eigenvectors in the rows of v, of a symmetric a [n, n], which is
  /// overwritten, by Householder's tridiagonal form and implicit QL steps. The largest element of each is positive, the
  /// first of equal ones. `work`: 4 n elements.
  void (*eigh)(std::int64_t n, double* a, double* w, double* v, double* work);
};

/// The kernels of linear algebra of the level in use.
extern const FloatTablesInUse<LinalgKernels> linalg_in_use;
extern const TableInUse<EighKernels> eigh_in_use;

}  // namespace ferrite::detail
