#pragma once
/// Workspaces of kernels: those of the thread, those that a caller has reserved, or those of one call.
#include <cstddef>
#include <memory>
#include <new>

#include "ferrite/tensor/system/per_thread.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Memory of a thread, aligned to 64 bytes, kept between calls; grows to the largest size requested. `take` discards
/// its contents.
class Scratch {
 public:
  std::byte* take(std::size_t bytes) {
    if (bytes > size_) grow(bytes);
    return data_.get();
  }
  /// Returns room for n elements.
  template <class T>
  T* get(std::size_t n) {
    return reinterpret_cast<T*>(take(n * sizeof(T)));
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  void grow(std::size_t bytes) {
    data_.reset();
    size_ = 0;
    data_.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
    size_ = bytes;
  }
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

/// The workspaces of the kernels of one thread.
struct KernelMemory {
  Scratch rows, panels;  ///< packed operands of products
  Scratch tiles;         ///< values between the operations of a tile
  Scratch partials;      ///< partial results of the threads of a reduction
  Scratch blocks;        ///< the lanes, or the elements, of one block of a reduction
};

/// The memory of the caller that lends it to this thread, or null.
FERRITE_PER_THREAD extern constinit PerThread<KernelMemory*> lent_kernel_memory;

/// Returns the workspaces of kernels on this thread.
inline KernelMemory& kernel_memory() {
  if (KernelMemory* const lent = lent_kernel_memory()) return *lent;
  return object_of_thread<KernelMemory>();
}

/// Makes kernels on this thread use reserved memory while it lives: where it is large enough, they allocate nothing, on
/// whatever thread they run.
class LendKernelMemory {
 public:
  explicit LendKernelMemory(KernelMemory& memory) : before_(lent_kernel_memory()) { lent_kernel_memory() = &memory; }
  ~LendKernelMemory() { lent_kernel_memory() = before_; }
  LendKernelMemory(const LendKernelMemory&) = delete;
  LendKernelMemory& operator=(const LendKernelMemory&) = delete;

 private:
  KernelMemory* before_;
};

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
