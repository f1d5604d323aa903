#include "ferrite/io/detail/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "ferrite/io/detail/text.h"
#include "ferrite/io/detail/zip_directory.h"
#include "ferrite/io/detail/zip_format.h"

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
    Bytef spare = 0;  // shows a stream that is longer than `out`
    std::size_t done = 0;
    int result = Z_OK;
    while (result == Z_OK) {
      give_input();
      const std::size_t room = std::min(out.size() - done, kMostAtOnce);
      stream_.next_out = room > 0 ? reinterpret_cast<Bytef*>(out.data() + done) : &spare;
      stream_.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
      const uInt before = stream_.avail_out;
      result = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t got = before - stream_.avail_out;
      if (room == 0 && got > 0) refuse(where_, "inflates to more than its size: " + counted(out.size(), "byte"));
      done += got;
    }
    finish(result, out.size(), done);
  }

 private:
  void give_input() {
    if (stream_.avail_in > 0 || packed_.empty()) return;
    const std::size_t part = std::min(packed_.size(), kMostAtOnce);
    stream_.next_in = const_cast<Bytef*>(zlib_bytes(packed_));
    stream_.avail_in = static_cast<uInt>(part);
    packed_ = packed_.subspan(part);
  }

  void finish(int result, std::size_t wanted, std::size_t done) const {
    const std::size_t left = packed_.size() + stream_.avail_in;
    if (result == Z_MEM_ERROR) refuse(where_, "not enough memory to inflate");
    if (result == Z_BUF_ERROR)
      refuse(where_, "the deflated bytes are cut short: " + std::to_string(done) + " of " + counted(wanted, "byte"));
    if (result != Z_STREAM_END)
      refuse(where_,
             "the deflated bytes are damaged: " + std::string(stream_.msg != nullptr ? stream_.msg : "no stream"));
    if (done != wanted)
      refuse(where_, "inflates to less than its size: " + std::to_string(done) + " of " + counted(wanted, "byte"));
    if (left != 0) refuse(where_, "something follows the deflated bytes: " + counted(left, "byte"));
  }

  Bytes packed_;
  std::string_view where_;
  z_stream stream_{};
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

ZipArchive::ZipArchive(Bytes bytes, std::string_view where)
    : bytes_(bytes), where_(where), entries_(zip::read_directory(bytes, where)), by_name_(entries_.size()) {
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
  const Bytes payload =
      bytes_.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.packed_size));
  if (!entry.deflated) {
    check_crc(payload, entry.crc, place);
    return ZipData(payload);
  }
  if (entry.size / kMostRatio > entry.packed_size || entry.size > entry.packed_size * kMostRatio)
    refuse(place, "is packed too tightly to be trusted: " + counted(entry.packed_size, "byte") + " that inflate to " +
                      std::to_string(entry.size) + ", above " + std::to_string(kMostRatio) +
                      " to 1; save it without compression");
  std::unique_ptr<std::byte[]> memory = memory_for(entry.size, place);
  const std::span<std::byte> contents(memory.get(), static_cast<std::size_t>(entry.size));
  Inflater(payload, place).run(contents);
  check_crc(contents, entry.crc, place);
  return {std::move(memory), contents.size()};
}

bool looks_like_zip(Bytes bytes) {
  if (bytes.size() < 4) return false;
  const auto signature = zip::number<std::uint32_t>(bytes, 0);
  return signature == zip::kLocalHeader || signature == zip::kEnd;
}

}  // namespace ferrite::io::detail
