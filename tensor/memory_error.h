#pragma once
/// The exception of a system that has no more memory.
#include "ferrite/tensor/error.h"

namespace ferrite {

/// A tensor, or what an operation works with, is larger than the memory that the system gives. Nothing has changed.
///
///     tensor: no memory for f32[1000000, 1000000]: 4000000000000 bytes; make it smaller, or split the batch
class MemoryError : public Error {
 public:
  using Error::Error;
};

}  // namespace ferrite
