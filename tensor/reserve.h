#pragma once
/// Memory for calls that must ask the system for nothing.
#include <memory>

#include "ferrite/tensor/storage.h"

namespace ferrite::detail {

/// What the calls of a program ask for beside their operands: tensors, views, workspaces, plans. While it is open on a
/// thread, they find it here, on whatever thread; what is missing is made, and stays. One run of the program fills it.
/// Open on one thread at a time.
class Reserve {
 public:
  Reserve() = default;
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  ~Reserve();

  /// Whether nothing was ever asked for.
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
  /// What it holds.
  Held& held();
  bool holds(const Held* held) const { return held_ == held; }
  /// What calls that know each other by `key` keep in the reserve that is open on this thread; null: none is open.
  static void* kept(const void* key, std::shared_ptr<void> (*make)());

 private:
  Held* held_ = nullptr;  ///< made by the first request
};

/// What calls of one kind keep for the next one: in the open reserve, else of the thread.
template <class T>
T& kept_for_calls() {
  static char key;
  if (void* const reserved = Reserve::kept(&key, [] { return std::shared_ptr<void>(std::make_shared<T>()); }))
    return *static_cast<T*>(reserved);
  thread_local T own;
  return own;
}

}  // namespace ferrite::detail
