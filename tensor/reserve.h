#pragma once
/// Memory for calls that must make no system allocation.
#include <memory>

#include "ferrite/tensor/storage.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::detail {

/// The memory that calls of a program need besides their operands: tensors, views, workspaces, plans. While the reserve
/// is open on a thread, calls there take memory from it; what is missing is allocated and kept. One run of the program
/// fills it, and later runs may be on any thread. Open on one thread at a time.
class Reserve {
 public:
  Reserve() = default;
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  ~Reserve();

  /// Returns whether nothing has ever been requested.
  bool empty() const { return held_ == nullptr; }

  class Open {
   public:
    explicit Open(Reserve& reserve);
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Reserve* before_;
  };

  struct Held;
  /// Returns the memory that the reserve holds.
  Held& held();
  bool holds(const Held* held) const { return held_ == held; }
  /// Returns the object that calls with the same `key` keep in the reserve that is open on this thread; null: none is
  /// open.
  static void* kept(const void* key, std::shared_ptr<void> (*make)());

 private:
  Held* held_ = nullptr;  ///< created by the first request
};

/// Returns the object that calls of one kind keep for the next one: in the open reserve, else one per thread.
template <class T>
T& kept_for_calls() {
  static char key;
  if (void* const reserved = Reserve::kept(&key, [] { return std::shared_ptr<void>(std::make_shared<T>()); }))
    return *static_cast<T*>(reserved);
  return object_of_thread<T>();
}

}  // namespace ferrite::detail
