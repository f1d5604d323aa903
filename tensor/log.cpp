/// The log: the receiver of lines and its level.
#include "ferrite/tensor/log.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ferrite {
namespace {

/// The receiver of lines, and its lowest level. The lock is recursive: a sink may call into the library, which may log.
struct Listener {
  LogSink sink;
  LogLevel lowest = LogLevel::info;
  std::recursive_mutex lock;
};
using SharedListener = std::shared_ptr<Listener>;

SharedListener make_listener(LogSink sink, LogLevel lowest) {
  auto listener = std::make_shared<Listener>();
  listener->sink = std::move(sink);
  listener->lowest = lowest;
  return listener;
}

/// Writes a line to stderr, which is unbuffered, by one call: lines of several threads and processes stay whole.
void write_to_stderr(LogLevel, std::string_view line) {
  std::string whole = "ferrite: ";
  whole.append(line) += '\n';
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

SharedListener listener_of_environment() {
  const char* wish = std::getenv("FERRITE_LOG");
  if (wish == nullptr) return nullptr;
  const std::string_view level(wish);
  if (level != "info" && level != "debug") return nullptr;
  return make_listener(write_to_stderr, level == "info" ? LogLevel::info : LogLevel::debug);
}

/// The one listener; null while logging is off. Replaced as a whole, so that a thread that is logging keeps the old
/// one.
struct Place {
  SharedListener listener = listener_of_environment();
  std::mutex lock;
};

Place& place() {
  static Place p;
  return p;
}

SharedListener current() {
  Place& p = place();
  const std::lock_guard guard(p.lock);
  return p.listener;
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel lowest) {
  SharedListener next;
  if (sink) next = make_listener(std::move(sink), lowest);
  Place& p = place();
  const std::lock_guard guard(p.lock);
  p.listener.swap(next);
}

namespace detail {

bool log_enabled(LogLevel level) noexcept {
  try {
    const SharedListener listener = current();
    return listener && level >= listener->lowest;
  } catch (...) {
    return false;
  }
}

void log(LogLevel level, std::string_view line) noexcept {
  try {
    const SharedListener listener = current();
    if (!listener || level < listener->lowest) return;
    const std::lock_guard guard(listener->lock);
    listener->sink(level, line);
  } catch (...) {
    return;  // a log line is never worth an error
  }
}

}  // namespace detail
}  // namespace ferrite
