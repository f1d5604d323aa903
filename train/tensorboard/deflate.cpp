/// Writes zlib streams: RFC 1950 and 1951, whose section numbers stand beside what they define.
#include "ferrite/train/tensorboard/deflate.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace ferrite::train::detail {
namespace {

constexpr std::size_t kWindow = 32768, kShortest = 3, kLongest = 258;

/// Bits, of which the first is the lowest of its byte.
class Bits {
 public:
  explicit Bits(std::string& out) : out_(out) {}
  void put(std::uint32_t bits, int count) {
    held_ |= std::uint64_t{bits} << count_;
    for (count_ += count; count_ >= 8; count_ -= 8, held_ >>= 8) out_ += static_cast<char>(held_);
  }
  /// A code of Huffman's, which begins with its highest bit.
  void put_code(std::uint32_t code, int count) {
    std::uint32_t reversed = 0;
    for (int i = 0; i < count; ++i) reversed |= (code >> i & 1) << (count - 1 - i);
    put(reversed, count);
  }
  void end_byte() {
    if (count_ > 0) put(0, 8 - count_);
  }

 private:
  std::string& out_;
  std::uint64_t held_ = 0;
  int count_ = 0;
};

/// The fixed code of literals and lengths, 3.2.6.
void put_symbol(Bits& bits, std::uint32_t symbol) {
  if (symbol < 144) {
    bits.put_code(0x30 + symbol, 8);
  } else if (symbol < 256) {
    bits.put_code(0x190 + symbol - 144, 9);
  } else if (symbol < 280) {
    bits.put_code(symbol - 256, 7);
  } else {
    bits.put_code(0xc0 + symbol - 280, 8);
  }
}

/// A length and a distance, 3.2.5: the highest bits of each in its code, the others as they are.
void put_copy(Bits& bits, std::size_t length, std::size_t distance) {
  if (length == kLongest) {
    put_symbol(bits, 285);
  } else {
    const auto l = static_cast<std::uint32_t>(length - kShortest);
    const int extra = std::max(0, static_cast<int>(std::bit_width(l)) - 3);
    put_symbol(bits, 257 + 4 * static_cast<std::uint32_t>(extra) + (l >> extra));
    bits.put(l & ((1U << extra) - 1), extra);
  }
  const auto d = static_cast<std::uint32_t>(distance - 1);
  const int extra = std::max(0, static_cast<int>(std::bit_width(d)) - 2);
  bits.put_code(2 * static_cast<std::uint32_t>(extra) + (d >> extra), 5);
  bits.put(d & ((1U << extra) - 1), extra);
}

/// Where three bytes stood last.
class Places {
 public:
  /// The place of those that begin at `at`, which becomes theirs, negative where there is none.
  std::int64_t exchange(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[at + i])}; };
    const std::uint32_t hash = (byte(0) << 16 | byte(1) << 8 | byte(2)) * 2654435761U >> (32 - kBits);
    return std::exchange(last_[hash], static_cast<std::int64_t>(at) + 1) - 1;
  }

 private:
  static constexpr int kBits = 15;
  std::vector<std::int64_t> last_ = std::vector<std::int64_t>(std::size_t{1} << kBits);  // after the place; 0: none
};

std::size_t common_length(std::string_view text, std::size_t a, std::size_t b) {
  const std::size_t most = std::min(kLongest, text.size() - b);
  std::size_t n = 0;
  while (n < most && text[a + n] == text[b + n]) ++n;
  return n;
}

std::uint32_t adler32(std::string_view text) {
  std::uint32_t a = 1, b = 0;
  for (const char c : text) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

}  // namespace

std::string zlib_stream(std::string_view contents) {
  std::string out = "\x78\x01";  // deflated, a window of 32 KiB, the fastest level
  Bits bits(out);
  bits.put(0b011, 3);  // the last block, of the fixed code
  Places places;
  for (std::size_t at = 0; at < contents.size();) {
    std::size_t length = 0, distance = 0;
    if (contents.size() - at >= kShortest)
      if (const std::int64_t place = places.exchange(contents, at); place >= 0) {
        distance = at - static_cast<std::size_t>(place);
        if (distance <= kWindow) length = common_length(contents, static_cast<std::size_t>(place), at);
      }
    if (length < kShortest) {
      put_symbol(bits, static_cast<unsigned char>(contents[at++]));
      continue;
    }
    put_copy(bits, length, distance);
    const std::size_t end = at + length;
    for (++at; at < end && contents.size() - at >= kShortest; ++at) places.exchange(contents, at);
    at = end;
  }
  put_symbol(bits, 256);
  bits.end_byte();
  const std::uint32_t sum = adler32(contents);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(sum >> shift);
  return out;
}

}  // namespace ferrite::train::detail
