#pragma once
/// Helpers of the tables of hostile files: their errors, their seeds for fuzzing, their test suites.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/tensor/error.h"

namespace hostile_suite {

/// The way in which reading a file must end.
enum class Verdict {
  legal,          ///< the file can be read, and all that is in it
  refused,        ///< reading throws
  refused_later,  ///< the file can be read, but not the tensor "a" in it
};

struct Case {
  std::string name;
  std::string bytes;
  Verdict verdict;
  std::string message;  ///< a part of the error's text
};

/// Returns a predicate on errors: one sentence that begins with `where` and holds the message.
inline auto says(std::string where, std::string message) {
  return [where = std::move(where), message = std::move(message)](const ferrite::IoError& error) {
    const std::string text = error.what();
    BOOST_TEST_INFO("the error says: " << text);
    BOOST_TEST(text.starts_with(where));
    BOOST_TEST(text.find(message) != std::string::npos);
    BOOST_TEST(text.size() < 1000u);
    return true;
  };
}

/// Writes a file to <folder>/<target>/<name> as a seed for that fuzz target, if FERRITE_WRITE_CORPUS=<folder> is set.
inline void write_seed(const std::string& target, const std::string& name, std::string_view bytes) {
  const char* root = std::getenv("FERRITE_WRITE_CORPUS");
  if (root == nullptr) return;
  const std::filesystem::path folder = std::filesystem::path(root) / target;
  if (std::filesystem::is_directory(folder)) std::ofstream(folder / name, std::ios::binary) << bytes;
}

using NamedTests = std::vector<std::pair<std::string, std::function<void()>>>;

/// Registers a suite of tests from a table. Call it to initialise a static variable.
inline bool add_suite(const std::string& name, const NamedTests& tests) {
  namespace ut = boost::unit_test;
  ut::test_suite* suite = BOOST_TEST_SUITE(name);
  for (const auto& [test, run] : tests) suite->add(ut::make_test_case(run, test, __FILE__, __LINE__));
  ut::framework::master_test_suite().add(suite);
  return true;
}

}  // namespace hostile_suite
