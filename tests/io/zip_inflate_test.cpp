/// Deflate streams and CRCs compared with zlib: its compressed streams, and its verdict on damaged ones.
#include "ferrite/io/zip/zip.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ferrite/io/detail/crc32.h"

namespace {

using ferrite::io::detail::crc32;
using ferrite::io::detail::Inflated;
using End = Inflated::End;
using Bytes = std::vector<std::byte>;

Bytef* zlib_bytes(const std::byte* bytes) { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes)); }

/// Returns a raw stream compressed by zlib.
Bytes packed(const Bytes& contents, int level, int strategy) {
  z_stream stream{};
  BOOST_REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, -15, 9, strategy) == Z_OK);
  Bytes out(deflateBound(&stream, static_cast<uLong>(contents.size())) + 10);
  stream.next_in = zlib_bytes(contents.data());
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = zlib_bytes(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  BOOST_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Outcome {
  End end;
  std::string damage;
  Bytes contents;
  std::size_t read;
};

Outcome of_zlib(const Bytes& stream, std::size_t room) {
  z_stream z{};
  BOOST_REQUIRE(inflateInit2(&z, -15) == Z_OK);
  Bytes out(room);
  z.next_in = zlib_bytes(stream.data());
  z.avail_in = static_cast<uInt>(stream.size());
  z.next_out = zlib_bytes(out.data());
  z.avail_out = static_cast<uInt>(room);
  const int status = inflate(&z, Z_FINISH);
  const End end = status == Z_STREAM_END   ? End::finished
                  : status == Z_DATA_ERROR ? End::damaged
                  : z.avail_out == 0       ? End::full
                                           : End::cut_short;
  out.resize(z.total_out);
  Outcome outcome{end, end == End::damaged && z.msg != nullptr ? z.msg : "", std::move(out), z.total_in};
  inflateEnd(&z);
  return outcome;
}

/// Inflates in separate memory, so that a sanitizer sees accesses outside.
Outcome ours(const Bytes& stream, std::size_t room) {
  const Bytes exact(stream.begin(), stream.end());
  Bytes out(room);
  const Inflated result = ferrite::io::detail::inflate(exact, out);
  BOOST_REQUIRE(result.written <= room);
  out.resize(result.written);
  return {result.end, std::string(result.damage), std::move(out), result.read};
}

/// Returns contents of several kinds: noise, few letters, runs, repeated pieces near and far.
Bytes contents_of(std::size_t size, int kind, std::mt19937& random) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned r = static_cast<unsigned>(random());
    const std::size_t back = kind == 3 ? 1 + r % 40 : 1 + r % 32768;
    if (kind == 0) bytes[i] = static_cast<std::byte>(r);
    if (kind == 1) bytes[i] = static_cast<std::byte>('a' + __builtin_ctz(r | 1U << 20));
    if (kind == 2) bytes[i] = static_cast<std::byte>(i / 1000);
    if (kind >= 3) bytes[i] = i >= back && r % 5 != 0 ? bytes[i - back] : static_cast<std::byte>(r >> 24);
  }
  for (std::size_t i = 40'000; kind == 4 && i < size; ++i) bytes[i] = bytes[i - 32'768];  // the largest distance
  return bytes;
}

/// Returns whether both outcomes agree. If the code of lengths has no lengths, zlib reads on until it misses an end of
/// a block or input.
bool agree(const Outcome& mine, const Outcome& theirs) {
  if (mine.damage == "invalid code lengths set" && theirs.damage != mine.damage)
    return theirs.end == End::cut_short || theirs.damage == "invalid code -- missing end-of-block";
  if (mine.end != theirs.end || mine.damage != theirs.damage) return false;
  return mine.end != End::finished || (mine.contents == theirs.contents && mine.read == theirs.read);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(inflate_streams)

BOOST_AUTO_TEST_CASE(what_zlib_packs) {
  std::mt19937 random(1);
  for (const std::size_t size : {0U, 1U, 2U, 3U, 257U, 258U, 259U, 5'000U, 65'535U, 65'536U, 200'000U})
    for (int kind = 0; kind < 5; ++kind) {
      const Bytes contents = contents_of(size, kind, random);
      for (const int level : {0, 1, 6, 9})
        for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE}) {
          const Bytes stream = packed(contents, level, strategy);
          const Outcome all = ours(stream, size);
          BOOST_REQUIRE((all.end == End::finished && all.contents == contents && all.read == stream.size()));
          Bytes longer = stream;
          longer.resize(stream.size() + 3, std::byte{0xff});
          BOOST_REQUIRE((ours(longer, size + 9).end == End::finished && ours(longer, size + 9).read == stream.size()));
          if (size == 0) continue;
          const std::size_t front = random() % size;
          const Outcome some = ours(stream, front);
          BOOST_REQUIRE(some.end == End::full);
          BOOST_REQUIRE((some.contents == Bytes(contents.begin(), contents.begin() + static_cast<long>(front))));
        }
    }
}

