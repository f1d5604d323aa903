/// Profiles: events as they begin and end, the log of each thread, and the results: rows, a table, a trace.
#include "ferrite/tensor/profiler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <thread>
#include <vector>

#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite {

// ---- the records of a profile: a log for each thread -----------------------------------------------------

namespace detail {

/// Returns the time of the monotonic clock, in nanoseconds.
inline std::int64_t profile_clock() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The calls of one kernel in one layer on one thread.
struct ProfileCalls {
  Label kernel;
  Scope layer;
  std::uint32_t name = 0;  ///< number of the kernel
  std::int64_t calls = 0, self = 0, total = 0, longest = 0;
};

/// The time inside a kernel, in all layers.
struct ProfileKernel {
  Label kernel;
  std::int64_t total = 0;
};

/// One event of the trace.
struct TracedEvent {
  std::int64_t begun;
  std::int64_t duration;  ///< negative: it has not ended
  std::uint32_t calls;    ///< index into the calls of the log
};

/// A lock that is nearly always free: taking it is one exchange.
class ProfileGate {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

/// A copy of the contents of one log.
struct ProfileCopy {
  std::vector<ProfileCalls> calls;
  std::vector<ProfileKernel> kernels;
  std::int64_t dropped = 0;
};

/// The events of one thread. Only that thread calls `begin` and `end`; any thread may call the other functions.
class ProfileLog {
 public:
  /// `before` is the log of the previous profile, while events of it are open on this thread.
  ProfileLog(std::size_t trace_events, std::shared_ptr<ProfileLog> before)
      : capacity_(trace_events), trace_(new TracedEvent[trace_events]), before_(std::move(before)) {
    stack_.reserve(64);
    slots_.resize(256);
  }

  void begin(std::string_view kernel, Scope layer);
  void end();
  /// Returns whether events of this log or of earlier ones have not ended.
  bool open() const { return !stack_.empty() || (before_ && before_->open()); }

  /// Stops counting.
  void close();
  /// Stops counting and frees the memory of the trace.
  void release();
  ProfileCopy copy() const;
  /// Calls f(calls, events) while the thread waits.
  template <class F>
  void read(const F& f) const {
    const std::lock_guard lock(gate_);
    f(std::span<const ProfileCalls>(calls_), std::span<const TracedEvent>(trace_.get(), traced_));
  }

 private:
  /// An event that has begun and not ended.
  struct Open {
    std::uint32_t calls;
    std::size_t event;  ///< index in the trace
    std::int64_t begun, inside;
  };
  /// An entry of the table in which calls are found.
  struct Slot {
    std::size_t key = 0;
    std::uint32_t calls = 0;
    bool used = false;
  };
  std::uint32_t find(std::string_view kernel, Scope layer);
  std::uint32_t add(std::string_view kernel, Scope layer);
  void put(const Slot& s);

  // Used by the thread only.
  std::vector<Open> stack_;
  std::vector<Slot> slots_;  ///< hash table with open addressing
  std::size_t used_ = 0;     ///< number of slots in use
  std::map<std::pair<std::string_view, const char*>, std::uint32_t> by_text_;
  std::vector<std::uint32_t> open_calls_, open_kernels_;  ///< numbers of open events, by index
  std::size_t next_event_ = 0;
  std::size_t capacity_;

  // Protected by the gate.
  mutable ProfileGate gate_;
  std::vector<ProfileCalls> calls_;
  std::vector<ProfileKernel> kernels_;
  std::unique_ptr<TracedEvent[]> trace_;
  std::size_t traced_ = 0;  ///< events that have a value
  std::int64_t dropped_ = 0;
  bool closed_ = false;

  std::shared_ptr<ProfileLog> before_;
};

/// The logs of a profile and its times.
class ProfileSession {
 public:
  explicit ProfileSession(const ProfileOptions& options) : options_(options), begun_(profile_clock()) {}

  std::shared_ptr<ProfileLog> new_log(std::shared_ptr<ProfileLog> before);
  void stop();
  void release();
  std::int64_t begun() const { return begun_; }
  std::int64_t duration() const;
  std::size_t trace_events() const { return options_.trace_events; }
  /// Returns the logs in the order in which their threads came.
  std::vector<std::shared_ptr<ProfileLog>> logs() const;

