#pragma once
/// Memory that other packages own.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/storage.h"

namespace ferrite::python {

/// Returns whether all bytes that kernels may read of `bytes` bytes lie on pages that hold some of them, so that
/// reading past the end cannot fault.
inline bool stays_on_page(const void* first, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  return bytes > 0 && (begin + detail::readable_for(bytes) - 1) / page == (begin + bytes - 1) / page;
}

}  // namespace ferrite::python
