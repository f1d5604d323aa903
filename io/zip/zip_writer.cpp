/// Writes zip archives of stored members.
#include <algorithm>
#include <utility>

#include "ferrite/io/detail/crc32.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/zip/zip.h"
#include "ferrite/io/zip/zip_format.h"

namespace ferrite::io::detail {
namespace {

constexpr std::uint16_t kVersion = 20;    // stored and deflated members
constexpr std::uint16_t kVersion64 = 45;  // with zip64
constexpr std::uint16_t kDate = 0x0021;   // 1980-01-01: archives of equal members are equal
constexpr std::size_t kExtraHead = 4;     // id and size of an extra field

template <class T>
void append(std::vector<std::byte>& out, T number) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

void append(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint32_t narrow(std::uint64_t wide) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wide, zip::kSaturated32));
}

bool saturates(std::uint64_t wide) { return wide >= zip::kSaturated32; }

std::uint16_t flags_of(std::string_view name) {
  const bool ascii = std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii ? 0 : zip::kUtf8;
}

/// From the flags to the sizes: the same in both headers.
void append_common(std::vector<std::byte>& out, const ZipEntry& entry) {
  append(out, flags_of(entry.name));
  append(out, zip::kStored);
  append(out, std::uint16_t{0});  // midnight
  append(out, kDate);
  append(out, entry.crc);
  append(out, narrow(entry.packed_size));
  append(out, narrow(entry.size));
  append(out, static_cast<std::uint16_t>(entry.name.size()));
}

void append_padding(std::vector<std::byte>& out, std::size_t size) {
  if (size == 0) return;
  append(out, zip::kExtraPadding);
  append(out, static_cast<std::uint16_t>(size - kExtraHead));
  out.insert(out.end(), size - kExtraHead, std::byte{'Z'});
}

/// `begin` of the entry is that of its local header.
void append_central(std::vector<std::byte>& out, const ZipEntry& entry) {
  const bool wide_size = saturates(entry.size);
  const bool wide_begin = saturates(entry.begin);
  const std::size_t wide = (wide_size ? 16u : 0u) + (wide_begin ? 8u : 0u);
  append(out, zip::kCentralHeader);
  append(out, wide > 0 ? kVersion64 : kVersion);  // made by
  append(out, wide > 0 ? kVersion64 : kVersion);  // needed
  append_common(out, entry);
  append(out, static_cast<std::uint16_t>(wide > 0 ? kExtraHead + wide : 0));
  append(out, std::uint16_t{0});  // comment
  append(out, std::uint16_t{0});  // volume
  append(out, std::uint16_t{0});  // internal attributes
  append(out, std::uint32_t{0});  // external attributes
  append(out, narrow(entry.begin));
  append(out, std::string_view(entry.name));
  if (wide == 0) return;
  append(out, zip::kExtra64);
  append(out, static_cast<std::uint16_t>(wide));
  if (wide_size) append(out, entry.size);
  if (wide_size) append(out, entry.packed_size);
  if (wide_begin) append(out, entry.begin);
}

void append_end64(std::vector<std::byte>& out, std::uint64_t members, std::uint64_t size, std::uint64_t begin) {
  const std::uint64_t at = out.size();
  append(out, zip::kEnd64);
  append(out, std::uint64_t{zip::kEnd64Bytes - 12});
  append(out, kVersion64);
  append(out, kVersion64);
  append(out, std::uint64_t{0});  // volumes
  for (const std::uint64_t number : {members, members, size, begin}) append(out, number);
  append(out, zip::kEnd64Locator);
  append(out, std::uint32_t{0});  // volume
  append(out, at);
  append(out, std::uint32_t{1});  // volumes
}

void append_end(std::vector<std::byte>& out, std::uint64_t members, std::uint64_t begin) {
  const std::uint64_t size = out.size() - begin;
  if (members >= zip::kSaturated16 || saturates(size) || saturates(begin)) append_end64(out, members, size, begin);
  const auto count = static_cast<std::uint16_t>(std::min<std::uint64_t>(members, zip::kSaturated16));
  append(out, zip::kEnd);
  append(out, std::uint32_t{0});  // volumes
  append(out, count);
  append(out, count);
  append(out, narrow(size));
  append(out, narrow(begin));
  append(out, std::uint16_t{0});  // comment
}

void refuse_twice(const std::vector<ZipEntry>& entries, std::string_view where) {
  std::vector<std::string_view> names;
  for (const ZipEntry& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(where, "a name occurs twice: " + quote(*twice));
}

}  // namespace

void ZipWriter::reserve(std::uint64_t bytes, std::size_t members) {
  constexpr std::size_t kMostName = 200;  // more is no fault
  const std::size_t each = zip::kLocalHeaderBytes + zip::kCentralHeaderBytes + alignment_ + 2 * kMostName;
  bytes_.reserve(bytes_.size() + static_cast<std::size_t>(bytes) + members * each + zip::kEndBytes);
  entries_.reserve(entries_.size() + members);
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> contents) { add(name, contents, {}); }

void ZipWriter::add(std::string_view name, std::span<const std::byte> first, std::span<const std::byte> second) {
  zip::check_name(name, where_);
  if (name.size() > zip::kSaturated16) refuse(where_, "a member's name is too long: " + counted(name.size(), "byte"));
  const std::size_t size = first.size() + second.size();
  ZipEntry entry{.name = std::string(name),
                 .size = size,
                 .packed_size = size,
                 .begin = bytes_.size(),
                 .crc = crc32(second, crc32(first))};
  const bool wide = saturates(entry.size);
  const std::size_t extra = wide ? kExtraHead + 16 : 0;
  const std::size_t front = bytes_.size() + zip::kLocalHeaderBytes + name.size() + extra;
  std::size_t padding = (alignment_ - front % alignment_) % alignment_;
  while (padding != 0 && padding < kExtraHead) padding += alignment_;
  append(bytes_, zip::kLocalHeader);
  append(bytes_, wide ? kVersion64 : kVersion);
  append_common(bytes_, entry);
  append(bytes_, static_cast<std::uint16_t>(extra + padding));
  append(bytes_, name);
  if (wide) {
    append(bytes_, zip::kExtra64);
    append(bytes_, std::uint16_t{16});
    append(bytes_, entry.size);
    append(bytes_, entry.packed_size);
  }
  append_padding(bytes_, padding);
  for (const auto part : {first, second}) bytes_.insert(bytes_.end(), part.begin(), part.end());
  entries_.push_back(std::move(entry));
}

std::vector<std::byte> ZipWriter::finish() {
  refuse_twice(entries_, where_);
  const std::uint64_t begin = bytes_.size();
  for (const ZipEntry& entry : entries_) append_central(bytes_, entry);
  append_end(bytes_, entries_.size(), begin);
  entries_.clear();
  return std::exchange(bytes_, {});
}

}  // namespace ferrite::io::detail
