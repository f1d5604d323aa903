#pragma once
/// The questions that bench/compare/convolutions.py asks its programs, one a line.
#include <charconv>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace bench {

/// Returns the numbers in a text such as "8x3x32x32".
inline std::vector<std::int64_t> extents_of(const std::string& text) {
  std::vector<std::int64_t> all;
  std::int64_t n = 0;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
    at = std::from_chars(at, text.data() + text.size(), n).ptr;
    all.push_back(n);
  }
  return all;
}

/// A convolution to time: "forward 8x3x32x32 16 3x3 1 1 1 1 1".
struct ConvolutionJob {
  std::string pass;
  std::vector<std::int64_t> x, kernel;
  std::int64_t channels = 0, stride = 0, before = 0, after = 0, dilation = 0, groups = 0;
};

inline std::istream& operator>>(std::istream& from, ConvolutionJob& j) {
  std::string x, kernel;
  from >> j.pass >> x >> j.channels >> kernel >> j.stride >> j.before >> j.after >> j.dilation >> j.groups;
  j.x = extents_of(x);
  j.kernel = extents_of(kernel);
  return from;
}

}  // namespace bench
