/// CRC-32, sixteen bytes at a time: Kounavis and Berry, "A Systematic Approach to Building High Performance,
/// Software-based, CRC Generators" (2005).
#include "ferrite/io/detail/crc32.h"

#include <array>
#include <cstring>
#include <utility>

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kStride = 16;
using Table = std::array<std::uint32_t, 256>;

/// [k][b] is the CRC of the byte b with k zeros behind it.
constexpr std::array<Table, kStride> kTables = [] {
  std::array<Table, kStride> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < kStride; ++k)
    for (std::size_t b = 0; b < 256; ++b) tables[k][b] = tables[0][tables[k - 1][b] & 0xff] ^ tables[k - 1][b] >> 8;
  return tables;
}();

/// The CRC of eight bytes, the first the lowest, with `Behind` zeros behind them.
template <std::size_t Behind, std::size_t... I>
std::uint32_t sliced(std::uint64_t bytes, std::index_sequence<I...>) {
  return (kTables[Behind + 7 - I][bytes >> (8 * I) & 0xff] ^ ...);
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kStride; left -= kStride, at += kStride) {
    std::uint64_t low = 0, high = 0;
    std::memcpy(&low, at, sizeof low);
    std::memcpy(&high, at + sizeof low, sizeof high);
    crc = sliced<8>(low ^ crc, std::make_index_sequence<8>()) ^ sliced<0>(high, std::make_index_sequence<8>());
  }
  for (; left > 0; --left, ++at) crc = kTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff] ^ crc >> 8;
  return ~crc;
}

}  // namespace ferrite::io::detail
