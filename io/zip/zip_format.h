#pragma once
/// The records of the zip format, by field and offset.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

/// The records of a zip archive, by the names of APPNOTE.TXT 6.3 (pkware.com), all numbers little-endian.
namespace ferrite::io::detail::zip {

inline constexpr std::uint32_t kLocalHeader = 0x04034b50;
inline constexpr std::uint32_t kCentralHeader = 0x02014b50;
inline constexpr std::uint32_t kEnd = 0x06054b50;
inline constexpr std::uint32_t kEnd64 = 0x06064b50;
inline constexpr std::uint32_t kEnd64Locator = 0x07064b50;

/// Bytes of the records without names, extra fields and comments.
inline constexpr std::size_t kLocalHeaderBytes = 30;
inline constexpr std::size_t kCentralHeaderBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

/// Flags: encrypted in one of three ways, or a patch.
inline constexpr std::uint16_t kUnreadable = 0x2061;
/// Flag: sizes and CRC of the local header may be 0, they follow the payload.
inline constexpr std::uint16_t kDescriptorFollows = 0x0008;
inline constexpr std::uint16_t kUtf8 = 0x0800;

/// A number of this value stands for one in the zip64 record or extra field.
inline constexpr std::uint16_t kSaturated16 = 0xffff;
inline constexpr std::uint32_t kSaturated32 = 0xffffffff;
inline constexpr std::uint16_t kExtra64 = 0x0001;       ///< id of that extra field
inline constexpr std::uint16_t kExtraPadding = 0x4246;  ///< id of the padding that PyTorch writes

/// The number at a byte that is there.
template <class T>
T number(std::span<const std::byte> bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// Throws IoError for a name that is empty, not UTF-8, absolute, climbs with "..", or holds a NUL.
void check_name(std::string_view name, std::string_view where);

}  // namespace ferrite::io::detail::zip