 private:
  const ProfileOptions options_;
  const std::int64_t begun_;
  mutable std::mutex mutex_;
  std::int64_t ended_ = 0;
  std::vector<std::shared_ptr<ProfileLog>> logs_;
};

constinit std::atomic<bool> profile_runs = false;

// ---- one thread ----------------------------------------------------------------------------------------

/// Returns the number of a kernel in a layer. Hashes addresses, which is fast, and compares texts, since another one
/// may be at the same address by now.
std::uint32_t ProfileLog::find(std::string_view kernel, Scope layer) {
  const char* const path = layer.path().data();
  const std::size_t key =
      (std::bit_cast<std::size_t>(kernel.data()) * 31 + std::bit_cast<std::size_t>(path)) * 0x9E3779B97F4A7C15U >> 16;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = key & mask; slots_[at].used; at = (at + 1) & mask) {
    const Slot& s = slots_[at];
    const ProfileCalls& c = calls_[s.calls];
    if (s.key == key && c.layer == layer && c.kernel.text() == kernel) return s.calls;
  }
  const Slot fresh{key, add(kernel, layer), true};
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.used) put(s);
  }
  put(fresh);
  ++used_;
  return fresh.calls;
}

void ProfileLog::put(const Slot& s) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = s.key & mask;
  while (slots_[at].used) at = (at + 1) & mask;
  slots_[at] = s;
}

/// Adds a kernel in a layer and returns its number: one text may be at several addresses. Adds nothing when it throws.
std::uint32_t ProfileLog::add(std::string_view kernel, Scope layer) {
  static const char any_layer = 0;
  const Label name = Label::of(kernel);
  open_calls_.resize(calls_.size() + 1);
  open_kernels_.resize(kernels_.size() + 1);
  const std::lock_guard lock(gate_);
  const auto numbered = [this](auto& list, std::string_view text, const char* path, const auto& item) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 16);
    const auto [at, fresh] = by_text_.try_emplace({text, path}, static_cast<std::uint32_t>(list.size()));
    if (fresh) list.push_back(item);
    return at->second;
  };
  const std::uint32_t number = numbered(kernels_, name.text(), &any_layer, ProfileKernel{name});
  return numbered(calls_, name.text(), layer.path().data(), ProfileCalls{name, layer, number});
}

void ProfileLog::begin(std::string_view kernel, Scope layer) {
  if (!stack_.empty()) layer = layer.or_else(calls_[stack_.back().calls].layer);
  const std::uint32_t calls = find(kernel, layer);
  stack_.push_back({calls, next_event_, 0, 0});
  ++next_event_;
  ++open_calls_[calls];
  ++open_kernels_[calls_[calls].name];
  stack_.back().begun = profile_clock();
}

void ProfileLog::end() {
  const std::int64_t now = profile_clock();
  const Open e = stack_.back();
  stack_.pop_back();
  const std::int64_t duration = now - e.begun;
  if (!stack_.empty()) stack_.back().inside += duration;
  const std::lock_guard lock(gate_);
  ProfileCalls& c = calls_[e.calls];
  const bool outermost = --open_calls_[e.calls] == 0, outermost_kernel = --open_kernels_[c.name] == 0;
  if (closed_) return;
  ++c.calls;
  c.self += duration - e.inside;
  c.longest = std::max(c.longest, duration);
  if (outermost) c.total += duration;
  if (outermost_kernel) kernels_[c.name].total += duration;
  if (e.event >= capacity_) {
    ++dropped_;
    return;
  }
  while (traced_ <= e.event) trace_[traced_++].duration = -1;
  trace_[e.event] = {e.begun, duration, e.calls};
}

void ProfileLog::close() {
  const std::lock_guard lock(gate_);
  closed_ = true;
}

void ProfileLog::release() {
  const std::lock_guard lock(gate_);
  closed_ = true;
  traced_ = 0;
  trace_.reset();
}

