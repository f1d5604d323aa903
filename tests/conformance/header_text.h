#pragma once
// Reads declarations and their comments from headers as Markdown, for the generated pages of docs/.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace pages {

inline std::string file_text(const std::string& path) {
  std::ifstream file(std::string(FERRITE_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(std::string(FERRITE_SOURCE_DIR) + "/" + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  BOOST_TEST_REQUIRE(!lines.empty(), path);
  return lines;
}

inline bool is_comment(const std::string& line) { return line.starts_with("///"); }

inline std::string without_marks(const std::string& line) { return line.size() > 4 ? line.substr(4) : std::string(); }

/// Returns a docstring as Markdown; text indented by two is code.
inline std::string markdown_of(const std::vector<std::string>& lines, std::size_t begin, std::size_t end) {
  std::string text;
  bool code = false;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string line = without_marks(lines[i]);
    const bool indented = line.starts_with("  ");
    if (indented != code) text += "```\n";
    code = indented;
    text += (indented ? line.substr(2) : line) + "\n";
  }
  return text + (code ? "```\n" : "");
}

/// Returns the docstring above the first line of a header that fits; a template's own line may come between.
inline std::string docstring(const std::string& path, const std::function<bool(const std::string&)>& fits) {
  const std::vector<std::string> lines = lines_of(path);
  const auto at = std::ranges::find_if(lines, fits);
  BOOST_TEST_REQUIRE((at != lines.end()), path);
  auto end = static_cast<std::size_t>(at - lines.begin());
  if (end > 0 && lines[end - 1].starts_with("template <")) --end;
  std::size_t begin = end;
  while (begin > 0 && is_comment(lines[begin - 1])) --begin;
  BOOST_TEST_REQUIRE(begin < end, path << ": " << *at);
  return markdown_of(lines, begin, end);
}

/// Returns the members of a struct of options as a block of code; empty if the header does not declare it.
inline std::string members(const std::string& path, const std::string& name) {
  const std::vector<std::string> lines = lines_of(path);
  const auto at = std::ranges::find(lines, "struct " + name + " {");
  if (at == lines.end()) return {};
  std::string text = "```\n";
  for (auto i = at + 1; i != lines.end() && *i != "};" && !i->starts_with("  static constexpr auto fields"); ++i)
    text += i->substr(std::min<std::size_t>(2, i->size())) + "\n";
  return text + "```\n";
}

/// Checks that a page of docs/ is current, or writes it if FERRITE_REGENERATE is set.
inline void check_page(const std::string& path, const std::string& wanted) {
  if (std::getenv("FERRITE_REGENERATE")) std::ofstream(std::string(FERRITE_SOURCE_DIR) + "/" + path) << wanted;
  BOOST_TEST((file_text(path) == wanted), path << " is not current; run this test with FERRITE_REGENERATE=1");
}

}  // namespace pages
