#pragma once
/// Temporary memory for one call of a kernel, from the pool of tensors.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Memory for one call of a kernel, from the pool of tensors: aligned to 64 bytes, readable and writable up to 64
/// bytes past its end.
template <class T>
class Room {
 public:
  explicit Room(std::int64_t n) : tensor_(Tensor::empty({{n}, dtype_of<T>})) {}
  T* get() { return Writer::data<T>(tensor_); }

 private:
  Tensor tensor_;
};

}  // namespace ferrite::detail
