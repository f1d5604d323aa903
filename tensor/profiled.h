#pragma once
/// What a profile watches: the flag that every place tests, and one event of a kernel.
#include <atomic>
#include <string_view>
#include <type_traits>

#include "ferrite/tensor/scope.h"

namespace ferrite::detail {

/// Whether a profile runs, of whatever thread. Nothing is published by it. For the library alone, which so reads it
/// without a table of addresses.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> profile_runs;

/// Whether events are to be told: one load, where no profile runs.
[[gnu::always_inline]] inline bool profiling() { return profile_runs.load(std::memory_order_relaxed); }

class ProfileLog;

/// A call of a kernel, from here to the end of the scope, however that comes; nothing, where no profile runs. Events of
/// a thread nest; one without a layer belongs to that of the event around it. Never throws: where there is no memory to
/// write it down, it is not counted.
class ProfileEvent {
 public:
  ProfileEvent(std::string_view kernel, Scope layer) noexcept : ProfileEvent(kernel, [layer] { return layer; }) {}
  /// `layer` is asked only where a profile runs.
  template <class F>
  requires(std::is_invocable_r_v<Scope, F>)
      [[gnu::always_inline]] ProfileEvent(std::string_view kernel, const F& layer) noexcept {
    if (profiling()) [[unlikely]]
      log_ = begin(kernel, layer());
  }
  [[gnu::always_inline]] ~ProfileEvent() {
    if (log_) [[unlikely]]
      end(*log_);
  }
  ProfileEvent(const ProfileEvent&) = delete;
  ProfileEvent& operator=(const ProfileEvent&) = delete;

 private:
  static ProfileLog* begin(std::string_view kernel, Scope layer) noexcept;
  static void end(ProfileLog& log) noexcept;

  ProfileLog* log_ = nullptr;  ///< of this thread
};

}  // namespace ferrite::detail
