/// Finds and checks the end records of a zip archive.
#include <algorithm>
#include <optional>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/zip/zip_directory.h"
#include "ferrite/io/zip/zip_format.h"

namespace ferrite::io::detail::zip {
namespace {

constexpr std::size_t kMostComment = 0xffff;

using Bytes = std::span<const std::byte>;

/// The only record in the last 64 KiB whose comment ends where the file ends. A comment that holds another one is
/// refused: readers differ on which of them counts.
std::size_t find_end(Bytes bytes, std::string_view where) {
  if (bytes.size() < kEndBytes) refuse(where, "too short to be a zip archive: " + counted(bytes.size(), "byte"));
  const std::size_t room = bytes.size() - kEndBytes;
  std::optional<std::size_t> end;
  bool seen = false;
  for (std::size_t at = room - std::min(room, kMostComment); at + sizeof(kEnd) <= bytes.size(); ++at) {
    if (number<std::uint32_t>(bytes, at) != kEnd) continue;
    seen = true;
    if (end) refuse(where, "two end records: at byte " + std::to_string(*end) + " and at byte " + std::to_string(at));
    if (at <= room && number<std::uint16_t>(bytes, at + 20) == room - at) end = at;
  }
  if (end) return *end;
  if (seen) refuse(where, "the end record does not end the archive: " + counted(bytes.size(), "byte"));
  refuse(where, "no end record in " + counted(bytes.size(), "byte") + "; is it a zip archive, or cut short?");
}

/// A number of the end record, which the zip64 record repeats or replaces.
std::uint64_t widened(std::uint64_t narrow, std::uint64_t saturated, std::uint64_t wide, std::string_view where) {
  if (narrow != saturated && narrow != wide)
    refuse(where, "the end records disagree: " + std::to_string(narrow) + " and " + std::to_string(wide));
  return wide;
}

/// Position of the zip64 record, from the locator that ends at `end`; nothing without a locator.
std::optional<std::uint64_t> find_end64(Bytes bytes, std::size_t end, std::string_view where) {
  if (end < kEnd64LocatorBytes) return std::nullopt;
  const std::size_t locator = end - kEnd64LocatorBytes;
  if (number<std::uint32_t>(bytes, locator) != kEnd64Locator) return std::nullopt;
  const auto at = number<std::uint64_t>(bytes, locator + 8);
  const bool inside = locator >= kEnd64Bytes && at <= locator - kEnd64Bytes;
  if (!inside || number<std::uint32_t>(bytes, at) != kEnd64)
    refuse(where, "no zip64 end record where the archive says: at byte " + std::to_string(at));
  if (number<std::uint64_t>(bytes, at + 4) != locator - at - 12)
    refuse(where, "the zip64 end record does not end at its locator: " +
                      counted(number<std::uint64_t>(bytes, at + 4), "byte"));
  if (number<std::uint32_t>(bytes, locator + 4) != 0 || number<std::uint32_t>(bytes, locator + 16) > 1)
    refuse(where,
           "the archive is one of several volumes: " + std::to_string(number<std::uint32_t>(bytes, locator + 16)));
  return at;
}

}  // namespace

Directory find_directory(Bytes bytes, std::string_view where) {
  const std::size_t end = find_end(bytes, where);
  const auto short_at = [&](std::size_t field) { return number<std::uint16_t>(bytes, end + field); };
  const auto word_at = [&](std::size_t field) { return number<std::uint32_t>(bytes, end + field); };
  Directory directory{.members = short_at(10), .size = word_at(12), .begin = word_at(16)};
  std::uint64_t stop = end;
  std::uint64_t here = short_at(8);
  std::uint64_t volumes = short_at(4) | short_at(6);
  if (const auto at = find_end64(bytes, end, where)) {
    const auto long_at = [&](std::size_t field) { return number<std::uint64_t>(bytes, *at + field); };
    here = widened(here, kSaturated16, long_at(24), where);
    directory.members = widened(directory.members, kSaturated16, long_at(32), where);
    directory.size = widened(directory.size, kSaturated32, long_at(40), where);
    directory.begin = widened(directory.begin, kSaturated32, long_at(48), where);
    volumes = number<std::uint32_t>(bytes, *at + 16) | number<std::uint32_t>(bytes, *at + 20);
    stop = *at;
  }
  if (volumes != 0 || here != directory.members)
    refuse(where, "the archive is one of several volumes: " + std::to_string(here) + " of " +
                      std::to_string(directory.members) + " members are in it");
  if (directory.begin > stop || directory.size != stop - directory.begin)
    refuse(where, "the central directory does not end at the end record: " + counted(directory.size, "byte") +
                      " from byte " + std::to_string(directory.begin) + ", the record is at byte " +
                      std::to_string(stop));
  if (directory.members > directory.size / kCentralHeaderBytes)
    refuse(where, "more members than the central directory has room for: " + std::to_string(directory.members) +
                      " in " + counted(directory.size, "byte"));
  return directory;
}

}  // namespace ferrite::io::detail::zip
