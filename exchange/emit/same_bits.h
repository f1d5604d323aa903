#pragma once
/// Comparing tensors, and the elements of one tensor, bit by bit.
#include <cstring>
#include <span>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  const Tensor p = ferrite::detail::dense(a), q = ferrite::detail::dense(b);
  return visit_dtype(p.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto n = static_cast<std::size_t>(p.numel()) * sizeof(T);
    return n == 0 || std::memcmp(p.data<T>(), q.data<T>(), n) == 0;
  });
}

/// Returns the element [] that all elements of all tensors equal, bit by bit; undefined where there is none, or where
/// the tensors are empty or differ in rank.
inline Tensor only_element(std::span<const Tensor> tensors) {
  const NewFrame frame;
  Tensor element;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0 || t.rank() != tensors[0].rank()) return {};
    if (!element.defined()) element = ferrite::detail::dense(reshape(slice(reshape(t, {-1}), 0, 0, 1), {}));
    if (!same_bits(t, expand(element, t.shape()))) return {};
  }
  return element;
}

}  // namespace ferrite::exchange::detail
