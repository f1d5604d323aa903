#pragma once
/// Profiles: how often each kernel runs, how long it takes, and in which layer.
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/tensor/error.h"

namespace ferrite {

namespace detail {
class ProfileSession;
}

/// Thrown when a `Profile` is constructed while another one of this process runs.
class ProfileError : public Error {
 public:
  using Error::Error;
};

/// Options of `Profile`: how many events it keeps for the trace.
struct ProfileOptions {
  /// Number of events of each thread that the trace holds, 24 bytes each; the table counts all. Memory is reserved when
  /// a thread first runs something, and used as events come.
  std::size_t trace_events = std::size_t{1} << 18;
};

/// What one row of a profile counts: one kernel in one layer, one kernel in all layers, or one layer.
enum class ProfileBy : std::uint8_t { kernel_and_layer, kernel, layer };

/// The calls of one kernel in one layer, of one kernel, or in one layer.
struct ProfileRow {
  std::string kernel;  ///< "matmul", or "sub exp sum" for a step of a plan; empty where rows are layers
  std::string layer;   ///< path: "encoder.0", or "encoder.0, head" for a kernel that serves several; empty: none
  std::int64_t calls = 0;
  std::chrono::nanoseconds self{};  ///< time of all calls without the events inside
  /// Time of all calls with the events inside. For a layer: the self times of this layer and of those in it.
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds longest{};  ///< the longest call, with the events inside
  bool operator==(const ProfileRow&) const = default;
};

/// Measures the time of everything that runs in this process, on all threads, from its construction until `stop` or its
/// end:
///
///   Profile profile;
///   for (int i = 0; i < 100; ++i) net(x);
///   profile.stop();
///   std::cout << profile.table();
///   std::ofstream file("trace.json");
///   profile.chrome_trace(file);  // for ui.perfetto.dev or chrome://tracing
///
/// An event is a call of one kernel: an operation that runs eagerly, gradients and optimisers among them; a step of a
/// plan, one fused kernel or one operation ("compiled" is the call around them, "plan" the making of a plan); what runs
/// in the body of a scan; a layer's step in a stream ("gru step"; "gru steps": several at once). Views are events of
/// eager execution alone. A fused recurrent layer is one event for all its steps. Events that run inside others nest.
/// Work shared by the pool of threads is one event of the thread that called it.
///
/// Results and plans are the same with a profile as without. While none runs, a call costs one test of a flag; while
/// one does, each event costs two readings of the clock and about as much again, which counts towards the enclosing
/// event, not its own. Events still running when the profile ends are not counted. All functions may be called while it
/// runs, on any thread.
class Profile {
 public:
  /// Begins a profile. Throws ProfileError while another profile of this process runs.
  explicit Profile(const ProfileOptions& options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Ends the profile; its counts remain. A second call does nothing.
  void stop();
  /// Returns the time from the beginning of the profile to its end, or until now.
  std::chrono::nanoseconds duration() const;
  /// Returns the number of threads on which something ran.
  std::size_t threads() const;
  /// Returns the number of events that did not fit the trace.
  std::int64_t dropped() const;

  /// Returns the rows, those with the longest self time first.
  std::vector<ProfileRow> rows(ProfileBy by = ProfileBy::kernel_and_layer) const;
  /// Returns a line for the whole, then one for each row: kernel, layer, calls, self time in ms and in percent of the
  /// total, total time in ms, self time of a call and the longest call in us. If `most` is above 0, at most that many
  /// rows follow, and the last line says how many are left out.
  std::string table(ProfileBy by = ProfileBy::kernel_and_layer, std::size_t most = 0) const;
  /// Writes all events as JSON in the Trace Event format, which Perfetto (ui.perfetto.dev), chrome://tracing and
  /// speedscope open: complete events with times in microseconds, a track for each thread.
  void chrome_trace(std::ostream& out) const;

 private:
  std::shared_ptr<detail::ProfileSession> session_;
};

}  // namespace ferrite