ProfileCopy ProfileLog::copy() const {
  const std::lock_guard lock(gate_);
  return {calls_, kernels_, dropped_};
}

// ---- all threads ---------------------------------------------------------------------------------------

std::shared_ptr<ProfileLog> ProfileSession::new_log(std::shared_ptr<ProfileLog> before) {
  auto log = std::make_shared<ProfileLog>(options_.trace_events, std::move(before));
  const std::lock_guard lock(mutex_);
  if (ended_) return nullptr;
  logs_.push_back(log);
  return log;
}

void ProfileSession::stop() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = profile_clock();
  for (const auto& log : logs_) log->close();
}

void ProfileSession::release() {
  for (const auto& log : logs()) log->release();
}

std::int64_t ProfileSession::duration() const {
  const std::lock_guard lock(mutex_);
  return (ended_ ? ended_ : profile_clock()) - begun_;
}

std::vector<std::shared_ptr<ProfileLog>> ProfileSession::logs() const {
  const std::lock_guard lock(mutex_);
  return logs_;
}

namespace {

/// The profile that runs, if there is one.
struct Running {
  std::mutex mutex;
  std::shared_ptr<ProfileSession> session;
  std::uint64_t last = 0;  ///< number of the latest profile
  int watchers = 0;        ///< other watchers of all kernels
};
Running& running() {
  static auto* const r = new Running;  // events may come until the process ends
  return *r;
}
/// The number of the profile that runs; 0: none.
constinit std::atomic<std::uint64_t> run_number = 0;

/// The log of this thread.
struct OwnLog {
  std::shared_ptr<ProfileLog> log;
  std::uint64_t of = 0;  ///< number of the profile
  ~OwnLog();
};
FERRITE_PER_THREAD constinit PerThread<bool> thread_ends(false);
OwnLog::~OwnLog() { thread_ends() = true; }

OwnLog& own_log() { return object_of_thread<OwnLog>(); }

ProfileLog* log_of_thread() {
  if (thread_ends()) return nullptr;
  OwnLog& own = own_log();
  const std::uint64_t now = run_number.load(std::memory_order_acquire);
  if (own.of == now) return own.log.get();
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (!r.session) return nullptr;
  std::shared_ptr<ProfileLog> before = own.log && own.log->open() ? own.log : nullptr;
  own.log = r.session->new_log(std::move(before));
  own.of = r.last;
  return own.log.get();
}

}  // namespace

ProfileLog* ProfileEvent::begin(std::string_view kernel, Scope layer) noexcept {
  try {
    ProfileLog* const log = log_of_thread();
    if (log) log->begin(kernel, layer);
    return log;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void ProfileEvent::end(ProfileLog& log) noexcept { log.end(); }

/// Makes a profile the one that runs. Throws ProfileError if another one does.
void begin_profile(const std::shared_ptr<ProfileSession>& session) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.session)
    throw ProfileError("profile: another profile of this process runs; stop it first, it sees all threads");
  r.session = session;
  run_number.store(++r.last, std::memory_order_release);
  profile_runs.store(true, std::memory_order_relaxed);
}

/// Ends a profile, if it is the one that runs.
void end_profile(const std::shared_ptr<ProfileSession>& session) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.session != session) return;
  profile_runs.store(r.watchers > 0, std::memory_order_relaxed);
  run_number.store(0, std::memory_order_release);
  r.session = nullptr;
  session->stop();
}

void count_watchers(int change) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  r.watchers += change;
  profile_runs.store(r.session || r.watchers > 0, std::memory_order_relaxed);
}

}  // namespace detail

// ---- results of a profile ---------------------------------------------------------------------------------

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMostEvents = std::size_t{1} << 31;

// ---- rows ----------------------------------------------------------------------------------------------

/// Returns whether all layers of a list "a, b" are `outer` or inside it.
bool is_in(std::string_view layers, std::string_view outer) {
  while (true) {
    const std::size_t comma = layers.find(", ");
    const std::string_view first = layers.substr(0, comma);
    if (!first.starts_with(outer) || (first.size() > outer.size() && first[outer.size()] != '.')) return false;
    if (comma == std::string_view::npos) return true;
    layers.remove_prefix(comma + 2);
  }
}