BOOST_AUTO_TEST_CASE(every_cut_is_noticed) {
  std::mt19937 random(2);
  for (int kind = 0; kind < 5; ++kind) {
    const Bytes contents = contents_of(600, kind, random);
    for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED}) {
      const Bytes stream = packed(contents, 9, strategy);
      for (std::size_t n = 0; n < stream.size(); ++n) {
        const Bytes cut(stream.begin(), stream.begin() + static_cast<long>(n));
        const Outcome outcome = ours(cut, 600);
        BOOST_REQUIRE(outcome.end == End::cut_short);
        BOOST_REQUIRE((outcome.contents == of_zlib(cut, 600).contents));
      }
    }
  }
}

/// A few bits of the streams are changed, most of them in the tables at their front: the verdict is zlib's, in its
/// words. All faults that exist occur.
BOOST_AUTO_TEST_CASE(damaged_streams_are_what_zlib_says) {
  constexpr std::size_t kRoom = 1 << 16;
  std::mt19937 random(3);
  std::set<std::string> seen;
  for (int i = 0; i < 40'000; ++i) {
    const Bytes contents = contents_of(20 + random() % 300, i % 5, random);
    Bytes stream = packed(contents, i % 7 == 0 ? 0 : 9, i % 3 == 0 ? Z_FIXED : Z_DEFAULT_STRATEGY);
    for (auto flips = 1 + random() % 3; flips > 0; --flips) {
      const std::size_t bit = random() % (8 * std::min<std::size_t>(stream.size(), random() % 2 == 0 ? 12 : 400));
      stream[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    }
    const Outcome theirs = of_zlib(stream, kRoom), mine = ours(stream, kRoom);
    if (theirs.end == End::full || mine.end == End::full) continue;
    BOOST_REQUIRE_MESSAGE(agree(mine, theirs),
                          "stream " << i << ": '" << mine.damage << "', zlib: '" << theirs.damage << "'");
    if (mine.end == End::damaged) seen.insert(mine.damage);
  }
  const std::set<std::string> all = {
      "invalid block type",          "invalid stored block lengths", "too many length or distance symbols",
      "invalid code lengths set",    "invalid bit length repeat",    "invalid code -- missing end-of-block",
      "invalid literal/lengths set", "invalid distances set",        "invalid literal/length code",
      "invalid distance code",       "invalid distance too far back"};
  BOOST_TEST(seen == all, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(noise_is_what_zlib_says) {
  std::mt19937 random(4);
  for (int i = 0; i < 100'000; ++i) {
    Bytes stream(random() % 80);
    for (std::byte& b : stream) b = static_cast<std::byte>(random());
    const Outcome theirs = of_zlib(stream, 4096), mine = ours(stream, 4096);
    if (theirs.end == End::full || mine.end == End::full) continue;
    BOOST_REQUIRE_MESSAGE(agree(mine, theirs),
                          "stream " << i << ": '" << mine.damage << "', zlib: '" << theirs.damage << "'");
  }
}

BOOST_AUTO_TEST_CASE(checksums) {
  std::mt19937 random(5);
  const Bytes bytes = contents_of(1000, 0, random);
  BOOST_TEST(crc32(std::as_bytes(std::span("123456789", 9))) == 0xcbf43926U);
  BOOST_TEST(crc32({}) == 0U);
  for (std::size_t begin = 0; begin < 20; ++begin)
    for (std::size_t n = 0; n < 100; ++n) {
      const auto part = std::span(bytes).subspan(begin, n);
      const auto wanted = static_cast<std::uint32_t>(crc32_z(0, zlib_bytes(part.data()), n));
      BOOST_REQUIRE(crc32(part) == wanted);
      BOOST_REQUIRE(crc32(part.last(n / 3), crc32(part.first(n - n / 3))) == wanted);
    }
}

BOOST_AUTO_TEST_SUITE_END()
