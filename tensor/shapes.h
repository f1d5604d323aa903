#pragma once
/// Rearranging elements: triangles and diagonals, rolling, repeating, grids, axes; and products along axes by name. All
/// take every dtype that computes, unless said otherwise, and follow PyTorch's function of the same name. Everything is
/// composed of views, copies and products, so gradients, tracing, fusion and export come from the parts. Errors:
/// ShapeError names the function and the shapes, ValueError a constant that is out of range.
#include <span>

#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- triangles and diagonals -------------------------------------------------------------------------------

/// The elements [..., i, j] with j <= i + offset, else 0, of the last two axes.
Tensor tril(const Tensor& x, std::int64_t offset = 0);
/// The elements [..., i, j] with j >= i + offset, else 0.
Tensor triu(const Tensor& x, std::int64_t offset = 0);
/// The elements x[i, i + offset] of two axes along a new last axis, the two dropped; none where the offset leads out.
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = 0, std::int64_t axis2 = 1);
/// [..., N] -> matrices with x on a diagonal, of N + |offset| rows and columns, which become axis1 and axis2 of the
/// result, else 0.
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = -2, std::int64_t axis2 = -1);
/// The diagonal of a matrix [N, M], or the matrix with a vector [N] on its diagonal.
Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Sum of the diagonal of a matrix [N, M] -> []; i64 for bool and i32.
Tensor trace(const Tensor& x);

// ---- rolling and rotating ----------------------------------------------------------------------------------

/// Element i of an axis goes to i + shift, around the end. One shift for each axis; without axes one shift of the
/// elements in row-major order.
Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
/// k quarter turns in the plane of two axes, from the first towards the second.
Tensor rot90(const Tensor& x, std::int64_t k = 1, const Shape& axes = {0, 1});

// ---- repeating ---------------------------------------------------------------------------------------------

/// The whole of x, so many times along each axis; missing counts are 1, missing axes of x new leading ones.
Tensor tile(const Tensor& x, const Shape& counts);
/// As `tile`, with a count for every axis at least (torch.Tensor.repeat).
Tensor repeat(const Tensor& x, const Shape& counts);
/// Every element n times in a row along an axis.
Tensor repeat_interleave(const Tensor& x, std::int64_t n, std::int64_t axis);
/// Every element n times in a row, of x flattened.
Tensor repeat_interleave(const Tensor& x, std::int64_t n);
/// Element i of an axis counts[i] times in a row.
Tensor repeat_interleave(const Tensor& x, std::span<const std::int64_t> counts, std::int64_t axis);

// ---- grids, masks, axes ------------------------------------------------------------------------------------

/// Which of two axes comes first in `meshgrid`: as in matrices (rows first), or as in plots (columns first).
enum class Indexing : std::uint8_t { ij, xy };
/// Coordinates of a grid: n vectors (or numbers) -> n tensors [N0, N1, ...], with xy [N1, N0, ...]; views.
Tensors meshgrid(std::span<const Tensor> axes, Indexing indexing = Indexing::ij);
Tensors meshgrid(std::initializer_list<Tensor> axes, Indexing indexing = Indexing::ij);
/// `value` where the bool mask holds, which broadcasts to x's shape, else x: no gradient passes where it holds.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value);
/// Axes `from` of x become axes `to`; the others keep their order.
Tensor movedim(const Tensor& x, const Shape& from, const Shape& to);
/// The same as `transpose`, under NumPy's name.
Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// One axis becomes several; one of their extents may be -1.
Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& extents);
/// All expanded to their common shape; views.
Tensors broadcast_tensors(std::span<const Tensor> tensors);
Tensors broadcast_tensors(std::initializer_list<Tensor> tensors);
/// x with leading axes of extent 1 until its rank is 1, 2. Of rank 3: [N] -> [1, N, 1], [N, M] -> [N, M, 1].
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
/// concat along axis 1, of vectors along axis 0.
Tensor hstack(std::span<const Tensor> parts);
Tensor hstack(std::initializer_list<Tensor> parts);
/// concat along axis 0, of vectors as rows.
Tensor vstack(std::span<const Tensor> parts);
Tensor vstack(std::initializer_list<Tensor> parts);

// ---- products along axes -----------------------------------------------------------------------------------

/// Einstein's summation (torch.einsum): "bij,bjk->bik". One letter names an axis; equal letters have equal extents, or
/// 1, which broadcasts; a letter twice in one operand takes its diagonal; letters that the result does not name are
/// summed; "..." stands for axes that broadcast. Without "->" the result has the letters that occur once, in the order
/// A..Z a..z, after "...". f32 or f64; operands are multiplied from the left to the right, each product as `matmul`.
/// Throws ValueError for an equation that is wrong, ShapeError for operands that do not fit it.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);
/// Sums products over the last n axes of a and the first n of b: [A..., K...] . [K..., B...] -> [A..., B...].
Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t n = 2);
/// Sums products over these axes of a and those of b, in pairs; the rest of a comes first.
Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b);
/// [N] and [M] -> [N, M], a[i] b[j].
Tensor outer(const Tensor& a, const Tensor& b);
/// [B, N, K] . [B, K, M] -> [B, N, M].
Tensor bmm(const Tensor& a, const Tensor& b);
/// [N, K] . [K] -> [N].
Tensor mv(const Tensor& matrix, const Tensor& vector);
/// [K] . [K] -> [].
Tensor dot(const Tensor& a, const Tensor& b);
/// Vector product along an axis of extent 3; shapes broadcast.
Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Kronecker product: [N0, N1, ...] and [M0, M1, ...] -> [N0 M0, N1 M1, ...]; missing axes are new leading ones.
Tensor kron(const Tensor& a, const Tensor& b);
/// Powers x^(n - 1), ..., x, 1 of a vector [N] -> [N, n], ascending where asked for; n defaults to N. f32 or f64.
Tensor vander(const Tensor& x, std::int64_t n = -1, bool increasing = false);

}  // namespace ferrite