/// The calls of all threads, joined.
class Joined {
 public:
  explicit Joined(ProfileBy by) : by_(by) {}

  void add(const detail::ProfileCopy& of) {
    for (const detail::ProfileCalls& c : of.calls) {
      if (!c.calls) continue;
      const bool kernels = by_ != ProfileBy::layer, layers = by_ != ProfileBy::kernel;
      ProfileRow& row =
          row_of(kernels ? c.kernel.text() : std::string_view(), layers ? c.layer.path() : std::string_view());
      row.calls += c.calls;
      row.self += nanoseconds(c.self);
      row.longest = std::max(row.longest, nanoseconds(c.longest));
      if (kernels && layers) row.total += nanoseconds(c.total);
    }
    if (by_ != ProfileBy::kernel) return;
    for (const detail::ProfileKernel& k : of.kernels)
      if (k.total) row_of(k.kernel.text(), {}).total += nanoseconds(k.total);
  }

  std::vector<ProfileRow> take() {
    std::vector<ProfileRow> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    if (by_ == ProfileBy::layer)
      for (ProfileRow& outer : rows)
        for (const ProfileRow& row : rows)
          if (row.layer == outer.layer || (!outer.layer.empty() && is_in(row.layer, outer.layer)))
            outer.total += row.self;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ProfileRow& a, const ProfileRow& b) { return a.self > b.self; });
    return rows;
  }

 private:
  ProfileRow& row_of(std::string_view kernel, std::string_view layer) {
    ProfileRow& row = rows_[{kernel, layer}];
    row.kernel = kernel;
    row.layer = layer;
    return row;
  }

  ProfileBy by_;
  std::map<std::pair<std::string_view, std::string_view>, ProfileRow> rows_;  ///< texts that live as long as the
                                                                              ///< process
};

// ---- texts ---------------------------------------------------------------------------------------------

/// Formats x with `digits` digits after the point, whatever the locale.
std::string number(double x, int digits) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}
std::string milliseconds(nanoseconds t) { return number(static_cast<double>(t.count()) * 1e-6, 3); }

std::string counted(std::int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

/// Returns a name as a terminal may show it: without control characters, and not too long.
std::string shown(const std::string& name, const char* none) {
  constexpr std::size_t kLongest = 48;
  if (name.empty()) return none;
  std::string s = name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
  for (char& c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return s;
}

/// Aligns columns to their widest entry: texts to the left, then numbers to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t texts) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string s;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      s += (i ? "  " : "") + (i < texts ? row[i] + blanks : blanks + row[i]);
    }
    s += '\n';
  }
  return s;
}

// ---- JSON ----------------------------------------------------------------------------------------------

/// Returns the number of bytes of the UTF-8 character that s begins with; 0: it is invalid.
std::size_t character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const std::size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (n == 1) return 1;
  if (first < 0xc2 || first > 0xf4 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : n;
}

/// Returns a JSON string; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string s = "\"";
  while (!text.empty()) {
    const std::size_t n = character(text);
    const char c = text[0];
    if (n == 0) {
      s += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      s += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      s += std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
    } else {
      s += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return s + '"';
}

/// Formats nanoseconds as microseconds, with all digits.
std::string microseconds(std::int64_t ns) {
  const std::string below = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + '.' + std::string(3 - below.size(), '0') + below;
}

std::string metadata(const std::string& name, std::size_t thread, const std::string& value) {
  return R"({"ph":"M","pid":1,"tid":)" + std::to_string(thread) + R"(,"name":")" + name + R"(","args":{"name":)" +
         json_string(value) + "}}";
}

}  // namespace

Profile::Profile(const ProfileOptions& options) {
  if (options.trace_events > kMostEvents)
    throw ValueError("profile: trace_events must be at most " + std::to_string(kMostEvents) + ", got " +
                     std::to_string(options.trace_events));
  session_ = std::make_shared<detail::ProfileSession>(options);
  detail::begin_profile(session_);
}

Profile::~Profile() {
  stop();
  session_->release();
}

void Profile::stop() { detail::end_profile(session_); }

