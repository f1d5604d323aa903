#pragma once
/// Variables and objects of which every thread has its own, implemented in windows.cpp where the compiler's allocate.
#include <type_traits>
#include <utility>

namespace ferrite::detail {

// g++ on Windows emulates `thread_local`: a thread's first access to a variable takes a lock and allocates, which a
// step of a stream must not. A variable in this section is copied by the system when a thread begins: the linker sorts
// the parts of .tls by name, up to .tls$ZZZ.
#if defined(_WIN32) && !defined(__clang__)
#define FERRITE_PER_THREAD [[gnu::section(".tls$FERRITE")]]
#else
#define FERRITE_PER_THREAD thread_local
#endif

#if defined(_WIN32) && !defined(__clang__)
/// Returns this thread's copy of a variable in that section.
[[gnu::const]] void* copy_of_thread(const void* variable) noexcept;
/// Returns this thread's object with this key, made at first use, destroyed when the thread ends.
void* object_with_key(const void* key, void* (*make)(), void (*destroy)(void*));
#endif

/// A variable of which every thread has a copy, with a constant first value. Using it never allocates or locks. Its
/// declaration and its definition begin with FERRITE_PER_THREAD; it is not `inline`.
///
///   FERRITE_PER_THREAD constinit PerThread<bool> inside(false);
///   if (inside()) ...
template <class T>
class PerThread {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);

 public:
  constexpr PerThread() noexcept : value_{} {}
  constexpr explicit PerThread(T first) noexcept : value_(std::move(first)) {}
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

#if defined(_WIN32) && !defined(__clang__)
  T& operator()() noexcept { return *static_cast<T*>(copy_of_thread(&value_)); }
#else
  T& operator()() noexcept { return value_; }
#endif

 private:
  T value_;
};

/// Returns the object of a type that this thread owns: made at first use, destroyed when the thread ends, the last one
/// first. g++ on Windows frees the memory of a `thread_local` before it destroys the object; so no other source has
/// one.
template <class T>
T& object_of_thread() {
#if defined(_WIN32) && !defined(__clang__)
  static char key;
  return *static_cast<T*>(object_with_key(
      &key, []() -> void* { return new T; }, [](void* object) { delete static_cast<T*>(object); }));
#else
  thread_local T own;
  return own;
#endif
}

}  // namespace ferrite::detail
