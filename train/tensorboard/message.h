#pragma once
/// Protocol buffers as they stand in files: fields appended one by one.
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ferrite::train::detail {

/// A message that is being written (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message& integer(std::uint32_t field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& number(std::uint32_t field, double value) {
    key(field, 1);
    fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Message& number(std::uint32_t field, float value) {
    key(field, 5);
    fixed(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  /// A string, bytes, or a message in this one.
  Message& bytes(std::uint32_t field, std::string_view content) {
    key(field, 2);
    varint(content.size());
    text_ += content;
    return *this;
  }
  /// Repeated doubles, packed.
  Message& numbers(std::uint32_t field, std::span<const double> values) {
    key(field, 2);
    varint(8 * values.size());
    for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  void key(std::uint32_t field, std::uint32_t type) { varint(field << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void fixed(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) text_ += static_cast<char>(value >> (8 * i));
  }

  std::string text_;
};

}  // namespace ferrite::train::detail
