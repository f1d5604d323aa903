/// Log lines that go to a logger of spdlog.
#include <spdlog/sinks/ostream_sink.h>

#include <boost/test/unit_test.hpp>
#include <memory>
#include <sstream>
#include <string>

#include "ferrite/tensor/log.h"
#include "ferrite/tensor/spdlog_sink.h"

BOOST_AUTO_TEST_SUITE(log_lines_to_spdlog)

BOOST_AUTO_TEST_CASE(lines_come_as_they_are_with_their_level) {
  using namespace ferrite;
  std::ostringstream out;
  const auto logger = std::make_shared<spdlog::logger>("mine", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  logger->set_pattern("%n %l %v");
  logger->set_level(spdlog::level::debug);
  set_log_sink(spdlog_sink(logger), LogLevel::debug);
  detail::log_debug("{} braces {:d}");
  detail::log_info("two");
  detail::log_warning("three");
  detail::log(LogLevel::error, "four");
  logger->set_level(spdlog::level::err);
  detail::log_warning("below the logger's own level");
  set_log_sink(spdlog_sink(nullptr));
  BOOST_TEST(!detail::log_enabled(LogLevel::error));
  detail::log(LogLevel::error, "to nobody");
  std::string wanted;
  for (const char* line : {"debug {} braces {:d}", "info two", "warning three", "error four"})
    wanted += "mine " + std::string(line) + spdlog::details::os::default_eol;
  BOOST_TEST(out.str() == wanted);
}

BOOST_AUTO_TEST_SUITE_END()
