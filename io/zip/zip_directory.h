#pragma once
/// The central directory of a zip archive.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/zip/zip.h"

namespace ferrite::io::detail::zip {

/// Where the central directory is.
struct Directory {
  std::uint64_t members = 0;
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
};

/// From the end records of an archive. Throws IoError; the directory is then inside of the bytes and has room for its
/// members.
Directory find_directory(std::span<const std::byte> bytes, std::string_view where);

/// The members, each one's local header compared and all of them apart from each other. Throws IoError.
std::vector<ZipEntry> read_directory(std::span<const std::byte> bytes, std::string_view where);

}  // namespace ferrite::io::detail::zip
