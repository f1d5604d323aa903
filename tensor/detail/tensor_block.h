#pragma once
/// The block of a tensor, or an error that names the tensor.
#include "ferrite/tensor/memory_error.h"
#include "ferrite/tensor/storage.h"

namespace ferrite::detail {

/// A block for a tensor. Throws MemoryError with its shape and size.
inline Storage* block_for(const Shape& shape, Dtype dtype, std::size_t bytes) {
  try {
    return take_block(bytes);
  } catch (const MemoryError&) {
    throw MemoryError("tensor: no memory for " + Spec{shape, dtype}.str() + ": " + std::to_string(bytes) +
                      " bytes; make it smaller, or split the batch");
  }
}

}  // namespace ferrite::detail
