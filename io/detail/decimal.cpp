/// Numbers in text files, by std::from_chars and std::to_chars.
#include "ferrite/io/detail/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// from_chars takes no plus.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

template <class T>
Decimal<T> parsed(std::string_view text) {
  text = without_plus(text);
  Decimal<T> result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return result;
  result.kind = error == std::errc() ? DecimalKind::number : DecimalKind::too_large;
  return result;
}

/// Of a number that no double holds, whether it is too small rather than too large: its decimal exponent is negative.
bool is_tiny(std::string_view text) {
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  auto exponent = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e < text.size()) {
    const Decimal<std::int64_t> said = parsed<std::int64_t>(text.substr(e + 1));
    if (said.kind == DecimalKind::too_large) return text[e + 1] == '-';
    if (ferrite::detail::add_overflows(exponent, said.value, exponent)) return said.value < 0;
  }
  return exponent < 0;
}

template <class T>
void append(std::string& out, T value) {
  char digits[32];
  out.append(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr);
}

template <class T>
void append_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "nan";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
  } else {
    append(out, value);
  }
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

Decimal<double> parse_double(std::string_view text) {
  Decimal<double> result = parsed<double>(text);
  // "nan(payload)" is nobody's number.
  if (result.kind == DecimalKind::number && text.ends_with(')')) return {};
  if (result.kind == DecimalKind::too_large && is_tiny(text))
    result = {DecimalKind::number, text.front() == '-' ? -0.0 : 0.0};
  return result;
}

Decimal<std::int64_t> parse_integer(std::string_view text) { return parsed<std::int64_t>(text); }

void append_number(std::string& out, double value) { append_float(out, value); }
void append_number(std::string& out, float value) { append_float(out, value); }
void append_number(std::string& out, std::int64_t value) { append(out, value); }

}  // namespace ferrite::io::detail
