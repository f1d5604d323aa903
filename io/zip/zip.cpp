/// Reads and writes zip archives: the records at the end of a file, the directory, and the members.
#include "ferrite/io/zip/zip.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/io/detail/crc32.h"
#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail::zip {
namespace {

/// The place of the central directory.
struct Directory {
  std::uint64_t members = 0;
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
};

// ---- the end of the directory --------------------------------------------------------------------------

constexpr std::size_t kMostComment = 0xffff;

using Bytes = std::span<const std::byte>;

/// Returns the position of the only end record in the last 64 KiB whose comment ends with the file. A comment that
/// contains another one is refused, since readers differ on which of them counts.
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

/// Returns a number of the end record, which the zip64 record repeats or replaces.
std::uint64_t widened(std::uint64_t narrow, std::uint64_t saturated, std::uint64_t wide, std::string_view where) {
  if (narrow != saturated && narrow != wide)
    refuse(where, "the end records disagree: " + std::to_string(narrow) + " and " + std::to_string(wide));
  return wide;
}

/// Returns the position of the zip64 record from the locator that ends at `end`, or nothing without a locator.
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

/// Returns the directory of an archive from its end records. Throws IoError unless it lies within the bytes and has
/// room for its members.
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

// ---- the directory ---------------------------------------------------------------------------------------

/// The range of bytes that a member takes in the file, including its local header.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t member = 0;
};

bool separates(char c) { return c == '/' || c == '\\'; }

bool absolute(std::string_view name) {
  const bool drive = name.size() > 2 && name[1] == ':' && separates(name[2]);
  return separates(name.front()) || drive;
}

bool climbs(std::string_view name) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && !separates(name[i])) continue;
    if (name.substr(begin, i - begin) == "..") return true;
    begin = i + 1;
  }
  return false;
}

/// Reads the central directory from front to back.
class DirectoryReader {
 public:
  DirectoryReader(Bytes bytes, std::string_view where)
      : bytes_(bytes), where_(where), directory_(find_directory(bytes, where)), at_(directory_.begin) {}

  std::vector<ZipEntry> read() {
    entries_.reserve(static_cast<std::size_t>(directory_.members));
    extents_.reserve(static_cast<std::size_t>(directory_.members));
    for (std::uint64_t i = 0; i < directory_.members; ++i) read_member();
    const std::uint64_t left = directory_.begin + directory_.size - at_;
    if (left != 0)
      refuse(where_, "something follows the last member in the central directory: " + counted(left, "byte"));
    check_overlap();
    return std::move(entries_);
  }

 private:
  [[noreturn]] void refuse_member(std::string_view name, std::string_view what) const {
    refuse(where_, quote(name) + " " + std::string(what));
  }

  /// Takes the next bytes of the directory.
  Bytes take(std::uint64_t size) {
    const std::uint64_t left = directory_.begin + directory_.size - at_;
    if (size > left)
      refuse(where_, "the central directory is cut short: " + counted(size, "byte") + " wanted at byte " +
                         std::to_string(at_) + ", " + std::to_string(left) + " left");
    const Bytes taken = part(at_, size);
    at_ += size;
    return taken;
  }

  Bytes part(std::uint64_t at, std::uint64_t size) const {
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }

  static std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

  void read_member() {
    const Bytes header = take(kCentralHeaderBytes);
    if (number<std::uint32_t>(header, 0) != kCentralHeader)
      refuse(where_, "no member in the central directory at byte " + std::to_string(at_ - header.size()) + ": member " +
                         std::to_string(entries_.size()) + " of " + std::to_string(directory_.members));
    const std::string_view name = text(take(number<std::uint16_t>(header, 28)));
    const Bytes extra = take(number<std::uint16_t>(header, 30));
    take(number<std::uint16_t>(header, 32));  // a comment
    check_name(name, where_);
    check_kind(name, header);
    ZipEntry entry{.name = std::string(name),
                   .size = number<std::uint32_t>(header, 24),
                   .packed_size = number<std::uint32_t>(header, 20),
                   .crc = number<std::uint32_t>(header, 16),
                   .deflated = number<std::uint16_t>(header, 10) == kDeflated};
    std::uint64_t at = number<std::uint32_t>(header, 42);
    widen(name, extra, {&entry.size, &entry.packed_size, &at});
    if (!entry.deflated && entry.size != entry.packed_size)
      refuse_member(name, "is stored, but of two sizes: " + std::to_string(entry.size) + " and " +
                              std::to_string(entry.packed_size));
    read_local(entry, at);
    extents_.push_back(
        {.begin = at, .end = entry.begin + entry.packed_size, .member = static_cast<std::uint32_t>(entries_.size())});
    entries_.push_back(std::move(entry));
  }

  void check_kind(std::string_view name, Bytes header) const {
    const auto flags = number<std::uint16_t>(header, 8);
    const auto method = number<std::uint16_t>(header, 10);
    const auto volume = number<std::uint16_t>(header, 34);
    if ((flags & kUnreadable) != 0) refuse_member(name, "is encrypted: flags " + std::to_string(flags));
    if (method != kStored && method != kDeflated)
      refuse_member(name,
                    "is packed by method " + std::to_string(method) + "; supported are 0, stored, and 8, deflated");
    if (volume != 0 && volume != kSaturated16) refuse_member(name, "is in another volume: " + std::to_string(volume));
  }

