#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace ferrite::detail {

/// Memory of a thread, aligned to 64 bytes, kept between calls; grows to the most that was asked for. What was there is
/// gone after `take`.
class Scratch {
 public:
  std::byte* take(std::size_t bytes) {
    if (bytes > size_) grow(bytes);
    return data_.get();
  }
  /// n elements.
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

}  // namespace ferrite::detail
