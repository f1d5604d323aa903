/// Events as they begin and end: the log of each thread, and the profile that runs.
#include "ferrite/tensor/detail/profile_log.h"

#include <algorithm>
#include <bit>

#include "ferrite/tensor/anomaly.h"

namespace ferrite::detail {

constinit std::atomic<bool> profile_runs = false;

// ---- one thread ----------------------------------------------------------------------------------------

/// By addresses, which are quick to hash; texts are compared, for another one may have come to stand there.
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

/// The number of a kernel in a layer: one text may stand at several addresses. What throws has added nothing.
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

/// The profile that runs, if one does.
struct Running {
  std::mutex mutex;
  std::shared_ptr<ProfileSession> session;
  std::uint64_t last = 0;  ///< how many there were
  int watchers = 0;        ///< others who look at every kernel
};
Running& running() {
  static auto* const r = new Running;  // events may come until the process ends
  return *r;
}
/// Which of all profiles runs; 0: none.
constinit std::atomic<std::uint64_t> number = 0;

/// The log of this thread.
struct OwnLog {
  std::shared_ptr<ProfileLog> log;
  std::uint64_t of = 0;  ///< which profile
  ~OwnLog();
};
thread_local constinit bool thread_ends = false;
OwnLog::~OwnLog() { thread_ends = true; }

OwnLog& own_log() {
  thread_local OwnLog own;
  return own;
}

ProfileLog* log_of_thread() {
  if (thread_ends) return nullptr;
  OwnLog& own = own_log();
  const std::uint64_t now = number.load(std::memory_order_acquire);
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

/// Makes it the one that runs.
void begin_profile(const std::shared_ptr<ProfileSession>& session) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.session)
    throw ProfileError("profile: another profile of this process runs; stop it first, it sees all threads");
  r.session = session;
  number.store(++r.last, std::memory_order_release);
  profile_runs.store(true, std::memory_order_relaxed);
}

void end_profile(const std::shared_ptr<ProfileSession>& session) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.session != session) return;
  profile_runs.store(r.watchers > 0, std::memory_order_relaxed);
  number.store(0, std::memory_order_release);
  r.session = nullptr;
  session->stop();
}

void count_watchers(int change) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  r.watchers += change;
  profile_runs.store(r.session || r.watchers > 0, std::memory_order_relaxed);
}

}  // namespace ferrite::detail
