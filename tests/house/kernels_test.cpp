// The headers that kernels may include, and the sources that may include kernels: they are compiled once for each
// instruction set.
#include "house/sources.h"

using namespace house_rules;

namespace {

/// Returns includes of packets outside kernels: packets are compiled once for each instruction set. Eigen is for
/// programs.
std::vector<std::string> packets_outside_kernels(const Source& s) {
  if (!in_library(s) || s.path == "tensor/eigen.h") return {};
  static const std::regex eigen(R"(#include\s*[<"](Eigen|unsupported)/[^\n]*)");
  std::vector<std::string> faults = matches(s.text, eigen, "Eigen outside tensor/eigen.h");
  if (is_kernel(s) || is_header(s)) return faults;
  if (s.text.find("#define FERRITE_WRITTEN\n") != std::string::npos) return faults;  // symbols, not registers
  for (const std::string& header : included_by(s))
    if (has_packets(header)) faults.push_back("no kernel, but includes packets: " + header);
  return faults;
}

/// Returns uses of containers in kernels. Kernels take numbers and plain structs: functions of containers, strings and
/// the like would be compiled for their instruction set and be used by all of the library.
std::vector<std::string> containers_in_kernels(const Source& s) {
  if (!in_library(s) || !is_kernel(s)) return {};
  static const std::regex pattern(
      R"(#include <(vector|string|map|set|list|deque|unordered_\w+|functional|memory|optional|variant|any|span|\w*stream|)"
      R"(stdexcept|mutex|thread)>)");
  std::vector<std::string> faults = matches(s.text, pattern, "a kernel includes");
  for (const std::string& header : included_by(s))
    for (const std::string& reached : reached_from(header))
      if (std::regex_search(read(fs::path(FERRITE_SOURCE_DIR) / reached), pattern))
        faults.push_back("a kernel reaches " + reached + " by " + header + ", which includes a container");
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(house_kernels)

BOOST_AUTO_TEST_CASE(packets_stay_in_kernels) {
  enforce(packets_outside_kernels,
          {"tensor/x.cpp", "#include <Eigen/Core>\n#include \"ferrite/tensor/kernel/tile.h\"\n"}, 2);
  BOOST_TEST(packets_outside_kernels({"nn/x_kernel.cpp", "#include \"ferrite/tensor/kernel/tile.h\"\n"}).empty());
}
BOOST_AUTO_TEST_CASE(kernels_have_no_containers) {
  enforce(containers_in_kernels,
          {"nn/x_kernel.cpp", "#include <vector>\n#include \"ferrite/tensor/kernel/fft_plan.h\"\n"}, 2);
}

BOOST_AUTO_TEST_SUITE_END()
