/// Log lines reach the sink that the user sets, from its level upwards, and no other.
#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/tensor/log.h"

namespace {

using ferrite::LogLevel;
using ferrite::set_log_sink;
namespace log_of = ferrite::detail;

/// Silences the library before and after a test.
struct Silence {
  Silence() { set_log_sink({}); }
  ~Silence() { set_log_sink({}); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(log_lines, Silence)

BOOST_AUTO_TEST_CASE(nobody_listens_without_a_sink) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error})
    BOOST_TEST(!log_of::log_enabled(level));
  log_of::log_info("to nobody");
}

BOOST_AUTO_TEST_CASE(lines_come_with_their_level) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view line) {
    lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(line));
  });
  log_of::log_debug("too low");
  log_of::log_info("read {} with %s");
  log_of::log_warning("careful");
  log_of::log(LogLevel::error, "");
  const std::vector<std::string> wanted = {"1 read {} with %s", "2 careful", "3 "};
  BOOST_TEST(lines == wanted, boost::test_tools::per_element());
  BOOST_TEST(!log_of::log_enabled(LogLevel::debug));
}

BOOST_AUTO_TEST_CASE(the_lowest_level_is_the_users) {
  int lines = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++lines; }, LogLevel::debug);
  log_of::log_debug("heard");
  set_log_sink([&](LogLevel, std::string_view) { ++lines; }, LogLevel::error);
  log_of::log_warning("not heard");
  BOOST_TEST(lines == 1);
}

BOOST_AUTO_TEST_CASE(an_empty_sink_ends_it) {
  int lines = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++lines; });
  set_log_sink({});
  log_of::log_info("not heard");
  BOOST_TEST(lines == 0);
}

BOOST_AUTO_TEST_CASE(a_sink_may_throw_and_may_log) {
  int lines = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    if (++lines == 1) log_of::log_info("from within");
    throw std::runtime_error("the sink is broken");
  });
  log_of::log_info("first");
  BOOST_TEST(lines == 2);
}

BOOST_AUTO_TEST_CASE(threads_log_one_at_a_time) {
  int inside = 0;
  int lines = 0;
  bool together = false;
  set_log_sink([&](LogLevel, std::string_view) {
    together = together || ++inside > 1;
    ++lines;
    --inside;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log_of::log_info("line");
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(lines == 2000);
  BOOST_TEST(!together);
}

BOOST_AUTO_TEST_SUITE_END()
