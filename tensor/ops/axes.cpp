/// Thin functions of axes: masks, splitting, common shapes, least ranks, stacking.
#include <algorithm>

#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite {

using namespace detail;

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  if (mask.dtype() != Dtype::boolean) throw_dtype("masked_fill", "the mask must be bool, got " + mask.spec().str());
  if (broadcast(x.shape(), mask.shape(), "masked_fill") != x.shape())
    throw_shape("masked_fill", "mask " + mask.shape().str() + " does not broadcast to " + x.shape().str());
  if (!value.is_literal() && value.tensor().rank() != 0)
    throw_shape("masked_fill", "the value must have rank 0, got " + value.tensor().shape().str());
  return where(mask, value, x);
}

Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b) { return transpose(x, a, b); }

Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& extents) {
  const int at = axis_of(axis, x.rank(), "unflatten");
  if (extents.rank() == 0) throw ValueError("unflatten: at least one extent is needed, got []");
  std::int64_t known = 1;
  int open = -1, count = 0;
  for (int i = 0; i < extents.rank(); ++i) {
    if (extents[i] == -1) open = i, ++count;
    if (extents[i] < -1) throw_shape("unflatten", "extents must not be negative: " + extents.str());
    if (extents[i] >= 0) known *= extents[i];
  }
  const std::int64_t n = x.shape()[at];
  const bool fits = count == 0 ? known == n : count == 1 && known != 0 && n % known == 0;
  if (!fits)
    throw_shape("unflatten",
                extents.str() + " does not divide axis " + std::to_string(axis) + " of " + x.shape().str());
  Shape s;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at) s.push_back(x.shape()[i]);
    if (i == at)
      for (int k = 0; k < extents.rank(); ++k) s.push_back(k == open ? n / known : extents[k]);
  }
  return reshape(x, s);
}

Tensors broadcast_tensors(std::span<const Tensor> tensors) {
  Shape common;
  for (const Tensor& x : tensors) common = broadcast(common, x.shape(), "broadcast_tensors");
  Tensors out;
  for (const Tensor& x : tensors) out.push_back(expand(x, common));
  return out;
}
Tensors broadcast_tensors(std::initializer_list<Tensor> tensors) {
  return broadcast_tensors(std::span<const Tensor>(tensors.begin(), tensors.size()));
}

Tensor atleast_1d(const Tensor& x) { return x.rank() >= 1 ? x : reshape(x, {1}); }
Tensor atleast_2d(const Tensor& x) { return x.rank() >= 2 ? x : reshape(x, {1, x.numel()}); }
Tensor atleast_3d(const Tensor& x) {
  if (x.rank() >= 3) return x;
  return x.rank() == 2 ? unsqueeze(x, -1) : reshape(x, {1, x.numel(), 1});
}

Tensor hstack(std::span<const Tensor> parts) {
  if (parts.empty()) throw ValueError("hstack: at least one tensor is needed");
  Tensors all;
  for (const Tensor& x : parts) all.push_back(atleast_1d(x));
  return concat(std::span<const Tensor>(all.data(), all.size()), all[0].rank() == 1 ? 0 : 1);
}
Tensor hstack(std::initializer_list<Tensor> parts) {
  return hstack(std::span<const Tensor>(parts.begin(), parts.size()));
}
Tensor vstack(std::span<const Tensor> parts) {
  if (parts.empty()) throw ValueError("vstack: at least one tensor is needed");
  Tensors all;
  for (const Tensor& x : parts) all.push_back(atleast_2d(x));
  return concat(std::span<const Tensor>(all.data(), all.size()), 0);
}
Tensor vstack(std::initializer_list<Tensor> parts) {
  return vstack(std::span<const Tensor>(parts.begin(), parts.size()));
}

}  // namespace ferrite
