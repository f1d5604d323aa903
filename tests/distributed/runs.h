#pragma once
// Runs programs on several ranks and reads what they print.
#include <sys/wait.h>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace runs {

struct Result {
  int status = 0;
  std::string text;
};

/// Runs a command, and returns its status and its output, errors included.
inline Result run(const std::string& command) {
  Result result;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {.status = 127, .text = "no pipe"};
  std::array<char, 4096> some{};
  for (std::size_t n = 0; (n = std::fread(some.data(), 1, some.size(), pipe)) > 0;) result.text.append(some.data(), n);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline bool there_is_mpirun() { return std::system("command -v mpirun >/dev/null 2>&1") == 0; }

/// Runs a case of tests/distributed/ranks.cpp on n ranks.
inline Result on_ranks(int n, const std::string& words, const std::string& options = "", int timeout_ms = 60000) {
  return run("FERRITE_RANKS_TIMEOUT_MS=" + std::to_string(timeout_ms) +
             " " FERRITE_SOURCE_DIR "/tests/distributed/run_ranks " + options + " " + std::to_string(n) +
             " " FERRITE_RANKS " " + words);
}

/// Returns the words that follow each occurrence of `word`, which every rank prints once.
inline std::vector<std::string> all_behind(const std::string& text, const std::string& word) {
  std::vector<std::string> found;
  std::istringstream words(text);
  for (std::string w; words >> w;)
    if (w == word && words >> w) found.push_back(w);
  return found;
}

/// Returns the one digest that all processes print, each once.
inline std::string one_digest(const Result& r, int processes) {
  BOOST_TEST_REQUIRE(r.status == 0, r.text);
  const std::vector<std::string> all = all_behind(r.text, "digest");
  BOOST_TEST_REQUIRE(all.size() == static_cast<std::size_t>(processes), r.text);
  BOOST_TEST((std::set<std::string>(all.begin(), all.end()).size() == 1), r.text);
  return all[0];
}

/// A precondition that skips a case, visibly, without mpirun.
inline boost::test_tools::assertion_result if_mpirun(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(there_is_mpirun());
  result.message() << "skipped: there is no mpirun";
  return result;
}

}  // namespace runs
