// SECURITY.md lists all caps that are in the code, with their values.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(fs::path(FERRITE_SOURCE_DIR) / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t digits(std::string text) {
  std::erase_if(text, [](char c) { return c == ',' || c == '\''; });
  return std::stoull(text, nullptr, 0);
}

/// Returns the number in a text: "100,000", "2^20", "4 GiB".
std::optional<std::uint64_t> number_in_words(const std::string& text) {
  static const std::regex pattern(R"(([0-9,]+)(?:\^([0-9]+)| (KiB|MiB|GiB))?)");
  std::smatch m;
  if (!std::regex_match(text, m, pattern)) return std::nullopt;
  const std::uint64_t n = digits(m[1]);
  if (m[2].matched) return n == 2 ? std::optional(std::uint64_t{1} << digits(m[2])) : std::nullopt;
  if (m[3].matched) return n << (m[3] == "KiB" ? 10 : m[3] == "MiB" ? 20 : 30);
  return n;
}

/// Returns the value of a constant in a source: a number, or one that is shifted, perhaps less where addresses are
/// short.
std::optional<std::uint64_t> number_in_code(const std::string& source, const std::string& name) {
  const std::regex pattern("\\b" + name +
                           R"( = (?:std::\w+\{)?([0-9'xa-f]+)\}?)"
                           R"((?: << (?:\(sizeof\(std::size_t\) == 8 \? )?([0-9]+)(?: : [0-9]+\))?)?;)");
  std::smatch m;
  if (!std::regex_search(source, m, pattern)) return std::nullopt;
  return m[2].matched ? digits(m[1]) << digits(m[2]) : digits(m[1]);
}

struct Cap {
  std::string limit, file, name;
};

std::vector<Cap> caps_of(const std::string& page) {
  static const std::regex row(R"(\|[^|]+\|[^|]+\| ([^|]+) \| `([^`]+)`: `([^`]+)` \|)");
  std::vector<Cap> caps;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator(); ++at)
    caps.push_back({(*at)[1], (*at)[2], (*at)[3]});
  return caps;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(security)

BOOST_AUTO_TEST_CASE(caps_are_read_and_compared) {
  BOOST_TEST(*number_in_words("100,000,000") == 100'000'000U);
  BOOST_TEST(*number_in_words("2^20") == 1U << 20);
  BOOST_TEST(*number_in_words("4 GiB") == std::uint64_t{4} << 30);
  BOOST_TEST(!number_in_words("many").has_value());
  BOOST_TEST(*number_in_code("int a; constexpr std::size_t kA = std::size_t{1} << 20;", "kA") == 1U << 20);
  BOOST_TEST(*number_in_code("kC = std::int64_t{1} << (sizeof(std::size_t) == 8 ? 44 : 27);", "kC") == std::uint64_t{1}
                                                                                                           << 44);
  BOOST_TEST(*number_in_code("constexpr int kB = 10'000;", "kB") == 10'000U);
  BOOST_TEST(!number_in_code("constexpr int kBB = 10;", "kB").has_value());
}

BOOST_AUTO_TEST_CASE(the_page_says_what_the_code_says) {
  const std::vector<Cap> caps = caps_of(read("SECURITY.md"));
  BOOST_TEST(caps.size() > 20U);
  for (const Cap& c : caps) {
    const auto said = number_in_words(c.limit), done = number_in_code(read(c.file), c.name);
    BOOST_TEST(said.has_value(), c.name << ": " << c.limit);
    BOOST_TEST(done.has_value(), c.file << " has no " << c.name);
    BOOST_TEST((said == done),
               c.name << ": the page says " << c.limit << ", the code " << (done ? std::to_string(*done) : "nothing"));
  }
}

/// Every constant of io/ that is named as a cap is in the table, except those that do not limit what a file asks for.
BOOST_AUTO_TEST_CASE(no_cap_is_missing) {
  const std::set<std::string> no_caps = {
      "kMostAtOnce",      // of one system call: the rest follows
      "kMostNpyFront",    // kMostNpyHeader and the bytes before it
      "kMostComment",     // of the zip format, whose field is 16 bits
      "kMostName",        // an estimate of a name's length, to allocate once
      "kLongestName",     // of temporary names, and of those that get suggestions
      "kMostCandidates",  // for suggestions in errors
      "kMost",            // of Shape, in file_dtype.cpp
      "kMostElements",
  };
  std::set<std::string> listed;
  for (const Cap& c : caps_of(read("SECURITY.md"))) listed.insert(c.name);
  static const std::regex pattern(R"(constexpr [\w:]+ (k(?:Most|Deepest|Longest)\w*) =)");
  std::size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(FERRITE_SOURCE_DIR) / "io")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = read(entry.path());
    for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at) {
      const std::string name = (*at)[1];
      BOOST_TEST((listed.contains(name) || no_caps.contains(name)), entry.path().string() << ": " << name);
      ++found;
    }
  }
  BOOST_TEST(found > 20U);
}

BOOST_AUTO_TEST_SUITE_END()
