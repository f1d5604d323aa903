#pragma once
/// Helpers for tests that need a Python with packages, named by FERRITE_PYTHON. Without it they are skipped visibly.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace support {

inline std::string python() {
  const char* value = std::getenv("FERRITE_PYTHON");
  return value ? value : "";
}

/// Returns a precondition for Boost.Test: that there is a Python with these modules ("numpy, scipy").
inline auto python_with(const std::string& modules) {
  return [modules](boost::unit_test::test_unit_id) {
    const std::string command = python() + " -c 'import " + modules + "'";
    boost::test_tools::assertion_result result(!python().empty() && std::system(command.c_str()) == 0);
    result.message() << "FERRITE_PYTHON names no Python that has " << modules;
    return result;
  };
}

/// Runs a script of tests/data on a folder; returns whether it succeeds.
inline bool run_script(const std::string& script, const std::filesystem::path& folder) {
  const std::string path = std::string(FERRITE_SOURCE_DIR) + "/tests/data/" + script;
  return std::system((python() + " '" + path + "' '" + folder.string() + "'").c_str()) == 0;
}

}  // namespace support
