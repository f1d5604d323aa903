#pragma once
/// Reading and writing zip archives, and inflating their members.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

// ---- the format ----------------------------------------------------------------------------------------

namespace ferrite::io::detail::zip {

/// The records of a zip archive, by the names of APPNOTE.TXT 6.3 (pkware.com), all numbers little-endian.
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

// ---- archives ------------------------------------------------------------------------------------------

namespace ferrite::io::detail {

/// One file in an archive, as the central directory and its local header agree on it.
struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;         ///< of the contents
  std::uint64_t packed_size = 0;  ///< of the payload
  std::uint64_t begin = 0;        ///< of the payload in the archive
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// Contents of an entry: a view of the archive where it is stored, memory of its own where it was deflated.
class ZipData {
 public:
  ZipData() = default;
  explicit ZipData(std::span<const std::byte> stored) : bytes_(stored) {}
  ZipData(std::unique_ptr<std::byte[]> owned, std::size_t size)
      : owned_(std::move(owned)), bytes_(owned_.get(), size) {}
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> owned_;
  std::span<const std::byte> bytes_;
};

/// A zip archive in memory; the bytes must outlive it. Every failure is an IoError that begins with `where`.
///
/// Refused: no or two end records, members beyond the file, names that occur twice, are absolute or climb with
/// "..", encrypted or otherwise packed members, local headers that disagree with the central directory, and,
/// when a member is read, a wrong CRC or size. Memory: ten times the central directory at most.
class ZipArchive {
 public:
  /// A byte of deflate gives at most so many.
  static constexpr std::uint64_t kMostOfAByte = 1032;

  /// No deflated member may grow to more than `most_inflated` bytes.
  ZipArchive(std::span<const std::byte> bytes, std::string_view where,
             std::uint64_t most_inflated = ReadOptions().most_inflated);

  /// In the order of the central directory.
  std::span<const ZipEntry> entries() const { return entries_; }
  /// Null where there is none.
  const ZipEntry* find(std::string_view name) const;
  /// The contents, their CRC checked. Refuses more than `most` bytes, more than a member may grow to and more than
  /// deflate can give before memory is taken.
  ZipData read(const ZipEntry& entry, std::uint64_t most) const;
  /// The first `most` bytes of the contents, or all there are. Neither CRC nor size is checked.
  ZipData front(const ZipEntry& entry, std::uint64_t most) const;

 private:
  std::span<const std::byte> payload_of(const ZipEntry& entry) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  std::uint64_t most_inflated_;
  std::vector<ZipEntry> entries_;       // in the order of the central directory
  std::vector<std::uint32_t> by_name_;  // indices, in the order of names
};

/// Whether the bytes begin as a zip archive does.
bool looks_like_zip(std::span<const std::byte> bytes);

/// Builds an archive of stored members in memory; errors begin with `where`. Two archives of equal members are equal
/// byte for byte.
class ZipWriter {
 public:
  /// Every payload begins at a multiple of `alignment` (a power of two), by padding in the extra field.
  explicit ZipWriter(std::size_t alignment = 1, std::string_view where = "zip")
      : alignment_(alignment), where_(where) {}
  /// Makes room, so that adding does not move what is there: the bytes of members to come and how many they are.
  void reserve(std::uint64_t bytes, std::size_t members);
  /// Throws IoError for a name that ZipArchive would refuse.
  void add(std::string_view name, std::span<const std::byte> contents);
  /// The same of two parts, one behind the other.
  void add(std::string_view name, std::span<const std::byte> first, std::span<const std::byte> second);
  /// The whole archive; the writer is empty afterwards. Throws IoError for a name that occurs twice.
  std::vector<std::byte> finish();

 private:
  std::size_t alignment_;
  std::string where_;
  std::vector<std::byte> bytes_;
  std::vector<ZipEntry> entries_;
};

// ---- inflating -----------------------------------------------------------------------------------------

/// How the inflation of a stream ended.
struct Inflated {
  enum class End {
    finished,   ///< the stream is over
    full,       ///< the memory is full, and the stream has more
    cut_short,  ///< the bytes are over, and the stream is not
    damaged
  };
  End end = End::finished;
  std::size_t written = 0;       ///< bytes of the contents
  std::size_t read = 0;          ///< bytes of the stream; those of `finished` alone
  std::string_view damage = {};  ///< what is wrong with a damaged stream
};

/// Inflates a raw deflate stream (RFC 1951) into `out` until either ends. Takes no memory but some of the stack, and
/// never fails otherwise: it reads and writes nothing outside of both, whatever the bytes are.
Inflated inflate(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace ferrite::io::detail
