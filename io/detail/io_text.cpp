/// Text in files and in errors about them: names, paths, shapes; numbers in decimal notation.
#include "ferrite/io/detail/io_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void append_hex(std::string& out, unsigned char byte) {
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

std::string printable(std::string_view text) {
  std::string out;
  const bool broken = invalid_utf8(text).has_value();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (broken && byte > 0x7f)) {
      out += "\\x";
      append_hex(out, byte);
    } else {
      out += c;
    }
  }
  return out;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Cuts out the middle of a text at character boundaries.
std::string shortened(std::string_view text, std::size_t head, std::size_t tail) {
  if (text.size() <= head + tail + 3) return std::string(text);
  while (head > 0 && continues(text[head])) --head;
  std::size_t from = text.size() - tail;
  while (from < text.size() && continues(text[from])) ++from;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(from));
}

/// Returns the length of the UTF-8 character at the front of `text`, or 0 if there is none.
std::size_t character(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues(text[i])) return 0;
  if (lead == 0xe0 && at(1) < 0xa0) return 0;
  if (lead == 0xed && at(1) > 0x9f) return 0;
  if (lead == 0xf0 && at(1) < 0x90) return 0;
  if (lead == 0xf4 && at(1) > 0x8f) return 0;
  return length;
}

/// Returns a lower bound, a multiple of 8, for the number of ASCII characters at the front.
std::size_t ascii_run(std::string_view text) {
  std::size_t i = 0;
  std::uint64_t eight = 0;
  for (; i + sizeof(eight) <= text.size(); i += sizeof(eight)) {
    std::memcpy(&eight, text.data() + i, sizeof(eight));
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  return i;
}

char short_escape(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
  }
}

}  // namespace

void refuse(std::string_view where, std::string_view what) {
  throw IoError(std::string(where) + ": " + std::string(what));
}

void refuse_errno(std::string_view where, std::string_view what, int error) {
  refuse(where, std::string(what) + ": " + std::generic_category().message(error));
}

std::string quote(std::string_view name) {
  const std::string cut = shortened(name, 90, 30);
  return "'" + printable(cut) + "'";
}

std::string shown(const std::filesystem::path& path) { return printable(shortened(path.string(), 60, 230)); }

std::string bracketed(std::span<const std::int64_t> extents) {
  std::string out = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(extents[i]);
  }
  return out + "]";
}

std::string counted(std::size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    i += ascii_run(text.substr(i));
    if (i == text.size()) break;
    const std::size_t length = character(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const char escape = short_escape(c);
    if (escape != 0) {
      out += '\\';
      out += escape;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      append_hex(out, static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

// ---- numbers -------------------------------------------------------------------------------------------

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Removes a leading plus, which from_chars does not take.
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

/// Returns whether a number that no double holds is too small rather than too large: its decimal exponent is negative.
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
  // "nan(payload)" is not accepted as a number.
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
