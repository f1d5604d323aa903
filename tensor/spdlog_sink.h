#pragma once
/// Sends the library's log to a logger of spdlog. A program that includes this header needs spdlog; the library does
/// not.
#include <spdlog/logger.h>

#include <memory>
#include <utility>

#include "ferrite/tensor/log.h"

namespace ferrite {

/// Returns a sink for set_log_sink that hands every line to `logger` at spdlog's level of the same name. A null logger
/// gives an empty sink, which turns logging off.
inline LogSink spdlog_sink(std::shared_ptr<spdlog::logger> logger) {
  if (!logger) return {};
  return [logger = std::move(logger)](LogLevel level, std::string_view line) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    logger->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(line.data(), line.size()));
  };
}

}  // namespace ferrite
