/// The log: where lines go, and from which level.
#include "ferrite/tensor/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

namespace ferrite {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: break;
  }
  return spdlog::level::err;
}

LogLevel level_of(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::debug;
  if (level == spdlog::level::info) return LogLevel::info;
  if (level == spdlog::level::warn) return LogLevel::warning;
  return LogLevel::error;
}

/// Hands lines to the user's function. The lock is recursive: the function may call into the library, which may log.
class FunctionSink final : public spdlog::sinks::sink {
 public:
  explicit FunctionSink(LogSink function) : function_(std::move(function)) {}

  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard guard(lock_);
    function_(level_of(message.level), std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::recursive_mutex lock_;
  LogSink function_;
};

using Logger = std::shared_ptr<spdlog::logger>;

/// A logger named `ferrite`, kept out of spdlog's global registry: the program around us may use that.
Logger make_logger(spdlog::sink_ptr sink, spdlog::level::level_enum lowest) {
  auto logger = std::make_shared<spdlog::logger>("ferrite", std::move(sink));
  logger->set_level(lowest);
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

Logger logger_of_environment() {
  const char* wish = std::getenv("FERRITE_LOG");
  if (wish == nullptr) return nullptr;
  const std::string_view level(wish);
  if (level != "info" && level != "debug") return nullptr;
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_pattern("%n: %v");
  return make_logger(std::move(sink), level == "info" ? spdlog::level::info : spdlog::level::debug);
}

/// The one logger; null while nobody listens. Replaced whole, so that a thread that is logging keeps its own.
struct Place {
  Logger logger = logger_of_environment();
  std::mutex lock;
};

Place& place() {
  static Place p;
  return p;
}

Logger current() {
  Place& p = place();
  const std::lock_guard guard(p.lock);
  return p.logger;
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel lowest) {
  Logger next;
  if (sink) next = make_logger(std::make_shared<FunctionSink>(std::move(sink)), spdlog_level(lowest));
  Place& p = place();
  const std::lock_guard guard(p.lock);
  p.logger.swap(next);
}

namespace detail {

bool log_enabled(LogLevel level) noexcept {
  try {
    const Logger logger = current();
    return logger && logger->should_log(spdlog_level(level));
  } catch (...) {
    return false;
  }
}

void log(LogLevel level, std::string_view line) noexcept {
  try {
    const Logger logger = current();
    if (logger) logger->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {
    return;  // a log line is never worth an error
  }
}

}  // namespace detail
}  // namespace ferrite
