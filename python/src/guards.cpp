// Profiles, guards, threads and the log in Python.
#include <nanobind/stl/filesystem.h>

#include <deque>
#include <fstream>
#include <memory>
#include <mutex>

#include "ferrite/autograd/no_grad.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/profiler.h"
#include "kept.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

double milliseconds(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); }

struct ProfileKinds {
  static constexpr const char* what = "profile";
  static constexpr std::pair<ProfileBy, const char*> all[] = {
      {ProfileBy::kernel_and_layer, "kernel_and_layer"}, {ProfileBy::kernel, "kernel"}, {ProfileBy::layer, "layer"}};
  static const auto& of() { return all; }
};

}  // namespace
}  // namespace ferrite::python

template <>
struct nanobind::detail::type_caster<ferrite::ProfileBy>
    : nanobind::detail::text_caster<ferrite::ProfileBy, ferrite::python::ProfileKinds> {};

namespace ferrite::python {
namespace {

/// A profile as a context manager: it runs from `__enter__` to `__exit__`, and its counts remain.
class ProfileObject {
 public:
  explicit ProfileObject(std::size_t trace_events) : options_{.trace_events = trace_events} {}
  void begin() { profile_ = std::make_unique<Profile>(options_); }
  Profile& get() const {
    if (!profile_) throw ProfileError("profile: it has not begun; use it in a with statement");
    return *profile_;
  }

 private:
  ProfileOptions options_;
  std::unique_ptr<Profile> profile_;
};

nb::list rows_of(const ProfileObject& p, ProfileBy by) {
  nb::list all;
  for (const ProfileRow& r : p.get().rows(by))
    all.append(named_tuple("ProfileRow", {"kernel", "layer", "calls", "self_ms", "total_ms", "longest_ms"},
                           {nb::cast(r.kernel), nb::cast(r.layer), nb::int_(r.calls), nb::float_(milliseconds(r.self)),
                            nb::float_(milliseconds(r.total)), nb::float_(milliseconds(r.longest))}));
  return all;
}

void define_profile(nb::module_& m) {
  nb::class_<ProfileObject> c(
      m, "Profile",
      "Measures the time of everything that runs in this process, on all threads, inside a with statement::\n\n"
      "    with ferrite.Profile() as profile:\n        net(x)\n    print(profile.table())\n"
      "    profile.chrome_trace(\"trace.json\")  # for ui.perfetto.dev or chrome://tracing\n\n"
      "Results are the same with a profile as without. ``trace_events`` is the number of events of each thread that "
      "the\n"
      "trace holds; the table counts all. Raises ProfileError while another profile runs.");
  c.def(nb::init<std::size_t>(), nb::kw_only(), "trace_events"_a = ProfileOptions{}.trace_events);
  c.def(
      "__enter__", [](ProfileObject& p) -> ProfileObject& { return p.begin(), p; }, nb::rv_policy::reference);
  c.def("__exit__", [](ProfileObject& p, nb::args) { p.get().stop(); });
  c.def(
      "stop", [](ProfileObject& p) { p.get().stop(); }, "Ends the profile; its counts remain.");
  c.def_prop_ro(
      "duration_ms", [](const ProfileObject& p) { return milliseconds(p.get().duration()); },
      "The time from the beginning of the profile to its end, or until now, in milliseconds.");
  c.def_prop_ro(
      "threads", [](const ProfileObject& p) { return p.get().threads(); },
      "The number of threads on which something ran.");
  c.def_prop_ro(
      "dropped", [](const ProfileObject& p) { return p.get().dropped(); },
      "The number of events that did not fit the trace.");
  c.def("rows", rows_of, "by"_a = ProfileBy::kernel_and_layer,
        "Returns the rows, those with the longest self time first, as (kernel, layer, calls, self_ms, total_ms,\n"
        "longest_ms). ``by`` is \"kernel_and_layer\", \"kernel\" or \"layer\".");
  c.def(
      "table", [](const ProfileObject& p, ProfileBy by, std::size_t most) { return p.get().table(by, most); },
      "by"_a = ProfileBy::kernel_and_layer, "most"_a = 0,
      "Returns the rows as a text table of at most ``most`` rows; 0: all.");
  c.def(
      "chrome_trace",
      [](const ProfileObject& p, const std::filesystem::path& path) {
        std::ofstream file(path);
        p.get().chrome_trace(file);
        if (!file.flush()) throw IoError(path.string() + ": cannot be written");
      },
      "path"_a, Call(),
      "Writes all events as JSON in the Trace Event format, which Perfetto, chrome://tracing and speedscope open.");
}

/// A guard of C++ that a Python object makes and ends, on one thread.
template <class Guard>
class GuardObject {
 public:
  template <class... A>
  void begin(const A&... a) {
    guard_ = std::make_unique<Guard>(a...);
  }
  void end() { guard_.reset(); }

