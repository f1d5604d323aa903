#pragma once
/// Elements in read-only memory followed by unreadable memory: a kernel that reads too far, or writes, ends the test.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/system/files.h"
#include "support/system.h"

namespace support {

/// A copy of elements at an address that is a multiple of 64 less `before` + `behind` + their bytes, followed by
/// `before` + `behind` bytes of ones in all bits (NaN in floats), then by a page that cannot be read.
class Guarded {
 public:
  Guarded(const ferrite::Tensor& x, std::size_t behind, std::size_t before = 0) {
    const ferrite::Tensor dense = ferrite::contiguous(x);
    const std::size_t bytes = static_cast<std::size_t>(x.numel() * ferrite::size_of(x.dtype()));
    const std::size_t page = ferrite::detail::page_bytes();
    const std::size_t pages = (before + bytes + behind + page - 1) / page * page;
    const std::shared_ptr<std::byte> memory = pages_before_a_hole(pages);
    std::byte* const at = memory.get();
    memory_ = memory;
    std::byte* const first = at + pages - before - behind - bytes;
    readable_ = {first, before + bytes + behind};
    std::memset(at, 0xff, pages);
    if (bytes > 0) std::memcpy(first, dense.raw(), bytes);
    forbid_writing(at, pages);
  }

  /// Returns all readable bytes, from the first element on.
  std::span<const std::byte> readable() const { return readable_; }
  const std::shared_ptr<const void>& keeper() const { return memory_; }

 private:
  std::shared_ptr<const void> memory_;
  std::span<const std::byte> readable_;
};

/// Returns the elements frozen in guarded memory: followed by exactly the bytes that kernels may read, or `before`
/// bytes off the alignment of tensors.
inline ferrite::Tensor frozen_copy(const ferrite::Tensor& x, std::size_t before = 0) {
  const auto bytes = static_cast<std::size_t>(x.numel() * ferrite::size_of(x.dtype()));
  const std::size_t behind = (bytes + 63) / 64 * 64 + 64 - bytes;
  const Guarded memory(x, behind, before);
  ferrite::Tensor t = ferrite::Tensor::frozen(memory.readable(), x.spec(), memory.keeper());
  if (bytes > 0 && t.raw() != memory.readable().data()) throw std::logic_error("the elements were copied");
  return t;
}

}  // namespace support
