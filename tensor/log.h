#pragma once
/// The log of the library: off until a sink or FERRITE_LOG turns it on.
#include <cstdint>
#include <functional>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// The severity of a log line, rising from debug to error.
enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// Receives log lines without a final newline, from the thread that logs, one thread at a time. It may call into
/// the library; exceptions that it throws are dropped.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Sends the library's log (what was loaded, transposed or converted; which form a layer took and why) to `sink`, from
/// the level `lowest` upwards. An empty sink turns logging off. Without a call the library is silent, unless the
/// environment holds FERRITE_LOG=info or FERRITE_LOG=debug, which send the lines to stderr. A thread that is logging at
/// the same time may still use the previous sink.
void set_log_sink(LogSink sink, LogLevel lowest = LogLevel::info);

namespace detail {

/// Returns whether lines of this level are logged: ask before building a costly line.
bool log_enabled(LogLevel level) noexcept;
void log(LogLevel level, std::string_view line) noexcept;
inline void log_debug(std::string_view line) noexcept { log(LogLevel::debug, line); }
inline void log_info(std::string_view line) noexcept { log(LogLevel::info, line); }
inline void log_warning(std::string_view line) noexcept { log(LogLevel::warning, line); }

}  // namespace detail
}  // namespace ferrite