nanoseconds Profile::duration() const { return nanoseconds(session_->duration()); }
std::size_t Profile::threads() const { return session_->logs().size(); }

std::int64_t Profile::dropped() const {
  std::int64_t n = 0;
  for (const auto& log : session_->logs()) n += log->copy().dropped;
  return n;
}

std::vector<ProfileRow> Profile::rows(ProfileBy by) const {
  Joined joined(by);
  for (const auto& log : session_->logs()) joined.add(log->copy());
  return joined.take();
}

std::string Profile::table(ProfileBy by, std::size_t most) const {
  const nanoseconds all = duration();
  const std::vector<ProfileRow> rows = this->rows(by);
  nanoseconds sum{};
  std::int64_t calls = 0;
  for (const ProfileRow& row : rows) sum += row.self, calls += row.calls;
  std::string text = "profile: " + milliseconds(all) + " ms, in which " + counted(calls, "call") + " on " +
                     counted(static_cast<std::int64_t>(threads()), "thread") + " took " + milliseconds(sum) + " ms\n";
  const double whole = std::max<double>(static_cast<double>(sum.count()), 1);
  const bool kernels = by != ProfileBy::layer, layers = by != ProfileBy::kernel;
  std::vector<std::vector<std::string>> cells;
  const auto add = [&](const std::string& kernel, const std::string& layer, std::vector<std::string> numbers) {
    if (layers) numbers.insert(numbers.begin(), layer);
    if (kernels) numbers.insert(numbers.begin(), kernel);
    cells.push_back(std::move(numbers));
  };
  add("kernel", "layer", {"calls", "self ms", "self %", "total ms", "self us/call", "max us"});
  const std::size_t n = most ? std::min(most, rows.size()) : rows.size();
  for (const ProfileRow& r : std::span(rows).first(n)) {
    const auto self = static_cast<double>(r.self.count());
    add(shown(r.kernel, ""), shown(r.layer, "(no layer)"),
        {std::to_string(r.calls), milliseconds(r.self), number(100 * self / whole, 1), milliseconds(r.total),
         number(1e-3 * self / static_cast<double>(r.calls), 3),
         number(1e-3 * static_cast<double>(r.longest.count()), 3)});
  }
  text += aligned(cells, (kernels ? 1U : 0U) + (layers ? 1U : 0U));
  if (n < rows.size()) text += counted(static_cast<std::int64_t>(rows.size() - n), "row") + " more\n";
  if (const std::int64_t lost = dropped())
    text += "the trace lacks " + counted(lost, "event") + " of these: it holds " +
            std::to_string(session_->trace_events()) + " of each thread\n";
  return text;
}

void Profile::chrome_trace(std::ostream& out) const {
  const auto write = [&](const std::string& s) { out.write(s.data(), static_cast<std::streamsize>(s.size())); };
  write(R"({"displayTimeUnit":"ns","otherData":{"library":"ferrite","dropped":")" + std::to_string(dropped()) +
        "\"},\"traceEvents\":[\n" + metadata("process_name", 0, "ferrite"));
  std::size_t thread = 0;
  for (const auto& log : session_->logs()) {
    ++thread;
    write(",\n" + metadata("thread_name", thread, "thread " + std::to_string(thread)));
    const std::string track = R"({"ph":"X","pid":1,"tid":)" + std::to_string(thread) + R"(,"ts":)";
    std::vector<detail::TracedEvent> events;
    log->read([&](auto, std::span<const detail::TracedEvent> all) { events.assign(all.begin(), all.end()); });
    std::vector<std::string> names;
    for (const detail::ProfileCalls& c : log->copy().calls)
      names.push_back(R"(,"cat":"kernel","name":)" + json_string(c.kernel.text()) + R"(,"args":{"layer":)" +
                      json_string(c.layer.path()) + "}}");
    for (const detail::TracedEvent& e : events)
      if (e.duration >= 0)
        write(",\n" + track + microseconds(e.begun - session_->begun()) + R"(,"dur":)" + microseconds(e.duration) +
              names[e.calls]);
  }
  write("\n]}\n");
}

}  // namespace ferrite
