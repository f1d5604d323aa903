/// Writes lines and numbers of C.
#include "ferrite/exchange/freeze/c_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {

void CText::line(std::string_view text) {
  if (!text.empty() && text[0] != '#') text_.append(static_cast<std::size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}
void CText::open(std::string_view head) {
  line(std::string(head) + " {");
  ++depth_;
}
void CText::close(std::string_view tail) {
  --depth_;
  line("}" + std::string(tail));
}

std::string plus(const std::string& a, std::int64_t factor, const std::string& index) {
  if (factor == 0) return a;
  return a + (factor < 0 ? " - " : " + ") +
         (factor == 1 || factor == -1 ? index : text(std::abs(factor)) + " * " + index);
}

std::string_view c_type(Dtype dtype) {
  if (dtype == Dtype::f32) return "float";
  if (dtype == Dtype::f64) return "double";
  if (dtype == Dtype::i32) return "int32_t";
  if (dtype == Dtype::i64) return "int64_t";
  return dtype == Dtype::boolean ? "nf_mask" : "";
}

namespace {

/// Returns the shortest decimal number that reads back as v, without what C does not need.
template <class T>
std::string shortest(T v) {
  char digits[64];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), v).ptr;
  std::string text(digits, end);
  const bool negative = text[0] == '-';
  if (negative) text.erase(0, 1);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) {
    if (text.find('.') == std::string::npos) text += '.';
    if (text.starts_with("0.") && text.size() > 2) text.erase(0, 1);
  } else {  // 1e-05 -> 1e-5
    std::size_t first = e + 1;
    if (text[first] == '+') text.erase(first, 1);
    if (text[first] == '-') ++first;
    while (first + 1 < text.size() && text[first] == '0') text.erase(first, 1);
  }
  return (negative ? "-" : "") + text;
}

template <class T>
std::string special(T v, std::string_view suffix) {
  if (std::isnan(v)) return "NF_NAN_" + std::string(suffix);
  return (v < 0 ? "-NF_INFINITY_" : "NF_INFINITY_") + std::string(suffix);
}

}  // namespace

std::string c_number(float v) { return std::isfinite(v) ? shortest(v) + "f" : special(v, "F"); }
std::string c_number(double v) { return std::isfinite(v) ? shortest(v) : special(v, "D"); }
std::string c_number(std::int64_t v, Dtype dtype) {
  if (dtype == Dtype::i64 && v == INT64_MIN) return "INT64_MIN";
  const std::string text = std::to_string(v);
  return dtype == Dtype::i64 && (v > INT32_MAX || v <= INT32_MIN) ? "INT64_C(" + text + ")" : text;
}

std::string c_number_at(const void* at, Dtype dtype) {
  const auto read = [at](auto v) {
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  if (dtype == Dtype::f32) return c_number(read(0.0F));
  if (dtype == Dtype::f64) return c_number(read(0.0));
  if (dtype == Dtype::i32) return c_number(read(std::int32_t{}), dtype);
  if (dtype == Dtype::i64) return c_number(read(std::int64_t{}), dtype);
  return read(std::uint8_t{}) ? "-1" : "0";
}

namespace {

/// Returns n numbers with commas, in lines.
std::string numbers(const std::byte* at, std::int64_t n, Dtype dtype) {
  std::string text, line;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::string number = c_number_at(at + i * size_of(dtype), dtype);
    if (line.size() + number.size() > 116) text += line + "\n", line.clear();
    line += number + (i + 1 < n ? "," : "");
  }
  return text + line;
}

}  // namespace

std::string c_array(std::string_view name, const Tensor& values) {
  const Tensor dense = contiguous(values);
  const std::int64_t n = dense.numel();
  std::string text = "static const " + std::string(c_type(dense.dtype())) + " " + std::string(name) + "[" +
                     std::to_string(std::max<std::int64_t>(n, 1)) + (is_integer(dense.dtype()) ? "" : " + NF_BEHIND") +
                     "] NF_ALIGNED = {\n";
  return text + (n == 0 ? "0" : numbers(dense.raw(), n, dense.dtype())) + "};\n";  // C has no empty arrays
}
std::string c_rows(std::string_view name, const Tensor& values, std::int64_t row, const std::string& behind) {
  const Tensor dense = contiguous(values);
  const std::int64_t rows = dense.numel() / row, size = row * size_of(dense.dtype());
  std::string text = "static const " + std::string(c_type(dense.dtype())) + " " + std::string(name) + "[" +
                     std::to_string(rows) + behind + "][" + wide_of(dense.dtype(), row) + "] NF_ALIGNED = {\n";
  for (std::int64_t r = 0; r < rows; ++r)
    text += "{" + numbers(dense.raw() + r * size, row, dense.dtype()) + (r + 1 < rows ? "},\n" : "}};\n");
  return text;
}

std::string c_comment(std::string_view text) { return replaced(replaced(std::string(text), "*/", "* /"), "/*", "/ *"); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace ferrite::exchange::detail
