/// Reads zip archives: entries and their contents.
#include "ferrite/io/zip/zip.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "ferrite/io/detail/crc32.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/zip/inflate.h"
#include "ferrite/io/zip/zip_directory.h"
#include "ferrite/io/zip/zip_format.h"

namespace ferrite::io::detail {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse_end(const Inflated& result, std::size_t wanted, std::string_view where) {
  const std::string of_all = std::to_string(result.written) + " of " + counted(wanted, "byte");
  switch (result.end) {
    case Inflated::End::cut_short: refuse(where, "the deflated bytes are cut short: " + of_all);
    case Inflated::End::damaged: refuse(where, "the deflated bytes are damaged: " + std::string(result.damage));
    case Inflated::End::full: refuse(where, "inflates to more than its size: " + counted(wanted, "byte"));
    case Inflated::End::finished: break;
  }
  refuse(where, "inflates to less than its size: " + of_all);
}

/// Inflates the front of a stream into all of `out`. What follows is not looked at.
void inflate_front(Bytes packed, std::span<std::byte> out, std::string_view where) {
  const Inflated result = inflate(packed, out);
  if (result.written != out.size()) refuse_end(result, out.size(), where);
}

/// Inflates all of a stream into all of `out`, neither more nor less.
void inflate_all(Bytes packed, std::span<std::byte> out, std::string_view where) {
  const Inflated result = inflate(packed, out);
  if (result.end != Inflated::End::finished || result.written != out.size()) refuse_end(result, out.size(), where);
  if (result.read != packed.size())
    refuse(where, "something follows the deflated bytes: " + counted(packed.size() - result.read, "byte"));
}

void check_crc(Bytes bytes, std::uint32_t wanted, std::string_view where) {
  const std::uint32_t found = crc32(bytes);
  if (found != wanted)
    refuse(where, "the contents are damaged: CRC " + std::to_string(found) + ", not " + std::to_string(wanted));
}

std::unique_ptr<std::byte[]> memory_for(std::uint64_t size, std::string_view where) {
  try {
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    refuse(where, "not enough memory to inflate: " + counted(size, "byte"));
  }
}

}  // namespace

ZipArchive::ZipArchive(Bytes bytes, std::string_view where, std::uint64_t most_inflated)
    : bytes_(bytes),
      where_(where),
      most_inflated_(most_inflated),
      entries_(zip::read_directory(bytes, where)),
      by_name_(entries_.size()) {
  std::iota(by_name_.begin(), by_name_.end(), std::uint32_t{0});
  const auto name = [this](std::uint32_t i) { return std::string_view(entries_[i].name); };
  std::ranges::sort(by_name_, {}, name);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name);
  if (twice != by_name_.end()) refuse(where_, "a name occurs twice: " + quote(name(*twice)));
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto name_of = [this](std::uint32_t i) { return std::string_view(entries_[i].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found != by_name_.end() && name_of(*found) == name ? &entries_[*found] : nullptr;
}

ZipData ZipArchive::read(const ZipEntry& entry, std::uint64_t most) const {
  const std::string place = where_ + ": " + quote(entry.name);
  if (entry.size > most)
    refuse(place, "is larger than expected: " + counted(entry.size, "byte") + ", at most " + std::to_string(most));
  const Bytes payload = payload_of(entry);
  if (!entry.deflated) {
    check_crc(payload, entry.crc, place);
    return ZipData(payload);
  }
  if (entry.size > most_inflated_)
    refuse(place, "inflates to more than is allowed: " + counted(entry.size, "byte") + ", at most " +
                      std::to_string(most_inflated_) + "; raise ReadOptions::most_inflated for a file that you trust");
  if (entry.size / kMostOfAByte > entry.packed_size)
    refuse(place, "claims to inflate to more than it can: " + counted(entry.packed_size, "byte") + " to " +
                      std::to_string(entry.size));
  std::unique_ptr<std::byte[]> memory = memory_for(entry.size, place);
  const std::span<std::byte> contents(memory.get(), static_cast<std::size_t>(entry.size));
  inflate_all(payload, contents, place);
  check_crc(contents, entry.crc, place);
  return {std::move(memory), contents.size()};
}

ZipData ZipArchive::front(const ZipEntry& entry, std::uint64_t most) const {
  const std::uint64_t size = std::min(most, entry.size);
  const Bytes payload = payload_of(entry);
  if (!entry.deflated) return ZipData(payload.first(static_cast<std::size_t>(size)));
  const std::string place = where_ + ": " + quote(entry.name);
  std::unique_ptr<std::byte[]> memory = memory_for(size, place);
  const std::span<std::byte> contents(memory.get(), static_cast<std::size_t>(size));
  inflate_front(payload, contents, place);
  return {std::move(memory), contents.size()};
}

Bytes ZipArchive::payload_of(const ZipEntry& entry) const {
  return bytes_.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.packed_size));
}

bool looks_like_zip(Bytes bytes) {
  if (bytes.size() < 4) return false;
  const auto signature = zip::number<std::uint32_t>(bytes, 0);
  return signature == zip::kLocalHeader || signature == zip::kEnd;
}

}  // namespace ferrite::io::detail
