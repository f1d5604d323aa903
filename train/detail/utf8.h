#pragma once
/// Code points of UTF-8.
#include <cstddef>
#include <string_view>

namespace ferrite::train::detail {

/// Returns the number of bytes of the code point that begins at `at`; 0 if none does (Unicode 15, table 3-7:
/// surrogates, overlong forms and values above U+10FFFF are not code points).
inline std::size_t utf8_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t n = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return n;
}

}  // namespace ferrite::train::detail
