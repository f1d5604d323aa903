#pragma once
/// Memory for calls that must ask the system for nothing.
#include <cstddef>

namespace ferrite::detail {

/// Blocks for what the calls of a program ask the pool for: tensors, views and workspaces. While it is open on a
/// thread, they come from here and return here, on whatever thread; what is missing comes from the system and stays.
/// One run of the program fills it. Open on one thread at a time.
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
  /// What it keeps.
  Held& held();

 private:
  Held* held_ = nullptr;  ///< made by the first request
};

}  // namespace ferrite::detail
