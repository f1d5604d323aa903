#pragma once
/// Rearranging elements (triangles and diagonals, rolling, repeating, grids, axes) and products along named axes.
/// Functions take every dtype except storage types, unless said otherwise, and follow PyTorch's function of the same
/// name. All are composed of views, copies and products, so gradients, tracing, fusion and export come from the parts.
/// ShapeError names the function and the shapes, ValueError a constant that is out of range.
#include <span>

#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- triangles and diagonals -------------------------------------------------------------------------------

/// Returns the lower triangle of the last two axes: the elements [..., i, j] with j <= i + offset, else 0.
Tensor tril(const Tensor& x, std::int64_t offset = 0);
/// Returns the upper triangle of the last two axes: the elements [..., i, j] with j >= i + offset, else 0.
Tensor triu(const Tensor& x, std::int64_t offset = 0);
/// Returns the diagonal x[i, i + offset] of two axes as a new last axis, without the two; empty where the offset leads
/// outside.
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = 0, std::int64_t axis2 = 1);
/// Returns matrices with x [..., N] on a diagonal, else 0, of N + |offset| rows and columns, which become axis1 and
/// axis2 of the result.
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = -2, std::int64_t axis2 = -1);
/// Returns the diagonal x[i, i + offset] of a matrix [N, M], or the square matrix with a vector [N] on that diagonal.
Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Sums the diagonal of a matrix [N, M] -> []; i64 for bool and i32.
Tensor trace(const Tensor& x);

// ---- rolling and rotating ----------------------------------------------------------------------------------

/// Moves element i of an axis to i + shift, wrapping around, with one shift for each of `axes`. Without axes, one shift
/// moves all elements in row-major order.
Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes = {});
/// Rotates x by k quarter turns in the plane of two axes, from the first towards the second.
Tensor rot90(const Tensor& x, std::int64_t k = 1, const Shape& axes = {0, 1});

// ---- repeating ---------------------------------------------------------------------------------------------

/// Repeats the whole of x the given number of times along each axis; missing counts are 1, missing axes of x become
/// leading ones.
Tensor tile(const Tensor& x, const Shape& counts);
/// Repeats x as `tile` does, but requires a count for every axis (torch.Tensor.repeat).
Tensor repeat(const Tensor& x, const Shape& counts);
/// Repeats every slice along an axis n times in a row: [a, b] -> [a, a, b, b].
Tensor repeat_interleave(const Tensor& x, std::int64_t n, std::int64_t axis);
/// Flattens x and repeats every element n times in a row.
Tensor repeat_interleave(const Tensor& x, std::int64_t n);
/// Repeats slice i along an axis counts[i] times in a row.
Tensor repeat_interleave(const Tensor& x, std::span<const std::int64_t> counts, std::int64_t axis);

// ---- grids, masks, axes ------------------------------------------------------------------------------------

/// The order of the first two axes in `meshgrid`: as in matrices (rows first), or as in plots (columns first).
enum class Indexing : std::uint8_t { ij, xy };
/// Returns the coordinates of the points of a grid, one tensor for each axis: n vectors (or numbers) -> n tensors
/// [N0, N1, ...], with xy [N1, N0, ...]; views.
Tensors meshgrid(std::span<const Tensor> axes, Indexing indexing = Indexing::ij);
Tensors meshgrid(std::initializer_list<Tensor> axes, Indexing indexing = Indexing::ij);
/// Returns `value` where the bool mask, which broadcasts to x's shape, holds, else x. No gradient reaches x where it
/// holds.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value);
/// Moves the axes `from` of x to the positions `to`; the others keep their order.
Tensor movedim(const Tensor& x, const Shape& from, const Shape& to);
/// Exchanges two axes: `transpose` under NumPy's name.
Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// Splits one axis into several of the given extents; one of these may be -1, which is inferred.
Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& extents);
/// Expands all tensors to their common shape; views.
Tensors broadcast_tensors(std::span<const Tensor> tensors);
Tensors broadcast_tensors(std::initializer_list<Tensor> tensors);
/// Adds axes of extent 1 until x has at least rank 1, 2 or 3: leading ones, but for rank 3 [N] -> [1, N, 1] and
/// [N, M] -> [N, M, 1].
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
/// Joins tensors along axis 1, or vectors along axis 0.
Tensor hstack(std::span<const Tensor> parts);
Tensor hstack(std::initializer_list<Tensor> parts);
/// Joins tensors along axis 0; vectors [N] count as rows [1, N].
Tensor vstack(std::span<const Tensor> parts);
Tensor vstack(std::initializer_list<Tensor> parts);

// ---- products along axes -----------------------------------------------------------------------------------

/// Sums products by Einstein's convention (torch.einsum): "bij,bjk->bik". One letter names an axis; equal letters have
/// equal extents, or 1, which broadcasts; a letter twice in one operand takes its diagonal; letters that the result
/// does not name are summed; "..." denotes axes that broadcast. Without "->" the result has the letters that occur
/// once, in the order A..Z a..z, after "...". f32 or f64; operands are multiplied from left to right, each product as
/// by `matmul`. Throws ValueError for an invalid equation, ShapeError for operands that do not fit it.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);
/// Sums products over the last n axes of a and the first n of b: [A..., K...] . [K..., B...] -> [A..., B...].
Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t n = 2);
/// Sums products over axes_a of a and axes_b of b, in pairs; the other axes of a come first.
Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b);
/// Returns all products a[i] b[j]: [N] and [M] -> [N, M].
Tensor outer(const Tensor& a, const Tensor& b);
/// Multiplies matrices in a batch: [B, N, K] . [B, K, M] -> [B, N, M].
Tensor bmm(const Tensor& a, const Tensor& b);
/// Multiplies a matrix with a vector: [N, K] . [K] -> [N].
Tensor mv(const Tensor& matrix, const Tensor& vector);
/// Returns the inner product of two vectors: [K] . [K] -> [].
Tensor dot(const Tensor& a, const Tensor& b);
/// Returns the cross product of 3-vectors along an axis of extent 3; shapes broadcast.
Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Returns the Kronecker product: [N0, N1, ...] and [M0, M1, ...] -> [N0 M0, N1 M1, ...]; missing axes become leading
/// ones.
Tensor kron(const Tensor& a, const Tensor& b);
/// Returns the Vandermonde matrix of a vector: the powers x^(n - 1), ..., x, 1 in columns, [N] -> [N, n], or in
/// ascending order; n defaults to N. f32 or f64.
Tensor vander(const Tensor& x, std::int64_t n = -1, bool increasing = false);

}  // namespace ferrite
