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

/// A profile was begun while another one ran.
class ProfileError : public Error {
 public:
  using Error::Error;
};

struct ProfileOptions {
  /// How many events of each thread the trace holds, 24 bytes each; the table counts all. Memory is asked for when a
  /// thread first runs something, and used as events come.
  std::size_t trace_events = std::size_t{1} << 18;
};

/// What the rows of a profile are.
enum class ProfileBy : std::uint8_t { kernel_and_layer, kernel, layer };

/// Calls of one kernel in one layer, or of a kernel, or in a layer.
struct ProfileRow {
  std::string kernel;  ///< "matmul", of a plan's step "sub exp sum"; empty where rows are layers
  std::string layer;   ///< its path: "encoder.0", of a kernel that serves several "encoder.0, head"; empty: none
  std::int64_t calls = 0;
  std::chrono::nanoseconds self{};  ///< without the events inside
  /// With the events inside. Of a layer: the self times of this layer and of those in it.
  std::chrono::nanoseconds total{};
  std::chrono::nanoseconds longest{};  ///< call, with the events inside
  bool operator==(const ProfileRow&) const = default;
};

/// Times what runs in this process, on all threads, from its construction until `stop` or its end:
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
/// What the pool of threads shares is one event of the thread that called it.
///
/// Results and plans are the same with a profile as without. Where none runs, a call costs one test of a flag; where
/// one does, each event costs two readings of the clock and about as much again, which the event around it, not its
/// own, includes. What runs when the profile ends is not counted. All functions may be called while it runs, on any
/// thread.
class Profile {
 public:
  /// Begins. Throws ProfileError while another profile of this process runs.
  explicit Profile(const ProfileOptions& options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Ends; what was counted stays. A second call does nothing.
  void stop();
  /// From its beginning to its end, or until now.
  std::chrono::nanoseconds duration() const;
  /// Threads on which something ran.
  std::size_t threads() const;
  /// Events that the trace had no place for.
  std::int64_t dropped() const;

  /// Those with the longest self time first.
  std::vector<ProfileRow> rows(ProfileBy by = ProfileBy::kernel_and_layer) const;
  /// A line for the whole, then one for each row: kernel, layer, calls, self time in ms and in percent of the sum of
  /// all, total time in ms, self time of a call and the longest call in us. With `most` above 0 that many rows, the
  /// last line says how many are left out.
  std::string table(ProfileBy by = ProfileBy::kernel_and_layer, std::size_t most = 0) const;
  /// Writes all events as JSON in the Trace Event format, which Perfetto (ui.perfetto.dev), chrome://tracing and
  /// speedscope open: complete events with times in microseconds, a track for each thread.
  void chrome_trace(std::ostream& out) const;

 private:
  std::shared_ptr<detail::ProfileSession> session_;
};

}  // namespace ferrite
