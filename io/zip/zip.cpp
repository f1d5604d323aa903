/// Reads zip archives: entries and their contents.
#include "ferrite/io/zip/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "ferrite/io/detail/text.h"
#include "ferrite/io/zip/zip_directory.h"
#include "ferrite/io/zip/zip_format.h"

namespace ferrite::io::detail {
namespace {

using Bytes = std::span<const std::byte>;

/// zlib takes and gives no more than this at once.
constexpr std::size_t kMostAtOnce = std::numeric_limits<uInt>::max();

const Bytef* zlib_bytes(Bytes bytes) { return reinterpret_cast<const Bytef*>(bytes.data()); }

/// A raw deflate stream that is inflated into memory.
class Inflater {
 public:
  Inflater(Bytes packed, std::string_view where) : packed_(packed), where_(where) {
    constexpr int kRaw = -15;  // no zlib header, the largest window
    if (inflateInit2(&stream_, kRaw) != Z_OK) refuse(where_, "not enough memory to inflate");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills all of `out` with all of the stream, neither more nor less.
  void run(std::span<std::byte> out) {
    fill(out);
    Bytef spare = 0;  // shows a stream that is longer than `out`
    while (result_ == Z_OK)
      if (step(&spare, 1) > 0) refuse(where_, "inflates to more than its size: " + counted(out.size(), "byte"));
    check_end(out.size());
  }

  /// Fills all of `out` with the front of the stream.
  void fill(std::span<std::byte> out) {
    while (result_ == Z_OK && done_ < out.size())
      done_ += step(reinterpret_cast<Bytef*>(out.data() + done_), out.size() - done_);
    if (done_ < out.size()) check_end(out.size());
  }

 private:
  /// What one call of zlib gives.
  std::size_t step(Bytef* out, std::size_t room) {
    if (stream_.avail_in == 0 && !packed_.empty()) {
      const std::size_t part = std::min(packed_.size(), kMostAtOnce);
      stream_.next_in = const_cast<Bytef*>(zlib_bytes(packed_));
      stream_.avail_in = static_cast<uInt>(part);
      packed_ = packed_.subspan(part);
    }
    const auto before = static_cast<uInt>(std::min(room, kMostAtOnce));
    stream_.next_out = out;
    stream_.avail_out = before;
    result_ = inflate(&stream_, Z_NO_FLUSH);
    return before - stream_.avail_out;
  }

  /// The stream has ended, with the last byte wanted and the last byte there.
  void check_end(std::size_t wanted) const {
    const std::size_t left = packed_.size() + stream_.avail_in;
    if (result_ == Z_MEM_ERROR) refuse(where_, "not enough memory to inflate");
    if (result_ == Z_BUF_ERROR)
      refuse(where_, "the deflated bytes are cut short: " + std::to_string(done_) + " of " + counted(wanted, "byte"));
    if (result_ != Z_STREAM_END)
      refuse(where_,
             "the deflated bytes are damaged: " + std::string(stream_.msg != nullptr ? stream_.msg : "no stream"));
    if (done_ != wanted)
      refuse(where_, "inflates to less than its size: " + std::to_string(done_) + " of " + counted(wanted, "byte"));
    if (left != 0) refuse(where_, "something follows the deflated bytes: " + counted(left, "byte"));
  }

  Bytes packed_;
  std::string_view where_;
  z_stream stream_{};
  int result_ = Z_OK;
  std::size_t done_ = 0;
};

void check_crc(Bytes bytes, std::uint32_t wanted, std::string_view where) {
  const auto found = static_cast<std::uint32_t>(crc32_z(0, zlib_bytes(bytes), bytes.size()));
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
  Inflater(payload, place).run(contents);
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
  Inflater(payload, place).fill(contents);
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
