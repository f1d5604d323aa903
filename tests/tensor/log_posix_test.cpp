/// FERRITE_LOG, which a process reads once: another process of this program writes the lines.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/tensor/log.h"

namespace {

namespace log_of = ferrite::detail;

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
