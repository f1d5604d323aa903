#pragma once
/// Shared parts of operations on batches of matrices: checks, loops over a batch, triangles.
#include "ferrite/tensor/kernel/linalg.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

/// Throws unless x is a batch of matrices of floats.
inline void check_matrices(std::string_view where, const Tensor& x) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
  if (x.rank() < 2) throw_shape(where, "a matrix needs two axes, got " + x.shape().str());
}
/// Throws unless x is a batch of square matrices of floats.
inline void check_square(std::string_view where, const Tensor& x) {
  check_matrices(where, x);
  if (x.shape()[-1] != x.shape()[-2]) throw_shape(where, "the matrix must be square, got " + x.shape().str());
}

/// Returns the batch axes: those before the last `axes`, 2 for matrices.
inline Shape batch_shape(const Shape& s, int axes = 2) {
  Shape lead;
  for (int i = 0; i + axes < s.rank(); ++i) lead.push_back(s[i]);
  return lead;
}
inline Shape with_axes(Shape batch, std::initializer_list<std::int64_t> axes) {
  for (const std::int64_t n : axes) batch.push_back(n);
  return batch;
}

/// Returns "matrix 3 of the batch", or "the matrix" without batch axes.
inline std::string name_of_matrix(const Shape& s, std::int64_t index) {
  return s.rank() == 2 ? "the matrix" : "matrix " + std::to_string(index) + " of the batch";
}

/// Calls f(index, zero) for every matrix of a batch, with a zero of its element type.
template <class F>
void each_matrix(const Tensor& x, F&& f) {
  const std::int64_t count = batch_shape(x.shape()).numel();
  for (std::int64_t i = 0; i < count; ++i) {
    if (x.dtype() == Dtype::f32) {
      f(i, 0.0F);
    } else {
      f(i, 0.0);
    }
  }
}

/// Returns x with weights for the elements below, on and above the diagonal.
inline Tensor weighted_triangles(const Tensor& x, double below, double diagonal, double above) {
  const std::int64_t rows = x.shape()[-2], columns = x.shape()[-1];
  const Tensor i = reshape(arange(rows), {rows, 1}), j = reshape(arange(columns), {1, columns});
  const Tensor weight = where(j < i, full({}, below, x.dtype()),
                              where(eq(i, j), full({}, diagonal, x.dtype()), full({}, above, x.dtype())));
  return x * weight;
}
/// Returns the diagonals [..., n] of square matrices; diagonal_matrices, matrices with that diagonal and zeros
/// elsewhere.
inline Tensor diagonals(const Tensor& x) { return sum(weighted_triangles(x, 0, 1, 0), {-1}); }
inline Tensor diagonal_matrices(const Tensor& d) {
  return unsqueeze(d, -1) * eye(d.shape()[-1], d.shape()[-1], d.dtype());
}

// The operations in the form that gradients use: batches are equal, matrices on the left.
Tensor call_solve(const Tensor& A, const Tensor& B, Label who);
Tensor call_solve_triangular(const Tensor& A, const Tensor& B, Triangle triangle);

}  // namespace ferrite::detail
