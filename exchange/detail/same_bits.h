#pragma once
/// Whether two tensors are the same, bit by bit.
#include <cstring>

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

}  // namespace ferrite::exchange::detail
