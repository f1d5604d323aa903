#pragma once
/// What functions that put elements at indices share.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// x with the source's elements at an index that has been read before: it refuses nothing.
Tensor replace_known(const Tensor& x, int axis, const Tensor& index, const Tensor& source);
/// x with the largest or smallest of its element and the source's at an index along an axis.
Tensor scatter_extremum(const Tensor& x, int axis, const Tensor& index, const Tensor& source, bool largest);
/// x multiplied with the source's elements at an index along an axis.
Tensor scatter_prod(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

/// A source for slices of x at a rank-1 index: of x's dtype, and of its shape but for the axis.
void check_slices(std::string_view where, const Tensor& x, const Tensor& index, const Tensor& source, int axis);
/// A rank-1 index along an axis in a shape whose other axes repeat it.
Tensor spread_index(const Tensor& index, int axis, const Shape& shape);
/// The part of a source that an index of the same rank covers: its first elements along every axis.
Tensor source_for(std::string_view where, const Tensor& source, const Tensor& index);

}  // namespace ferrite::detail
