/// Finds the functions of a C file that are called.
#include "ferrite/exchange/freeze/c_unused.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace ferrite::exchange::detail {
namespace {

/// A function with the comment above it, or text between functions, whose name is empty.
struct Part {
  std::string_view name, text;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Returns the name that a line defines as a static function; "" if it does not.
std::string_view defined_by(std::string_view line) {
  bool begins = false;
  for (const std::string_view word : {"static ", "NF_INLINE ", "NF_APART "}) begins = begins || line.starts_with(word);
  const std::size_t any = line.find('(');
  if (!begins || any == std::string_view::npos || line.ends_with(";\n")) return {};
  std::size_t first = any;
  while (first > 0 && is_word(line[first - 1])) --first;
  const std::string_view name = line.substr(first, any - first);
  return name.starts_with("nf_") ? name : std::string_view();  // else the extent of an array
}

/// Splits a file into functions and what lies between them.
std::vector<Part> parts_of(std::string_view text) {
  std::vector<Part> parts;
  std::size_t begin = 0;    // of the part that is read
  std::size_t comment = 0;  // of the comment that ends where the present line begins
  bool in_comment = false, ends_here = false;
  const auto end_of_line = [&](std::size_t at) {
    const std::size_t end = text.find('\n', at);
    return end == std::string_view::npos ? text.size() : end + 1;
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = end_of_line(at);
    const std::string_view line = text.substr(at, next - at);
    if (line.starts_with("/*")) comment = at, in_comment = true;
    if (in_comment) {
      ends_here = line.ends_with("*/\n");
      in_comment = !ends_here;
      at = next;
      continue;
    }
    if (const std::string_view name = defined_by(line); !name.empty()) {
      const std::size_t from = ends_here ? comment : at;
      if (from > begin) parts.push_back({{}, text.substr(begin, from - begin)});
      bool ended = line.ends_with("}\n");
      while (!ended && next < text.size()) {
        ended = text[next] == '}';
        next = end_of_line(next);
      }
      parts.push_back({name, text.substr(from, next - from)});
      begin = next;
    }
    ends_here = false;
    at = next;
  }
  parts.push_back({{}, text.substr(begin)});
  return parts;
}

/// Calls f with each word of C; comments have none.
template <class F>
void each_word(std::string_view text, const F& f) {
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("/*")) {
      at = std::min(text.find("*/", at), text.size());
    } else if (!is_word(text[at])) {
      ++at;
    } else {
      const std::size_t first = at;
      while (at < text.size() && is_word(text[at])) ++at;
      f(text.substr(first, at - first));
    }
  }
}

/// Removes conditions that hold nothing any more, with the comments above them.
void remove_empty_conditions(std::string& text) {
  for (std::size_t end = 0; (end = text.find("#endif\n", end)) != std::string::npos;) {
    const std::string_view before = std::string_view(text).substr(0, end);
    std::size_t begin = end;
    do {
      begin = begin == 0 ? std::string_view::npos : before.rfind('\n', begin - 2);
      begin = begin == std::string_view::npos ? 0 : begin + 1;
    } while (begin > 0 && (before.substr(begin).starts_with("#el")));
    if (!before.substr(begin).starts_with("#if")) {
      end += 7;
      continue;
    }
    if (begin >= 3 && before.substr(begin - 3, 3) == "*/\n") begin = before.rfind("/*", begin);
    text.erase(begin, end + 7 - begin);
    end = begin > 0 ? text.rfind('\n', begin - 1) : 0;  // an outer condition may be empty now
    end = end == std::string::npos ? 0 : end;
  }
}

}  // namespace

std::string without_unused(const std::string& text) {
  const std::vector<Part> parts = parts_of(text);
  std::multimap<std::string_view, std::string_view> functions;
  for (const Part& p : parts)
    if (!p.name.empty()) functions.emplace(p.name, p.text);
  std::set<std::string_view> used;
  std::vector<std::string_view> to_read;
  for (const Part& p : parts)
    if (p.name.empty()) to_read.push_back(p.text);
  while (!to_read.empty()) {
    const std::string_view body = to_read.back();
    to_read.pop_back();
    each_word(body, [&](std::string_view word) {
      const auto [first, last] = functions.equal_range(word);
      if (first == last || !used.insert(word).second) return;
      for (auto f = first; f != last; ++f) to_read.push_back(f->second);
    });
  }
  std::string kept;
  for (const Part& p : parts)
    if (p.name.empty() || used.contains(p.name)) kept += p.text;
  remove_empty_conditions(kept);
  return kept;
}

}  // namespace ferrite::exchange::detail
