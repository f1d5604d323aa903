/// Computes CRC-32 and the checksums of files of weights that do not depend on the format.
#include "ferrite/io/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ferrite/io/detail/crc32.h"
#include "ferrite/tensor/ops.h"

// CRC-32, sixteen bytes at a time: Kounavis and Berry, "A Systematic Approach to Building High Performance,
// Software-based, CRC Generators" (2005).

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kStride = 16;
using Table = std::array<std::uint32_t, 256>;

/// Tables of CRCs: [k][b] is the CRC of the byte b followed by k zeros.
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

/// Returns the CRC of eight bytes, the first the lowest, followed by `Behind` zeros.
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

// ---- of files of weights -------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

/// A running CRC-32; every part is preceded by its length, so that parts cannot run into each other.
class Crc {
 public:
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add(const Tensor& x) {
    const Tensor dense = contiguous(x.unmarked());
    visit_dtype(dense.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const std::span<const T> values = dense.values<T>();
      add(values.data(), values.size_bytes());
    });
  }
  std::string digits() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string s;
    for (int shift = 28; shift >= 0; shift -= 4) s += kDigits[value_ >> shift & 15];
    return s;
  }

 private:
  void add(const void* bytes, std::size_t size) {
    const std::string length = std::to_string(size) + ":";
    value_ = detail::crc32(std::as_bytes(std::span(length)), value_);
    value_ = detail::crc32({static_cast<const std::byte*>(bytes), size}, value_);
  }
  std::uint32_t value_ = 0;
};

void add_metadata(Crc& crc, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    if (key == "checksum") continue;
    crc.add(key);
    crc.add(value);
  }
}

void add_tensor(Crc& crc, std::string_view name, const Tensor& x) {
  crc.add(name);
  crc.add(x.spec().str());
  crc.add(x);
}

}  // namespace

std::string checksum(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::ranges::sort(order, {}, [](const NamedTensor* t) { return std::string_view(t->name); });
  Crc crc;
  for (const NamedTensor* t : order) add_tensor(crc, t->name, t->tensor);
  add_metadata(crc, metadata);
  return crc.digits();
}

std::string checksum(const TensorFile& file) {
  std::vector<std::string_view> names = file.names();
  std::ranges::sort(names);
  Crc crc;
  for (const std::string_view name : names) add_tensor(crc, name, file.tensor(name, Elements::as_stored));
  add_metadata(crc, file.metadata());
  return crc.digits();
}

}  // namespace ferrite::io
