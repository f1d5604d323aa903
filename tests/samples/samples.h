#pragma once
/// Tests on data that the project does not ship, in the folder that FERRITE_SAMPLES names.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace samples {

inline std::filesystem::path folder() {
  const char* value = std::getenv("FERRITE_SAMPLES");
  return value ? value : "";
}

}  // namespace samples

/// Without the folder CTest reports the test program as skipped: it looks for these words.
#define SAMPLES_OR_SKIP()                                            \
  if (samples::folder().empty()) {                                   \
    std::cout << "skipped: FERRITE_SAMPLES is not set" << std::endl; \
    return;                                                          \
  }