 private:
  std::unique_ptr<Guard> guard_;
};

/// Denormals that count as zero, in calls of the library and outside of them.
struct Flushing {
  Flushing() { ++flushing; }
  ~Flushing() { --flushing; }
  FlushDenormals guard;
};

void define_guard_objects(nb::module_& m) {
  nb::class_<GuardObject<NoGrad>>(m, "_NoGrad")
      .def(nb::init<>())
      .def("begin", [](GuardObject<NoGrad>& g) { g.begin(); })
      .def("end", &GuardObject<NoGrad>::end);
  nb::class_<GuardObject<DetectAnomaly>>(m, "_DetectAnomaly")
      .def(nb::init<>())
      .def("begin",
           [](GuardObject<DetectAnomaly>& g, bool infinities) { g.begin(AnomalyOptions{.infinities = infinities}); })
      .def("end", &GuardObject<DetectAnomaly>::end);
  nb::class_<GuardObject<Flushing>>(m, "_FlushDenormals")
      .def(nb::init<>())
      .def("begin", [](GuardObject<Flushing>& g) { g.begin(); })
      .def("end", &GuardObject<Flushing>::end);
}

/// The lines of the log on their way to Python. A thread that logs may not wait for the interpreter's lock, whose owner
/// may be waiting to log, so lines are kept until the main thread of the interpreter takes them.
class LogQueue {
 public:
  static LogQueue& instance() {
    static LogQueue& queue = *new LogQueue();  // lives as long as the process
    return queue;
  }

  void add(LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(level, line);
    if (!asked_) asked_ = Py_AddPendingCall([](void*) { return instance().deliver(), 0; }, nullptr) == 0;
  }
  void send_to(nb::object to) { to_ = std::move(to); }
  /// Gives all lines to Python; the caller holds the interpreter's lock.
  void deliver() {
    std::deque<std::pair<LogLevel, std::string>> lines;
    {
      const std::lock_guard lock(mutex_);
      asked_ = false;
      lines.swap(lines_);
    }
    if (!to_.is_valid() || to_.is_none()) return;
    const nb::object to = to_;
    for (const auto& [level, line] : lines) {
      try {
        to(static_cast<int>(level), line);
      } catch (nb::python_error& e) {
        e.discard_as_unraisable("ferrite's log");
      }
    }
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<LogLevel, std::string>> lines_;
  bool asked_ = false;
  nb::object to_;
};

void define_log(nb::module_& m) {
  m.def(
      "_set_log",
      [](nb::object to, int lowest) {
        LogQueue& queue = LogQueue::instance();
        queue.deliver();
        const bool on = !to.is_none();
        queue.send_to(std::move(to));
        run([&] {
          if (on)
            set_log_sink([](LogLevel level, std::string_view line) { LogQueue::instance().add(level, line); },
                         static_cast<LogLevel>(lowest));
          else
            set_log_sink({});
        });
      },
      "to"_a.none(), "lowest"_a = 1);
  m.def("_deliver_log", [] { LogQueue::instance().deliver(); });
}

}  // namespace

void define_guards(nb::module_& m) {
  define_profile(m);
  define_guard_objects(m);
  define_log(m);
}

}  // namespace ferrite::python
