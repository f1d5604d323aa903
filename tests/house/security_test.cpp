// SECURITY.md: the limits in its table are those of the sources.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(FERRITE_SOURCE_DIR) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string digits_of(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if (c >= '0' && c <= '9') digits += c;
  return digits;
}

/// "100'000'000", "std::size_t{1} << 20".
std::string value_of(const std::string& code) {
  static const std::regex shifted(R"(\{(\d+)\} << (\d+))");
  std::smatch m;
  if (!std::regex_search(code, m, shifted)) return digits_of(code);
  return std::to_string(std::stoull(m[1]) << std::stoull(m[2]));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(security)

BOOST_AUTO_TEST_CASE(the_table_of_limits_says_what_the_sources_say) {
  const std::string page = read("SECURITY.md");
  static const std::regex row(R"(\| [^|]+ \| ([0-9,]+) \| `([^`]+)`: `(\w+) = ([^`]+)` \|)");
  std::size_t rows = 0;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator(); ++at, ++rows) {
    const std::string file = (*at)[2], name = (*at)[3], code = (*at)[4];
    const std::string definition = name + " = " + code + ";";
    BOOST_TEST((read(file).find(definition) != std::string::npos), file << " does not say " << definition);
    BOOST_TEST(value_of(code) == digits_of((*at)[1]), name << " is " << value_of(code));
  }
  BOOST_TEST(rows == 15U);
}

BOOST_AUTO_TEST_SUITE_END()
