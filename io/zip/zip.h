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

/// Signatures of the records of a zip archive, named as in APPNOTE.TXT 6.3 (pkware.com); all numbers are little-endian.
inline constexpr std::uint32_t kLocalHeader = 0x04034b50;
inline constexpr std::uint32_t kCentralHeader = 0x02014b50;
inline constexpr std::uint32_t kEnd = 0x06054b50;
inline constexpr std::uint32_t kEnd64 = 0x06064b50;
inline constexpr std::uint32_t kEnd64Locator = 0x07064b50;

/// Sizes in bytes of the records without names, extra fields and comments.
inline constexpr std::size_t kLocalHeaderBytes = 30;
inline constexpr std::size_t kCentralHeaderBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

/// Flags of members that cannot be read: encrypted in one of three ways, or a patch.
inline constexpr std::uint16_t kUnreadable = 0x2061;

/// Flag of members whose sizes and CRC follow the payload, while those of the local header may be 0.
inline constexpr std::uint16_t kDescriptorFollows = 0x0008;
inline constexpr std::uint16_t kUtf8 = 0x0800;

/// Values in place of a number that is in the zip64 record or extra field.
inline constexpr std::uint16_t kSaturated16 = 0xffff;
inline constexpr std::uint32_t kSaturated32 = 0xffffffff;
inline constexpr std::uint16_t kExtra64 = 0x0001;       ///< id of the zip64 extra field
inline constexpr std::uint16_t kExtraPadding = 0x4246;  ///< id of the padding that PyTorch writes

/// Returns the number at a byte position, which is not checked.
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
  std::uint64_t size = 0;         ///< size of the contents, in bytes
  std::uint64_t packed_size = 0;  ///< size of the payload, in bytes
  std::uint64_t begin = 0;        ///< position of the payload in the archive
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// The contents of an entry: a view of the archive if it is stored, its own memory if it was deflated.
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
  /// Largest number of bytes that one byte of deflate can inflate to.
  static constexpr std::uint64_t kMostOfAByte = 1032;

  /// Reads the directory of an archive, of which no member may inflate to more than `most_inflated` bytes.
  ZipArchive(std::span<const std::byte> bytes, std::string_view where,
             std::uint64_t most_inflated = ReadOptions().most_inflated);

  /// Returns the entries in the order of the central directory.
  std::span<const ZipEntry> entries() const { return entries_; }
  /// Returns the entry with a name, or null.
  const ZipEntry* find(std::string_view name) const;
  /// Returns the contents of an entry, their CRC checked. Refuses, before memory is allocated, more than `most` bytes,
  /// more than a member may inflate to and more than deflate can give.
  ZipData read(const ZipEntry& entry, std::uint64_t most) const;
  /// Returns the first `most` bytes of the contents, or all there are. Neither CRC nor size is checked.
  ZipData front(const ZipEntry& entry, std::uint64_t most) const;

 private:
  std::span<const std::byte> payload_of(const ZipEntry& entry) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  std::uint64_t most_inflated_;
  std::vector<ZipEntry> entries_;       // in the order of the central directory
  std::vector<std::uint32_t> by_name_;  // indices, in the order of names
};

/// Returns whether the bytes begin as a zip archive does.
bool looks_like_zip(std::span<const std::byte> bytes);

/// Builds an archive of stored members in memory; errors begin with `where`. Two archives of equal members are equal
/// byte for byte.
class ZipWriter {
 public:
  /// Makes a writer that aligns every payload to a multiple of `alignment` (a power of two), by padding in the extra
  /// field.
  explicit ZipWriter(std::size_t alignment = 1, std::string_view where = "zip")
      : alignment_(alignment), where_(where) {}
  /// Reserves memory for `members` more members of `bytes` bytes in all, so that adding them does not reallocate.
  void reserve(std::uint64_t bytes, std::size_t members);
  /// Adds a member. Throws IoError for a name that ZipArchive would refuse.
  void add(std::string_view name, std::span<const std::byte> contents);
  /// Adds a member whose contents are `first` followed by `second`. Throws as the other form.
  void add(std::string_view name, std::span<const std::byte> first, std::span<const std::byte> second);
  /// Returns the whole archive; the writer is empty afterwards. Throws IoError for a name that occurs twice.
  std::vector<std::byte> finish();

 private:
  std::size_t alignment_;
  std::string where_;
  std::vector<std::byte> bytes_;
  std::vector<ZipEntry> entries_;
};

// ---- inflating -----------------------------------------------------------------------------------------

/// The result of inflating a stream.
struct Inflated {
  enum class End {
    finished,   ///< the stream has ended
    full,       ///< the memory is full, and the stream has more
    cut_short,  ///< the bytes have ended, and the stream has not
    damaged
  };
  End end = End::finished;
  std::size_t written = 0;       ///< number of bytes of contents
  std::size_t read = 0;          ///< number of bytes of the stream, if it is finished
  std::string_view damage = {};  ///< description of the fault of a damaged stream
};

/// Inflates a raw deflate stream (RFC 1951) into `out` until either ends. Uses only memory on the stack, never throws,
/// and never reads or writes outside of both spans, whatever the bytes are.
Inflated inflate(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace ferrite::io::detail
