// The documentation names files that exist, links to pages and headings that exist, and uses the words of the field.
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "house/sources.h"

using namespace house_rules;

namespace {

const fs::path kRoot = FERRITE_SOURCE_DIR;

/// Returns whether a source is a page about the present state: the changelog also names removed things.
bool is_page(const Source& s) { return s.path.ends_with(".md") && s.path != "CHANGELOG.md"; }

/// Returns a text without the parts between two marks, marks included.
std::string without(std::string text, const std::string& begin, const std::string& end) {
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    const std::size_t last = text.find(end, at + begin.size());
    text.erase(at, last == std::string::npos ? last : last + end.size() - at);
  }
  return text;
}

/// Returns a page without code blocks and without the figures that benchmarks write.
std::string prose_of(const std::string& page) { return without(without(page, "```", "```"), "<!-- begin", "<!-- end"); }

std::vector<std::string> missing_files(const Source& s) {
  if (!is_page(s)) return {};
  static const std::regex pattern(
      R"(`((?:tensor|autograd|compile|nn|dsl|io|exchange|train|distributed|tools|examples|bench|tests|scripts|docs|cmake|data|\.ci)/[\w./-]*|\w+\.md|ferrite\.h)`)");
  std::vector<std::string> faults;
  const std::string text = prose_of(s.text);
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at)
    if (!fs::exists(kRoot / (*at)[1].str())) faults.push_back("names a file that does not exist: " + (*at)[1].str());
  return faults;
}

/// Returns the anchors of a page's headings: lower case, without punctuation, with hyphens for blanks.
std::set<std::string> anchors_of(const std::string& page) {
  static const std::regex heading(R"((?:^|\n)#+ ([^\n]+))");
  std::set<std::string> anchors;
  const std::string text = prose_of(page);
  for (auto at = std::sregex_iterator(text.begin(), text.end(), heading); at != std::sregex_iterator(); ++at) {
    std::string anchor;
    for (const char c : (*at)[1].str())
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        anchor += '-';
    anchors.insert(anchor);
  }
  return anchors;
}

std::vector<std::string> broken_links(const Source& s) {
  if (!is_page(s)) return {};
  static const std::regex link(R"(\]\(([^)#:\s]*)(?:#([^)\s]+))?\))");
  std::vector<std::string> faults;
  const std::string text = prose_of(s.text);
  for (auto at = std::sregex_iterator(text.begin(), text.end(), link); at != std::sregex_iterator(); ++at) {
    const std::string page = (*at)[1], anchor = (*at)[2];
    const fs::path target = kRoot / fs::path(s.path).parent_path() / page;
    if (!page.empty() && !fs::exists(target))
      faults.push_back("links to a page that does not exist: " + page);
    else if (!anchor.empty() && !anchors_of(page.empty() ? s.text : read(target)).contains(anchor))
      faults.push_back("links to a heading that does not exist: " + page + "#" + anchor);
  }
  return faults;
}

/// Returns words of a private vocabulary for which the field has others: backward pass, packed, requested, again.
std::vector<std::string> private_words(const Source& s) {
  if (!is_page(s)) return {};
  static const std::regex words(R"(\b(anew|wish(?:es|ed)?|way back|walks? back|of one's own|untold|goes by)\b)");
  return matches(prose_of(s.text), words, "a word of no field");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(documents)

BOOST_AUTO_TEST_CASE(files_that_are_named_exist) {
  enforce(missing_files, {"docs/x.md", "see `tensor/tensor.h`, `nn/gone.h` and\n```text\n`nn/other.h`\n```\n"});
}
BOOST_AUTO_TEST_CASE(links_lead_somewhere) {
  enforce(broken_links, {"docs/x.md", "# A b, c\n[a](#a-b-c) [b](#b) [c](gone.md) [d](tutorial.md#nowhere)\n"}, 3);
}
BOOST_AUTO_TEST_CASE(words_are_those_of_the_field) {
  enforce(private_words, {"docs/x.md", "It begins anew on the way back.\n"}, 2);
}

BOOST_AUTO_TEST_SUITE_END()
