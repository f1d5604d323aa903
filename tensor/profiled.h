#pragma once
/// The flag that says whether anything watches operations, and one event of a profile.
#include <atomic>
#include <string_view>
#include <type_traits>

#include "ferrite/tensor/scope.h"

namespace ferrite::detail {

/// True while a profile or another watcher of operations runs, on whatever thread. It publishes no other memory.
/// Hidden, for the library only, which then reads it without a lookup in a table of addresses.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> profile_runs;

/// Returns whether a profile or another watcher wants events: one load where none does.
[[gnu::always_inline]] inline bool profiling() { return profile_runs.load(std::memory_order_relaxed); }

class ProfileLog;

/// Times a call of a kernel, from here to the end of the scope, however that ends; does nothing where no profile runs.
/// Events of a thread nest; one without a layer belongs to the layer of the event around it. Never throws: where there
/// is no memory to record it, it is not counted.
class ProfileEvent {
 public:
  ProfileEvent(std::string_view kernel, Scope layer) noexcept : ProfileEvent(kernel, [layer] { return layer; }) {}
  /// Begins an event. `layer` is called only where a profile runs.
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

  ProfileLog* log_ = nullptr;  ///< the log of this thread
};

}  // namespace ferrite::detail
