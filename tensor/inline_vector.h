#pragma once
/// A vector that holds its first elements in place and further ones in pooled memory, and an allocator for other
/// containers that takes memory from the pool of tensors.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite {
namespace detail {

/// Takes memory from the pool of tensors, aligned to 64 bytes, so that lists made repeatedly need no system allocation.
void* take_pooled(std::size_t bytes);
void give_pooled(void* p) noexcept;
[[noreturn]] void throw_bad_alloc();

}  // namespace detail

/// A vector whose first N elements live in the object itself: the lists of one to four tensors, shapes and
/// attributes that every operation makes cost no allocation. Moving leaves the source empty.
template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;

  InlineVector() noexcept = default;
  InlineVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  explicit InlineVector(std::size_t n) {
    reserve(n);
    for (std::size_t i = 0; i < n; ++i) emplace_back();
  }
  template <class It>
  InlineVector(It first, It last) {
    append(first, last);
  }
  InlineVector(const InlineVector& o) { append(o.begin(), o.end()); }
  InlineVector(InlineVector&& o) noexcept { take(o); }
  InlineVector& operator=(const InlineVector& o) {
    if (this == &o) return *this;
    clear();
    append(o.begin(), o.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& o) noexcept {
    if (this == &o) return *this;
    release();
    take(o);
    return *this;
  }
  ~InlineVector() { release(); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() & noexcept { return heap_ ? heap_ : local(); }
  const T* data() const& noexcept { return heap_ ? heap_ : local(); }
  const T* data() const&& = delete;  // would point into a temporary list
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) & noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const& noexcept { return data()[i]; }
  /// Moves an element out of a temporary list.
  T operator[](std::size_t i) && noexcept { return std::move(data()[i]); }
  T& front() & noexcept { return data()[0]; }
  const T& front() const& noexcept { return data()[0]; }
  T front() && noexcept { return std::move(data()[0]); }
  T& back() & noexcept { return data()[size_ - 1]; }
  const T& back() const& noexcept { return data()[size_ - 1]; }
  T back() && noexcept { return std::move(data()[size_ - 1]); }

  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  template <class... A>
  T& emplace_back(A&&... args) {
    if (size_ == capacity_) grow(2 * capacity_);
    return emplace_within(std::forward<A>(args)...);
  }
  /// Appends an element without checking the capacity, which must suffice.
  template <class... A>
  [[gnu::always_inline]] T& emplace_within(A&&... args) {
    T* place = ::new (static_cast<void*>(data() + size_)) T(std::forward<A>(args)...);
    ++size_;
    return *place;
  }
  void pop_back() noexcept { std::destroy_at(end() - 1), --size_; }
  void push_back(const T& v) { emplace_back(v); }
  void push_back(T&& v) { emplace_back(std::move(v)); }
  void clear() noexcept {
    std::destroy_n(data(), size_);
    size_ = 0;
  }
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) emplace_back(*first);
  }

 private:
  T* local() noexcept { return std::launder(reinterpret_cast<T*>(bytes_)); }
  const T* local() const noexcept { return std::launder(reinterpret_cast<const T*>(bytes_)); }
  void grow(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) detail::throw_bad_alloc();
    T* fresh = static_cast<T*>(detail::take_pooled(n * sizeof(T)));
    std::uninitialized_move_n(data(), size_, fresh);
    std::destroy_n(data(), size_);
    if (heap_) detail::give_pooled(heap_);
    heap_ = fresh;
    capacity_ = n;
  }
  void release() noexcept {
    clear();
    if (heap_) detail::give_pooled(heap_);
    heap_ = nullptr;
    capacity_ = N;
  }
  void take(InlineVector& o) noexcept {
    if (o.heap_) {
      heap_ = std::exchange(o.heap_, nullptr);
      capacity_ = std::exchange(o.capacity_, N);
      size_ = std::exchange(o.size_, 0);
      return;
    }
    std::uninitialized_move_n(o.data(), o.size_, local());
    size_ = o.size_;
    o.clear();
  }

  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  T* heap_ = nullptr;
  alignas(T) std::byte bytes_[N * sizeof(T)];
};

namespace detail {

/// Allocates memory of containers from the pool of tensors, so that repeated work makes no system allocation.
template <class T>
struct PooledAllocator {
  using value_type = T;
  static_assert(alignof(T) <= 64);

  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) {}
  T* allocate(std::size_t n) {
    if (n > SIZE_MAX / 2 / sizeof(T)) throw_bad_alloc();
    return static_cast<T*>(take_pooled(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { give_pooled(p); }
  bool operator==(const PooledAllocator&) const = default;
};

template <class T>
using PooledVector = std::vector<T, PooledAllocator<T>>;

}  // namespace detail
}  // namespace ferrite
