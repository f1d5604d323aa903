#pragma once
/// Linear algebra of small matrices, in batches: factorisations, systems, determinants, eigenvalues, norms. Semantics
/// are those of torch.linalg (https://pytorch.org/docs/stable/linalg.html). Matrices are the last two axes; leading
/// axes are a batch, which may be empty, and each matrix gives the same bits as it would alone. f32 or f64; other
/// dtypes throw DtypeError, shapes that do not fit ShapeError. All functions are differentiable any number of times.
/// Meant for matrices up to some hundreds of rows: products inside are not shared among threads.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

// ---- factorisations --------------------------------------------------------------------------------------

/// Returns the Cholesky factor of a symmetric positive definite A [..., n, n]: the lower triangular L with L L^T = A
/// and a positive diagonal; with `upper` its transpose. A is read as (A + A^T) / 2, so the gradient is symmetric (torch
/// reads one triangle; for symmetric A values and gradients are equal). Throws ValueError where A is not positive
/// definite, naming the matrix of the batch and the pivot. Gradient: Murray 2016, arXiv:1602.07527.
Tensor cholesky(const Tensor& A, bool upper = false);

/// The factors that `qr` returns: A = Q R.
struct QrResult {
  Tensor Q, R;
};
/// Factorises A = Q R: [..., m, n] -> Q [..., m, k] with orthonormal columns and an upper triangular R [..., k, n], k
/// the smaller of m and n, by Householder reflections with LAPACK's signs. The gradient needs the first k columns of A
/// to be independent (Walter, Lehmann, Lamour 2012; Roberts, Roberts 2020, arXiv:2009.10071); otherwise it throws
/// ValueError.
QrResult qr(const Tensor& A);

/// The eigenvalues [..., n], ascending, and eigenvectors [..., n, n], in columns, that `eigh` returns.
struct EighResult {
  Tensor eigenvalues, eigenvectors;
};
/// Factorises A = V diag(w) V^T of a symmetric A [..., n, n], read as (A + A^T) / 2: eigenvalues w [..., n] ascending
/// and eigenvectors in the columns of V [..., n, n], in f64, by a tridiagonal form and implicit QL. The largest element
/// of each eigenvector is positive, the first one of equals (torch gives LAPACK's signs). Throws ValueError for
/// elements that are not finite. The gradient of the eigenvectors divides by differences of eigenvalues, as torch's
/// does: it is not finite where two are equal. The gradient of the eigenvalues alone is finite.
EighResult eigh(const Tensor& A);
/// Returns the eigenvalues of a symmetric A in ascending order, without eigenvectors; see `eigh`.
Tensor eigvalsh(const Tensor& A);

// ---- systems ---------------------------------------------------------------------------------------------

/// Returns the X with A X = B: A [..., n, n], B [..., n, m]; or vectors: B [n], or [..., n] with A's batch axes.
/// Batches broadcast. Uses Gaussian elimination with row pivots. Throws ValueError where a pivot is 0 or NaN, naming
/// the matrix of the batch.
Tensor solve(const Tensor& A, const Tensor& B);

/// Options of `solve_triangular`: which triangle of A is read, and on which side of X it stands.
struct TriangularOptions {
  bool upper = false;          ///< reads only A's upper triangle, diagonal included; else only the lower one
  bool left = true;            ///< solves A X = B; false: X A = B
  bool unit_diagonal = false;  ///< takes A's diagonal for ones without reading it
};
/// Returns the X with A X = B, or X A = B, of a triangular A [..., n, n]; B [..., n, m], or [..., m, n]. Batches
/// broadcast. As in torch, a 0 on the diagonal divides: the result is not finite, and nothing is thrown.
Tensor solve_triangular(const Tensor& A, const Tensor& B, const TriangularOptions& options = {});

/// Returns A^-1 [..., n, n]. Throws ValueError where a pivot is 0 or NaN, naming the matrix of the batch.
Tensor inverse(const Tensor& A);

/// Returns the X of least sum((A X - B)^2), and of those the one of least sum(X^2): A [..., m, n] of full rank, B
/// [..., m, k] -> X [..., n, k]. By QR factorisation; the batches must be equal. Throws ValueError where the rank is
/// not full: where the smallest pivot is below max(m, n) epsilon times the largest.
Tensor lstsq(const Tensor& A, const Tensor& B);

// ---- numbers of a matrix, and powers ---------------------------------------------------------------------

/// Returns the determinant [...] of A [..., n, n]; 1 for n = 0. Throws ValueError in the gradient where A is singular.
Tensor det(const Tensor& A);

/// The results of `slogdet`: the sign of the determinant (1, -1 or 0) and the natural logarithm of its absolute value.
struct SlogdetResult {
  Tensor sign, logabsdet;
};
/// Returns the sign (1, -1 or 0) of det A and ln |det A|, both [...], of A [..., n, n]: for determinants beyond the
/// range of floats. 0 and -inf for a singular matrix, whose gradient throws ValueError.
SlogdetResult slogdet(const Tensor& A);

/// Returns the matrix product A A ... A of `exponent` factors [..., n, n], by repeated squaring; the identity for
/// exponent 0, powers of the inverse for negative exponents.
Tensor matrix_power(const Tensor& A, std::int64_t exponent);

/// The norm that `matrix_norm` computes: of all elements, or the largest or smallest sum of a column or of a row.
enum class MatrixNorm : std::uint8_t { frobenius, one, minus_one, infinity, minus_infinity };
/// Returns norms of matrices [..., m, n] -> [...]: the root of the sum of squares (frobenius); the largest (one) or
/// smallest (minus_one) sum of |a_ij| along a column, or along a row (infinity, minus_infinity). Gradients at a norm of
/// 0 are 0; ties share evenly. Throws ShapeError for the largest or smallest of no sums.
Tensor matrix_norm(const Tensor& A, MatrixNorm norm = MatrixNorm::frobenius, bool keepdim = false);

}  // namespace ferrite
