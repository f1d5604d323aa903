#pragma once
/// Numbers in text files: decimal notation, independent of the locale.
#include <cstdint>
#include <string>
#include <string_view>

namespace ferrite::io::detail {

enum class DecimalKind : std::uint8_t { number, malformed, too_large };

template <class T>
struct Decimal {
  DecimalKind kind = DecimalKind::malformed;
  T value{};
};

/// `text` without blanks and tabs at its ends.
std::string_view trimmed(std::string_view text);

/// All of `text` as a number, a leading plus included: "-1.5e3", "inf", "nan" (in any case). What is too small is 0
/// with its sign.
Decimal<double> parse_double(std::string_view text);
/// All of `text` as an integer in decimal digits.
Decimal<std::int64_t> parse_integer(std::string_view text);

/// Appends the fewest digits that read back as the same number; "nan", "inf", "-inf".
void append_number(std::string& out, double value);
void append_number(std::string& out, float value);
void append_number(std::string& out, std::int64_t value);

}  // namespace ferrite::io::detail