  /// Replaces numbers that are saturated by those in the zip64 extra field, if there is one.
  void widen(std::string_view name, Bytes extra, std::initializer_list<std::uint64_t*> numbers) const {
    bool seen = false;
    while (extra.size() >= 4) {
      const auto id = number<std::uint16_t>(extra, 0);
      const std::size_t size = number<std::uint16_t>(extra, 2);
      if (size > extra.size() - 4)
        refuse_member(name, "has an extra field that is cut short: " + counted(size, "byte") + ", " +
                                std::to_string(extra.size() - 4) + " left");
      if (id == kExtra64) {
        if (seen) refuse_member(name, "has two zip64 extra fields");
        seen = true;
        widen_from(name, extra.subspan(4, size), numbers);
      }
      extra = extra.subspan(4 + size);
    }
  }

  void widen_from(std::string_view name, Bytes field, std::initializer_list<std::uint64_t*> numbers) const {
    for (std::uint64_t* wide : numbers) {
      if (*wide != kSaturated32) continue;
      if (field.size() < sizeof(std::uint64_t)) refuse_member(name, "has a zip64 extra field that is too short");
      *wide = number<std::uint64_t>(field, 0);
      field = field.subspan(sizeof(std::uint64_t));
    }
  }

  /// Compares the local header and sets the beginning of the payload. Sizes and CRC that follow the payload are not
  /// read: those of the central directory are compared with the payload itself.
  void read_local(ZipEntry& entry, std::uint64_t at) const {
    const std::uint64_t stop = directory_.begin;
    if (at > stop || stop - at < kLocalHeaderBytes) refuse_beyond(entry, at);
    const Bytes header = part(at, kLocalHeaderBytes);
    if (number<std::uint32_t>(header, 0) != kLocalHeader)
      refuse_member(entry.name, "has no local header at byte " + std::to_string(at));
    const std::uint64_t name_size = number<std::uint16_t>(header, 26);
    const std::uint64_t extra_size = number<std::uint16_t>(header, 28);
    const std::uint64_t front = kLocalHeaderBytes + name_size + extra_size;
    if (stop - at < front || stop - at - front < entry.packed_size) refuse_beyond(entry, at);
    compare(entry, "name", quote(entry.name), quote(text(part(at + kLocalHeaderBytes, name_size))));
    const auto method = number<std::uint16_t>(header, 8);
    compare(entry, "method", std::to_string(entry.deflated ? kDeflated : kStored), std::to_string(method));
    const auto flags = number<std::uint16_t>(header, 6);
    if ((flags & kUnreadable) != 0) refuse_member(entry.name, "is encrypted: flags " + std::to_string(flags));
    std::uint64_t size = number<std::uint32_t>(header, 22);
    std::uint64_t packed_size = number<std::uint32_t>(header, 18);
    widen(entry.name, part(at + kLocalHeaderBytes + name_size, extra_size), {&size, &packed_size});
    const bool later = (flags & kDescriptorFollows) != 0;
    compare(entry, "CRC", entry.crc, number<std::uint32_t>(header, 14), later);
    compare(entry, "size", entry.size, size, later);
    compare(entry, "packed size", entry.packed_size, packed_size, later);
    entry.begin = at + front;
  }

  [[noreturn]] void refuse_beyond(const ZipEntry& entry, std::uint64_t at) const {
    refuse_member(entry.name, "reaches beyond the members: " + counted(entry.packed_size, "byte") + " from byte " +
                                  std::to_string(at) + ", the central directory is at byte " +
                                  std::to_string(directory_.begin));
  }

  void compare(const ZipEntry& entry, std::string_view what, std::uint64_t central, std::uint64_t local,
               bool later) const {
    if (later && local == 0) return;
    if (central != local) compare(entry, what, std::to_string(central), std::to_string(local));
  }

  void compare(const ZipEntry& entry, std::string_view what, const std::string& central,
               const std::string& local) const {
    if (central != local)
      refuse_member(entry.name, "has a local header that disagrees with the central directory: " + std::string(what) +
                                    " " + local + " and " + central);
  }

  void check_overlap() {
    std::ranges::sort(extents_, {}, &Extent::begin);
    const auto overlap = [](const Extent& a, const Extent& b) { return b.begin < a.end; };
    const auto first = std::ranges::adjacent_find(extents_, overlap);
    if (first == extents_.end()) return;
    refuse_member(entries_[first->member].name, "overlaps " + quote(entries_[std::next(first)->member].name) +
                                                    ": it ends at byte " + std::to_string(first->end) +
                                                    ", the other begins at byte " +
                                                    std::to_string(std::next(first)->begin));
  }

  Bytes bytes_;
  std::string_view where_;
  Directory directory_;
  std::uint64_t at_ = 0;
  std::vector<ZipEntry> entries_;
  std::vector<Extent> extents_;
};

}  // namespace

void check_name(std::string_view name, std::string_view where) {
  if (name.empty()) refuse(where, "a member has no name: ''");
  if (invalid_utf8(name)) refuse(where, "a member's name is not UTF-8: " + quote(name));
  if (name.find('\0') != std::string_view::npos) refuse(where, "a member's name holds a NUL: " + quote(name));
  if (absolute(name)) refuse(where, "a member's name is an absolute path: " + quote(name));
  if (climbs(name)) refuse(where, "a member's name climbs out of the archive: " + quote(name));
}

namespace {

/// Returns the members. Throws IoError where a local header differs from the directory or members overlap.
std::vector<ZipEntry> read_directory(Bytes bytes, std::string_view where) {
  return DirectoryReader(bytes, where).read();
}

}  // namespace

}  // namespace ferrite::io::detail::zip

// ---- members -------------------------------------------------------------------------------------------

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

/// Inflates the front of a stream into all of `out`. What follows is not read.
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

// ---- writing -------------------------------------------------------------------------------------------

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

/// Appends the fields from the flags to the sizes, which are equal in both headers.
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

/// Appends the central header of an entry whose `begin` is the position of its local header.
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
  constexpr std::size_t kMostName = 200;  // an estimate: names may be longer
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
