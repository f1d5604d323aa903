#pragma once
/// Walks over tensors that are not row-major, and copies that are.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Calls f(offset in elements) for every index of `shape`, in row-major order.
template <class F>
void for_each_offset(const Shape& shape, const Shape& strides, F&& f) {
  const std::int64_t n = shape.numel();
  const int rank = shape.rank();
  std::int64_t index[Shape::kMaxRank] = {};
  std::int64_t at = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    f(at);
    for (int i = rank - 1; i >= 0; --i) {
      at += strides[i];
      if (++index[i] < shape[i]) break;
      at -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
}

/// Several tensors walked together over one shape, with neighbouring axes merged wherever every operand's
/// strides allow it: most walks end up with one or two axes.
template <std::size_t N>
struct Walk {
  Shape shape;
  Shape strides[N];

  /// Appends an axis unless it can be merged into the one before it.
  void push(std::int64_t extent, const std::int64_t (&step)[N]) {
    if (extent == 1) return;
    if (merge(extent, step)) return;
    shape.push_back(extent);
    for (std::size_t j = 0; j < N; ++j) strides[j].push_back(step[j]);
  }

  /// Merges the axis into the one before it where all strides allow it; returns whether it did.
  bool merge(std::int64_t extent, const std::int64_t (&step)[N]) {
    const int rank = shape.rank();
    if (rank == 0) return false;
    for (std::size_t j = 0; j < N; ++j)
      if (strides[j][rank - 1] != step[j] * extent) return false;
    shape[rank - 1] *= extent;
    for (std::size_t j = 0; j < N; ++j) strides[j][rank - 1] = step[j];
    return true;
  }

  /// Calls row(offsets, extent, steps of the last axis) for every run along the last axis.
  template <class F>
  void rows(F&& row) const {
    if (shape.rank() == 0) {
      const std::int64_t zero[N] = {};
      row(zero, std::int64_t{1}, zero);
      return;
    }
    const int rank = shape.rank();
    const std::int64_t length = shape[rank - 1];
    std::int64_t step[N];
    std::int64_t at[N] = {};
    std::int64_t count = 1;
    for (std::size_t j = 0; j < N; ++j) step[j] = strides[j][rank - 1];
    for (int i = 0; i + 1 < rank; ++i) count *= shape[i];
    if (length == 0) return;
    std::int64_t index[Shape::kMaxRank] = {};
    for (std::int64_t k = 0; k < count; ++k) {
      row(at, length, step);
      for (int i = rank - 2; i >= 0; --i) {
        for (std::size_t j = 0; j < N; ++j) at[j] += strides[j][i];
        if (++index[i] < shape[i]) break;
        for (std::size_t j = 0; j < N; ++j) at[j] -= strides[j][i] * shape[i];
        index[i] = 0;
      }
    }
  }
};

/// Returns the strides of x when it is broadcast to `shape`: 0 along repeated axes.
Shape broadcast_strides(const Shape& x, const Shape& strides, const Shape& shape);

/// Copies elements: dst[i] = src[i] for every index of `shape`, each side with its own strides (in elements).
void copy_strided(std::byte* dst, const Shape& dst_strides, const std::byte* src, const Shape& src_strides,
                  const Shape& shape, std::int64_t element_bytes);

/// Copies x into a contiguous destination of its shape.
void copy_to(std::byte* dst, const Tensor& x);

/// Returns whether the strides are row-major without gaps; those of axes of extent 1 do not matter.
inline bool is_contiguous(const Shape& shape, const Shape& strides) {
  std::int64_t n = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != n) return shape.numel() == 0;
    n *= shape[i];
  }
  return true;
}

/// Returns x row-major, as a copy where necessary. No recorder sees it.
Tensor dense(const Tensor& x);

/// A row-major version of a tensor, borrowed where the tensor is row-major already, since counting a handle costs as
/// much as a small kernel. Must not outlive the tensor.
class RowMajor {
 public:
  explicit RowMajor(const Tensor& x) : at_(&x) {
    if (x.defined() && !x.contiguous()) at_ = &(copy_ = dense(x));
  }
  RowMajor(const RowMajor&) = delete;
  RowMajor& operator=(const RowMajor&) = delete;
  const Tensor& operator*() const { return *at_; }
  const Tensor* operator->() const { return at_; }

 private:
  const Tensor* at_;
  Tensor copy_;
};

}  // namespace ferrite::detail
