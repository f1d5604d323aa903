#pragma once
/// Text in C: indented lines, comments, numbers.
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// Lines of C, indented by their blocks.
class CText {
 public:
  explicit CText(int depth = 0) : depth_(depth) {}

  void line(std::string_view text);
  /// Writes a line that begins a block, "for (...) {".
  void open(std::string_view head);
  void close(std::string_view tail = {});
  /// Writes text that is indented already.
  void append(std::string_view text) { text_ += text; }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  int depth_;
};

/// Returns an integer as text, "-3".
std::string text(std::integral auto n) { return std::to_string(n); }
/// Returns "a + 3 * i0", "a - i0", or "a" for the factor 0.
std::string plus(const std::string& a, std::int64_t factor, const std::string& index);
/// Returns the head of a loop of n steps over a variable.
inline std::string loop_over(const std::string& i, std::int64_t n) {
  return "for (ptrdiff_t " + i + " = 0; " + i + " < " + text(n) + "; ++" + i + ")";
}
/// Writes a copy of n elements that lie next to each other.
inline void write_copy(CText& to, const std::string& target, const std::string& from, std::int64_t n) {
  to.line(loop_over("i", n) + " (" + target + ")[i] = (" + from + ")[i];");
}
/// Returns the last letter of the names of C functions for a dtype, "f" or "d".
inline std::string suffix_of(Dtype dtype) { return dtype == Dtype::f64 ? "d" : "f"; }
/// Returns the name of the number of elements of a vector.
inline std::string lanes_of(Dtype dtype) { return dtype == Dtype::f64 ? "NF_LANES_D" : "NF_LANES_F"; }

/// Returns the number of elements of the largest vector of a dtype, which all others divide.
constexpr std::int64_t most_lanes_of(Dtype dtype) { return dtype == Dtype::f64 ? 8 : 16; }
/// Returns n rounded up to a multiple of `lanes`.
constexpr std::int64_t whole_vectors(std::int64_t n, std::int64_t lanes = 16) {
  return (n + lanes - 1) / lanes * lanes;
}
/// Returns n numbers as whole vectors, "NF_WIDE_F(28)".
inline std::string wide_of(Dtype dtype, std::int64_t n) {
  return std::string(dtype == Dtype::f64 ? "NF_WIDE_D(" : "NF_WIDE_F(") + std::to_string(n) + ")";
}

/// Returns the C type of a dtype in memory: truth values are all ones or all zeros, in the width of `nf_mask`.
std::string_view c_type(Dtype dtype);

/// Returns a number as a C constant that gives the same bits: ".25f", "-1e-5", "INT64_C(3)".
std::string c_number(float v);
std::string c_number(double v);
std::string c_number(std::int64_t v, Dtype dtype);
/// Returns the number of `dtype` at an address as a C constant; truth values as 0 or -1.
std::string c_number_at(const void* at, Dtype dtype);

/// Returns the definition of a constant array with the elements of a row-major tensor, lines up to 100 columns.
std::string c_array(std::string_view name, const Tensor& values);
/// Returns the definition of a constant array in which each row of `row` elements starts a new vector:
/// "float name[84 + behind][NF_WIDE_F(28)]".
std::string c_rows(std::string_view name, const Tensor& values, std::int64_t row, const std::string& behind);

/// Returns a text that is safe inside a comment.
std::string c_comment(std::string_view text);

/// Returns `text` with every `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace ferrite::exchange::detail
