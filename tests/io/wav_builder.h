#pragma once
/// WAV files made of their parts, sound or not.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wav_test {

inline std::string number(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}
inline std::string u16(std::uint64_t value) { return number(value, 2); }
inline std::string u32(std::uint64_t value) { return number(value, 4); }

/// Returns a chunk with the byte that follows an odd one.
inline std::string chunk(const std::string& name, const std::string& content) {
  return name + u32(content.size()) + content + std::string(content.size() % 2, '\0');
}

/// Returns a format chunk of 16 bytes.
inline std::string plain(unsigned tag, unsigned channels, unsigned rate, unsigned bits) {
  const unsigned frame = channels * ((bits + 7) / 8);
  return chunk("fmt ", u16(tag) + u16(channels) + u32(rate) + u32(rate * frame) + u16(frame) + u16(bits));
}

/// Returns a format chunk of 40 bytes.
inline std::string extensible(unsigned tag, unsigned channels, unsigned rate, unsigned bits, unsigned valid) {
  const unsigned frame = channels * ((bits + 7) / 8);
  return chunk("fmt ", u16(0xfffe) + u16(channels) + u32(rate) + u32(rate * frame) + u16(frame) + u16(bits) + u16(22) +
                           u16(valid) + u32(0) + u16(tag) +
                           std::string("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71", 14));
}

/// Returns a file that declares `size` bytes.
inline std::string riff(std::uint64_t size, const std::string& chunks) { return "RIFF" + u32(size) + "WAVE" + chunks; }
inline std::string riff(const std::string& chunks) { return riff(chunks.size() + 4, chunks); }

inline std::span<const std::byte> as_bytes(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

}  // namespace wav_test
