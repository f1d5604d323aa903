#pragma once
/// What a profile writes down: a log for each thread.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/profiler.h"

namespace ferrite::detail {

/// Nanoseconds of the monotonic clock.
inline std::int64_t profile_clock() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Calls of one kernel in one layer on one thread.
struct ProfileCalls {
  Label kernel;
  Scope layer;
  std::uint32_t name = 0;  ///< number of the kernel
  std::int64_t calls = 0, self = 0, total = 0, longest = 0;
};

/// Time inside of a kernel, in whatever layer.
struct ProfileKernel {
  Label kernel;
  std::int64_t total = 0;
};

/// One event of the trace.
struct TracedEvent {
  std::int64_t begun;
  std::int64_t duration;  ///< negative: it has not ended
  std::uint32_t calls;    ///< which of the log's
};

/// A lock that is nearly always free: one exchange to take it.
class ProfileGate {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

/// What one log holds, copied.
struct ProfileCopy {
  std::vector<ProfileCalls> calls;
  std::vector<ProfileKernel> kernels;
  std::int64_t dropped = 0;
};

/// The events of one thread. `begin` and `end` are for that thread alone, the rest for all.
class ProfileLog {
 public:
  /// `before`: the log of the profile before, while events of it are open on this thread.
  ProfileLog(std::size_t trace_events, std::shared_ptr<ProfileLog> before)
      : capacity_(trace_events), trace_(new TracedEvent[trace_events]), before_(std::move(before)) {
    stack_.reserve(64);
    slots_.resize(256);
  }

  void begin(std::string_view kernel, Scope layer);
  void end();
  /// Whether events of this log or of those before it have not ended.
  bool open() const { return !stack_.empty() || (before_ && before_->open()); }

  /// From now on nothing is counted.
  void close();
  /// And the memory of what was is given back.
  void release();
  ProfileCopy copy() const;
  /// f(calls, events) while the thread waits.
  template <class F>
  void read(const F& f) const {
    const std::lock_guard lock(gate_);
    f(std::span<const ProfileCalls>(calls_), std::span<const TracedEvent>(trace_.get(), traced_));
  }

 private:
  /// An event that has begun.
  struct Open {
    std::uint32_t calls;
    std::size_t event;  ///< of the trace
    std::int64_t begun, inside;
  };
  /// Where calls are found.
  struct Slot {
    std::size_t key = 0;
    std::uint32_t calls = 0;
    bool used = false;
  };
  std::uint32_t find(std::string_view kernel, Scope layer);
  std::uint32_t add(std::string_view kernel, Scope layer);
  void put(const Slot& s);

  // Of the thread.
  std::vector<Open> stack_;
  std::vector<Slot> slots_;  ///< open addressing
  std::size_t used_ = 0;     ///< of them
  std::map<std::pair<std::string_view, const char*>, std::uint32_t> by_text_;
  std::vector<std::uint32_t> open_calls_, open_kernels_;  ///< how many events are open, by number
  std::size_t next_event_ = 0;
  std::size_t capacity_;

  // Behind the gate.
  mutable ProfileGate gate_;
  std::vector<ProfileCalls> calls_;
  std::vector<ProfileKernel> kernels_;
  std::unique_ptr<TracedEvent[]> trace_;
  std::size_t traced_ = 0;  ///< events that have a value
  std::int64_t dropped_ = 0;
  bool closed_ = false;

  std::shared_ptr<ProfileLog> before_;
};

/// What a profile counts.
class ProfileSession {
 public:
  explicit ProfileSession(const ProfileOptions& options) : options_(options), begun_(profile_clock()) {}

  std::shared_ptr<ProfileLog> new_log(std::shared_ptr<ProfileLog> before);
  void stop();
  void release();
  std::int64_t begun() const { return begun_; }
  std::int64_t duration() const;
  std::size_t trace_events() const { return options_.trace_events; }
  /// In the order in which their threads came.
  std::vector<std::shared_ptr<ProfileLog>> logs() const;

 private:
  const ProfileOptions options_;
  const std::int64_t begun_;
  mutable std::mutex mutex_;
  std::int64_t ended_ = 0;
  std::vector<std::shared_ptr<ProfileLog>> logs_;
};

/// Makes it the profile that runs. Throws ProfileError while another one does.
void begin_profile(const std::shared_ptr<ProfileSession>& session);
/// Ends it, if it runs.
void end_profile(const std::shared_ptr<ProfileSession>& session);

}  // namespace ferrite::detail
