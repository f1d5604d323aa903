// Symbols that the objects of kernels define, read with nm: those of a level are in its own namespaces, so that the
// linker never takes a function of one instruction set for another's.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

/// Returns the symbols in a list of nm --defined-only --extern-only --demangle (weak ones included) that another level
/// may also define: those whose name contains none of the level's namespaces.
std::vector<std::string> shared_symbols(const std::string& list, const std::string& level) {
  const std::string own = "ferrite::detail::" + level + "::";
  const std::string of_nn = "ferrite::nn::detail::" + level + "::";
  std::vector<std::string> shared;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of("0123456789abcdef") != 16) continue;  // the name of a file, or an empty line
    const std::string name = line.substr(19);
    if (name.find(own) == std::string::npos && name.find(of_nn) == std::string::npos) shared.push_back(line.substr(17));
  }
  return shared;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(house_symbols)

BOOST_AUTO_TEST_CASE(symbols_that_levels_would_share_are_found) {
  const std::string list =
      "a_kernel.cpp.o:\n"
      "0000000000000000 R ferrite::detail::avx2::table\n"
      "0000000000000010 W float ferrite::nn::detail::avx2::step<float>(float)\n"
      "0000000000000020 W void ferrite::detail::avx2::gemm<float>(long)\n"
      "\n"
      "0000000000000000 W std::vector<int, std::allocator<int> >::~vector()\n"
      "0000000000000000 T ferrite::detail::gemm(long)\n"
      "0000000000000000 V ferrite::detail::avx512::table\n"
      "0000000000000000 u ferrite_eigen::internal::x\n";
  const std::vector<std::string> shared = shared_symbols(list, "avx2");
  BOOST_TEST(shared.size() == 4U);
  BOOST_TEST(shared.front() == "W std::vector<int, std::allocator<int> >::~vector()");
}

#ifdef FERRITE_KERNEL_OBJECTS
struct Close {
  void operator()(std::FILE* f) const { pclose(f); }
};

/// Returns the output of a command.
std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string text;
  std::array<char, 4096> some{};
  while (pipe)
    if (const std::size_t n = std::fread(some.data(), 1, some.size(), pipe.get())) {
      text.append(some.data(), n);
    } else {
      break;
    }
  return text;
}

/// This nm also finds the symbols that must exist, and those of a source without a level, this program.
BOOST_AUTO_TEST_CASE(a_level_defines_nothing_outside_its_namespaces) {
  std::istringstream levels(FERRITE_KERNEL_OBJECTS);
  for (std::string of_level; std::getline(levels, of_level, '|');) {
    std::istringstream objects(of_level);
    std::string level;
    std::getline(objects, level, ':');
    std::string command = FERRITE_NM " --defined-only --extern-only --demangle";
    for (std::string object; std::getline(objects, object, ':');) command += " '" + object + "'";
    const std::string list = output_of(command);
    for (const std::string& table : {"ferrite::detail::" + level + "::product_kernels_f32",
                                     "ferrite::nn::detail::" + level + "::recurrence_kernels_f32",
                                     "ferrite::nn::detail::" + level + "::rule_kernels"})
      BOOST_TEST(list.find(table) != std::string::npos, "no " << table << " in " << command);
    for (const std::string& symbol : shared_symbols(list, level)) BOOST_ERROR("not of " + level + " alone: " + symbol);
    const std::string self = output_of(FERRITE_NM " --defined-only --extern-only --demangle /proc/$PPID/exe");
    BOOST_TEST(!shared_symbols(self, level).empty());
  }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
