#pragma once
/// The CRC-32 of zip archives and PNG files.
#include <cstddef>
#include <cstdint>
#include <span>

namespace ferrite::io::detail {

/// Returns the CRC-32 (ISO 3309, polynomial 0xedb88320) of the bytes whose CRC is `before`, followed by `bytes`. It is
/// 0xcbf43926 for "123456789", and 0 for no bytes.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace ferrite::io::detail
