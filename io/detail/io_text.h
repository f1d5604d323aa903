#pragma once
/// Text in files and in errors about them: quoted and shortened names, paths, shapes; numbers in decimal notation,
/// independent of the locale.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite::io::detail {

/// Throws IoError "<where>: <what>".
[[noreturn]] void refuse(std::string_view where, std::string_view what);

/// Throws IoError "<where>: <what>: <text of the errno value>".
[[noreturn]] void refuse_errno(std::string_view where, std::string_view what, int error);

/// Returns a name in single quotes, with bytes that are not printable as \xNN and long names cut in the middle.
std::string quote(std::string_view name);

/// Returns a path as errors show it: unchanged, but without control characters and never longer than 300 bytes.
std::string shown(const std::filesystem::path& path);

/// Returns extents as text, "[2, 3]".
std::string bracketed(std::span<const std::int64_t> extents);

/// Returns a number with a noun in the singular or plural, "1 tensor", "2 tensors".
std::string counted(std::size_t n, std::string_view noun);

/// Returns the position of the first byte that is not UTF-8 (surrogates, overlong forms and values above U+10FFFF are
/// not), if there is one.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Appends a JSON string with its quotes, escaped as serde_json does: only `"`, `\` and control characters.
void append_json_string(std::string& out, std::string_view text);

// ---- numbers -------------------------------------------------------------------------------------------

enum class DecimalKind : std::uint8_t { number, malformed, too_large };

template <class T>
struct Decimal {
  DecimalKind kind = DecimalKind::malformed;
  T value{};
};

/// Returns `text` without blanks and tabs at its ends.
std::string_view trimmed(std::string_view text);

/// Parses all of `text` as a number, perhaps with a leading plus: "-1.5e3", "inf", "nan" (in any case). A number that
/// is too small becomes 0 with its sign.
Decimal<double> parse_double(std::string_view text);

/// Parses all of `text` as an integer in decimal digits.
Decimal<std::int64_t> parse_integer(std::string_view text);

/// Appends the fewest digits that read back as the same number; "nan", "inf", "-inf".
void append_number(std::string& out, double value);
void append_number(std::string& out, float value);
void append_number(std::string& out, std::int64_t value);

}  // namespace ferrite::io::detail
