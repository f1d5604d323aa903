#pragma once
// The sources of the project, as the rules of this folder read them, and how a rule is tried.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace house_rules {

namespace fs = std::filesystem;

struct Source {
  std::string path;  ///< path from the root, with slashes
  std::string text;
};

inline const std::set<std::string> kFolders = {"tensor", "autograd", "compile", "nn",         "dsl",
                                               "io",     "exchange", "train",   "distributed"};

inline std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }
inline bool is_header(const Source& s) { return s.path.ends_with(".h"); }
inline bool in_library(const Source& s) { return kFolders.contains(folder_of(s.path)); }
/// Returns whether a source is compiled once for each instruction set, or is a header for such sources alone.
inline bool is_kernel(const Source& s) { return s.path.ends_with("_kernel.cpp") || s.path.ends_with("_kernel.h"); }
/// Returns whether a header is one at the root, which only includes others.
inline bool is_umbrella(const std::string& path) { return path == "ferrite.h" || path == "inference.h"; }
/// Returns whether a header is installed: those at the top of a folder, and in the subfolders of nn/ except detail/.
inline bool is_public_header(const Source& s) {
  static const std::regex pattern(R"((\w+|nn/\w+)/\w+\.h)");
  if (is_umbrella(s.path)) return true;
  return in_library(s) && s.path.find("/detail/") == std::string::npos && std::regex_match(s.path, pattern);
}

/// Returns the headers of ours that a source includes.
inline std::vector<std::string> included_by(const Source& s) {
  static const std::regex pattern(R"(#include\s*[<"]ferrite/([^">]+)[">])");
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(s.text.begin(), s.text.end(), pattern); at != std::sregex_iterator(); ++at)
    found.push_back((*at)[1]);
  return found;
}

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns all text files of the project that are ours.
inline const std::vector<Source>& sources() {
  static const std::vector<Source> all = [] {
    std::vector<Source> list;
    const fs::path root = FERRITE_SOURCE_DIR;
    const std::set<std::string> skipped = {"build", ".git", "data", "corpus", ".cache"};
    const std::set<std::string> kinds = {".h", ".cpp", ".py", ".md", ".txt", ".cmake", ".in", ".json", ".sh", ""};
    for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
      const bool fixtures = at->path().filename() == "data" && at->path().parent_path().filename() == "tests";
      if (at->is_directory() && skipped.contains(at->path().filename().string()) && !fixtures)
        at.disable_recursion_pending();
      const bool git = at->path().filename() == ".git";  // ".git" is a file in a worktree
      if (!at->is_regular_file() || git || !kinds.contains(at->path().extension().string())) continue;
      list.push_back({fs::relative(at->path(), root).generic_string(), read(at->path())});
    }
    return list;
  }();
  return all;
}

using Rule = std::vector<std::string> (*)(const Source&);

/// Checks that every source obeys a rule, and that the rule catches a bad example.
inline void enforce(Rule rule, const Source& bad, std::size_t faults = 1) {
  BOOST_TEST(rule(bad).size() == faults, "the rule does not catch its bad example");
  for (const Source& s : sources())
    for (const std::string& fault : rule(s)) BOOST_ERROR(s.path + ": " + fault);
}

inline std::vector<std::string> matches(const std::string& text, const std::regex& pattern, const std::string& what) {
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at)
    found.push_back(what + ": " + at->str());
  return found;
}

/// Returns code without comments and string literals.
inline std::string code_of(const std::string& text) {
  static const std::regex pattern(R"(//[^\n]*|"(?:\\.|[^"\\\n])*")");
  return std::regex_replace(text, pattern, "");
}

/// Returns the headers that a file reaches, itself among them.
inline std::set<std::string> reached_from(const std::string& header) {
  static const std::regex pattern(R"re(#include "ferrite/([^"]+)")re");
  std::set<std::string> seen;
  std::vector<std::string> next = {header};
  while (!next.empty()) {
    const std::string path = next.back();
    next.pop_back();
    if (!seen.insert(path).second) continue;
    const std::string text = read(fs::path(FERRITE_SOURCE_DIR) / path);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at)
      next.push_back((*at)[1]);
  }
  return seen;
}

/// Returns whether a header has packets, which only kernels (*_kernel.cpp) read.
inline bool has_packets(const std::string& header) { return reached_from(header).contains("tensor/kernel/packet.h"); }

}  // namespace house_rules
