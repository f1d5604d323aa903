/// Log lines reach the sink that the user sets, from its level upwards, and no other.
#include <fcntl.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/tensor/log.h"
#include "ferrite/tensor/spdlog_sink.h"

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

// ---- FERRITE_LOG, which a process reads once: another process of this program --------------------------

namespace {

/// Returns what a process with FERRITE_LOG=<wish> writes to stderr, one string for each system call.
std::vector<std::string> written_with(const char* wish) {
  int ends[2];
  if (pipe2(ends, O_DIRECT) != 0) throw std::runtime_error("no pipe of packets");  // a packet is what one call writes
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("FERRITE_LOG", wish, 1);
    execl("/proc/self/exe", "test", "--run_test=log_of_environment/writes_lines", "--color_output=no", nullptr);
    _exit(9);
  }
  close(ends[1]);
  std::vector<std::string> packets;
  std::array<char, 4096> bytes;
  for (ssize_t n; (n = read(ends[0], bytes.data(), bytes.size())) > 0;)
    if (const std::string packet(bytes.data(), static_cast<std::size_t>(n)); packet.starts_with("ferrite: "))
      packets.push_back(packet);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(status == 0);
  return packets;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(log_of_environment)

/// The other process runs this case; in this process it logs to no sink.
BOOST_AUTO_TEST_CASE(writes_lines) {
  log_of::log_debug("detail {}");
  log_of::log_info("");
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back([] { log_of::log_warning(std::string(300, 'w')); });
  for (std::thread& thread : threads) thread.join();
}

BOOST_AUTO_TEST_CASE(one_call_writes_a_line) {
  const std::string warning = "ferrite: " + std::string(300, 'w') + "\n";
  const std::vector<std::string> info = {"ferrite: \n", warning, warning, warning};
  std::vector<std::string> debug = info;
  debug.insert(debug.begin(), "ferrite: detail {}\n");
  BOOST_TEST(written_with("info") == info, boost::test_tools::per_element());
  BOOST_TEST(written_with("debug") == debug, boost::test_tools::per_element());
  for (const char* other : {"", "warning", "INFO", "off"}) BOOST_TEST(written_with(other).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// ---- ferrite/tensor/spdlog_sink.h ----------------------------------------------------------------------

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
  BOOST_TEST(out.str() == "mine debug {} braces {:d}\nmine info two\nmine warning three\nmine error four\n");
}

BOOST_AUTO_TEST_SUITE_END()
