// Prints the properties that must not change while the library is rebuilt, one a line. scripts/digests compares two
// versions.
//
//   digests [--seeds FIRST COUNT] [--cases TEXT...] [--full] [--list]
//
// --cases: only those whose names contain one of the texts, or equal one that begins with '='; --full: values and
// programs in words. Exit status: 0, or 1 where a planned, compiled or streamed run differs from the eager one.
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "digests.h"

namespace {

struct Options {
  std::uint64_t first = 1, count = 5000;
  std::vector<std::string> cases{};
  bool full = false, list = false;

  bool wants(const std::string& name) const {
    if (cases.empty()) return true;
    for (const std::string& c : cases)
      if (c.starts_with('=') ? name == c.substr(1) : name.find(c) != std::string::npos) return true;
    return false;
  }
};

Options options_of(int count, char** words) {
  Options o;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--full") {
      o.full = true;
    } else if (word == "--list") {
      o.list = true;
    } else if (word == "--seeds" && i + 2 < count) {
      o.first = std::strtoull(words[++i], nullptr, 10);
      o.count = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--cases") {
      while (i + 1 < count && std::strncmp(words[i + 1], "--", 2) != 0) o.cases.emplace_back(words[++i]);
    } else {
      throw std::runtime_error("no such option: " + word);
    }
  }
  return o;
}

void run(const std::vector<digests::Case>& cases, const Options& options, digests::Printer& out) {
  for (const digests::Case& c : cases) {
    if (!options.wants(c.name)) continue;
    if (options.list) {
      std::cout << c.name << '\n';
      continue;
    }
    out.begin(c.name);
    try {
      c.run(out);
    } catch (const std::exception& e) {
      out.fault("values", e.what());
    }
    std::cout.flush();
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    const Options options = options_of(count, words);
    digests::Printer out(std::cout, options.full);
    using Cases = std::vector<digests::Case>;
    for (const Cases& cases : {digests::operation_cases(), digests::layer_cases(), digests::recurrent_cases(),
                               digests::custom_cases(), digests::scan_cases(), digests::training_cases(),
                               digests::stream_cases(), digests::random_cases(options.first, options.count)})
      run(cases, options, out);
    return out.failed() ? 1 : 0;
  } catch (const std::exception& e) {
    std::cerr << "digests: " << e.what() << '\n';
    return 2;
  }
}
