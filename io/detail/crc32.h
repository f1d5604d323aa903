#pragma once
/// CRC-32 as zip archives and PNG files have it.
#include <cstddef>
#include <cstdint>
#include <span>

namespace ferrite::io::detail {

/// Returns the CRC-32 (ISO 3309, polynomial 0xedb88320) of `bytes` behind those whose CRC is `before`: of "123456789"
/// it is 0xcbf43926, of no bytes 0.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace ferrite::io::detail
