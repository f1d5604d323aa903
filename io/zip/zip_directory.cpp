/// Reads the central directory of a zip archive and compares it with the local headers.
#include "ferrite/io/zip/zip_directory.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/zip/zip_format.h"

namespace ferrite::io::detail::zip {
namespace {

using Bytes = std::span<const std::byte>;

/// What a member takes in the file, its local header included.
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

  /// The next bytes of the directory.
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

  /// Takes the numbers that are saturated from the zip64 extra field, if there is one.
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

  /// Compares the local header and sets where the payload begins. Sizes and CRC that follow the payload are not
  /// looked at: those of the central directory are held against the payload itself.
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

std::vector<ZipEntry> read_directory(Bytes bytes, std::string_view where) {
  return DirectoryReader(bytes, where).read();
}

}  // namespace ferrite::io::detail::zip
