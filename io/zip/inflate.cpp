/// Inflates raw deflate streams (RFC 1951); the numbers in comments are its sections.
#include "ferrite/io/zip/zip.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace ferrite::io::detail {
namespace {

using End = Inflated::End;
using Lengths = std::span<const std::uint8_t>;

constexpr unsigned kBitsOfCode = 15;
constexpr std::size_t kLiterals = 288, kDistances = 32, kEndOfBlock = 256;

/// The stream as bits, the lowest of a byte first. Zeros follow its end; `count` is the number of real bits.
struct Bits {
  explicit Bits(std::span<const std::byte> bytes) : next(bytes.data()), end(next + bytes.size()) {}

  /// Fills the buffer with at least 56 bits, or all that are left.
  void refill() {
    if (end - next >= 8) {
      std::uint64_t ahead = 0;
      std::memcpy(&ahead, next, sizeof ahead);
      buffer |= ahead << count;  // bits that are already there are set again
      next += (63 - count) >> 3;
      count |= 56;
      return;
    }
    while (count <= 56 && next != end) {
      buffer |= std::to_integer<std::uint64_t>(*next++) << count;
      count += 8;
    }
  }
  void drop(unsigned n) {
    buffer >>= n;
    count -= n;
  }
  /// Takes the next n bits, which must be in the buffer.
  unsigned take(unsigned n) {
    const auto bits = static_cast<unsigned>(buffer & ((std::uint64_t{1} << n) - 1));
    drop(n);
    return bits;
  }
  /// Continues at the next whole byte, `next`.
  void align() {
    drop(count % 8);
    next -= count / 8;
    buffer = count = 0;
  }

  const std::byte* next;
  const std::byte* end;
  std::uint64_t buffer = 0;
  unsigned count = 0;
};

/// A canonical prefix code, 3.2.2: codes of one length follow each other in the order of their symbols, after all
/// shorter ones.
class Code {
 public:
  static constexpr int kNoSymbol = -1;

  /// Builds the code. Returns whether the lengths make one: complete, or of one symbol with one bit, or empty.
  bool build(Lengths lengths) {
    count_.fill(0);
    for (const std::uint8_t length : lengths) ++count_[length];
    count_[0] = 0;
    int free = 1;
    std::array<std::uint16_t, kBitsOfCode + 2> place{};
    for (unsigned n = 1; n <= kBitsOfCode; ++n) {
      free = 2 * free - count_[n];
      if (free < 0) return false;
      place[n + 1] = static_cast<std::uint16_t>(place[n] + count_[n]);
    }
    const unsigned used = place[kBitsOfCode + 1];
    if (free > 0 && used != count_[1]) return false;
    for (std::size_t s = 0; s < lengths.size(); ++s)
      if (lengths[s] != 0) symbols_[place[lengths[s]]++] = static_cast<std::uint16_t>(s);
    fill_table();
    return true;
  }

  /// A symbol and the number of its bits; kNoSymbol where no code begins with the bits.
  struct Found {
    int symbol;
    unsigned bits;
  };
  Found find(std::uint64_t bits) const {
    const std::uint16_t entry = table_[bits & (kTable - 1)];
    if (entry != 0) [[likely]]
      return {entry >> 4, entry & 15U};
    unsigned code = 0, first = 0, place = 0;
    for (unsigned n = 1; n <= kBitsOfCode; ++n) {
      code |= static_cast<unsigned>(bits >> (n - 1) & 1);
      if (code < first + count_[n]) return {symbols_[place + code - first], n};
      place += count_[n];
      first = (first + count_[n]) << 1;
      code <<= 1;
    }
    return {kNoSymbol, 1};  // a code with a gap has no symbol, or one of one bit
  }

 private:
  static constexpr unsigned kTableBits = 10;
  static constexpr std::size_t kTable = std::size_t{1} << kTableBits;

  /// Fills an entry for every continuation of the short codes, whose first bit is the lowest.
  void fill_table() {
    table_.fill(0);
    unsigned code = 0, place = 0;
    for (unsigned n = 1; n <= kTableBits; ++n, code <<= 1)
      for (unsigned i = 0; i < count_[n]; ++i, ++code, ++place) {
        unsigned reversed = 0;
        for (unsigned bit = 0; bit < n; ++bit) reversed |= (code >> bit & 1) << (n - 1 - bit);
        const auto entry = static_cast<std::uint16_t>(unsigned{symbols_[place]} << 4 | n);
        for (std::size_t at = reversed; at < kTable; at += std::size_t{1} << n) table_[at] = entry;
      }
  }

  std::array<std::uint16_t, kTable> table_;           // symbol and length; 0 where the code is longer or there is none
  std::array<std::uint16_t, kBitsOfCode + 1> count_;  // number of codes of each length
  std::array<std::uint16_t, kLiterals> symbols_;      // symbols in the order of their codes
};

/// The first value of a symbol of a length or distance, and the number of bits to be added to it (3.2.5).
struct Base {
  std::uint16_t first;
  std::uint8_t extra;
};
/// Returns the bases of N symbols from `first` on: the first two runs of `run` symbols have no bits, each later run
/// one more.
template <std::size_t N>
constexpr std::array<Base, N> bases_from(unsigned first, unsigned run) {
  std::array<Base, N> bases{};
  for (unsigned i = 0; i < N; ++i) {
    const unsigned extra = i < run ? 0 : i / run - 1;
    bases[i] = {static_cast<std::uint16_t>(first), static_cast<std::uint8_t>(extra)};
    first += 1U << extra;
  }
  return bases;
}
constexpr std::array<Base, 29> kLengthBases = [] {
  std::array<Base, 29> bases = bases_from<29>(3, 4);
  bases[28] = {258, 0};  // the longest has its own symbol
  return bases;
}();
constexpr std::array<Base, 30> kDistanceBases = bases_from<30>(1, 2);

class Inflation {
 public:
  Inflation(std::span<const std::byte> packed, std::span<std::byte> out)
      : begin_(packed.data()), bits_(packed), out_(out) {}

  Inflated run() {
    for (bool last = false; !last;) {
      bits_.refill();
      if (bits_.count < 3) return ended(End::cut_short);
      last = bits_.take(1) == 1;
      const unsigned kind = bits_.take(2);
      if (const Ended over = kind == 0 ? stored() : kind == 1 ? fixed() : kind == 2 ? dynamic() : unknown())
        return *over;
    }
    Inflated whole = ended(End::finished);
    whole.read = static_cast<std::size_t>(bits_.next - begin_) - bits_.count / 8;
    return whole;
  }

 private:
  using Ended = std::optional<Inflated>;  // empty where a block ended and the stream continues

  Inflated ended(End end) const { return {.end = end, .written = done_}; }
  Inflated damaged(std::string_view what) const { return {.end = End::damaged, .written = done_, .damage = what}; }
  Ended unknown() const { return damaged("invalid block type"); }

  /// Copies a stored block, 3.2.4: a length, its complement, bytes.
  Ended stored() {
    bits_.align();
    bits_.refill();
    if (bits_.count < 32) return ended(End::cut_short);
    const unsigned size = bits_.take(16), complement = bits_.take(16);
    if ((size ^ complement) != 0xffff) return damaged("invalid stored block lengths");
    bits_.align();
    const auto there = static_cast<std::size_t>(bits_.end - bits_.next);
    const std::size_t n = std::min({std::size_t{size}, there, out_.size() - done_});
    if (n > 0) std::memcpy(out_.data() + done_, bits_.next, n);
    bits_.next += n;
    done_ += n;
    if (n == size) return {};
    return ended(n == there ? End::cut_short : End::full);
  }

  /// Inflates a block with the fixed codes, 3.2.6.
  Ended fixed() {
    std::array<std::uint8_t, kLiterals> literals{};
    for (std::size_t i = 0; i < kLiterals; ++i)
      literals[i] = static_cast<std::uint8_t>(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    std::array<std::uint8_t, kDistances> distances{};
    distances.fill(5);
    literals_.build(literals);
    distances_.build(distances);
    return symbols();
  }

  /// Inflates a block that begins with the lengths of both codes, themselves in a code, 3.2.7.
  Ended dynamic() {
    constexpr std::array<std::uint8_t, 19> kOrder = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    bits_.refill();
    if (bits_.count < 14) return ended(End::cut_short);
    const std::size_t literals = bits_.take(5) + 257, distances = bits_.take(5) + 1, n = bits_.take(4) + 4;
    if (literals > 286 || distances > 30) return damaged("too many length or distance symbols");
    std::array<std::uint8_t, 19> of_lengths{};
    for (std::size_t i = 0; i < n; ++i) {
      bits_.refill();
      if (bits_.count < 3) return ended(End::cut_short);
      of_lengths[kOrder[i]] = static_cast<std::uint8_t>(bits_.take(3));
    }
    if (!literals_.build(of_lengths) || std::ranges::count(of_lengths, 0) >= 18)
      return damaged("invalid code lengths set");
    std::array<std::uint8_t, kLiterals + kDistances> lengths{};
    if (const Ended over = read_lengths(std::span(lengths).first(literals + distances))) return over;
    if (lengths[kEndOfBlock] == 0) return damaged("invalid code -- missing end-of-block");
    if (!literals_.build(std::span(lengths).first(literals))) return damaged("invalid literal/lengths set");
    if (!distances_.build(std::span(lengths).subspan(literals, distances))) return damaged("invalid distances set");
    return symbols();
  }

  Ended read_lengths(std::span<std::uint8_t> lengths) {
    for (std::size_t at = 0; at < lengths.size();) {
      bits_.refill();
      const auto [symbol, bits] = literals_.find(bits_.buffer);
      const unsigned extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
      if (bits + extra > bits_.count) return ended(End::cut_short);
      bits_.drop(bits);
      if (symbol < 16) {
        lengths[at++] = static_cast<std::uint8_t>(symbol);
        continue;
      }
      if (symbol == 16 && at == 0) return damaged("invalid bit length repeat");
      const std::uint8_t value = symbol == 16 ? lengths[at - 1] : std::uint8_t{0};
      const std::size_t repeats = bits_.take(extra) + (symbol == 18 ? 11U : 3U);
      if (repeats > lengths.size() - at) return damaged("invalid bit length repeat");
      std::ranges::fill(lengths.subspan(at, repeats), value);
      at += repeats;
    }
    return {};
  }

  /// Inflates literals, and copies of earlier output, to the end of the block, 3.2.3. A round takes at most 48 bits.
  Ended symbols() {
    while (true) {
      bits_.refill();
      const auto [symbol, bits] = literals_.find(bits_.buffer);
      if (bits > bits_.count) return ended(End::cut_short);
      if (symbol == Code::kNoSymbol) return damaged("invalid literal/length code");
      bits_.drop(bits);
      if (symbol < static_cast<int>(kEndOfBlock)) {
        if (done_ == out_.size()) return ended(End::full);
        out_[done_++] = static_cast<std::byte>(symbol);
      } else if (symbol == kEndOfBlock) {
        return {};
      } else if (const Ended over = copy(static_cast<std::size_t>(symbol) - kEndOfBlock - 1)) {
        return over;
      }
    }
  }

  Ended copy(std::size_t length_symbol) {
    if (length_symbol >= kLengthBases.size()) return damaged("invalid literal/length code");
    const Base length_base = kLengthBases[length_symbol];
    if (length_base.extra > bits_.count) return ended(End::cut_short);
    const std::size_t length = length_base.first + bits_.take(length_base.extra);
    const auto [symbol, bits] = distances_.find(bits_.buffer);
    if (bits > bits_.count) return ended(End::cut_short);
    if (symbol == Code::kNoSymbol || symbol >= static_cast<int>(kDistanceBases.size()))
      return damaged("invalid distance code");
    bits_.drop(bits);
    const Base base = kDistanceBases[static_cast<std::size_t>(symbol)];
    if (base.extra > bits_.count) return ended(End::cut_short);
    const std::size_t distance = base.first + bits_.take(base.extra);
    if (distance > done_) return damaged("invalid distance too far back");
    const std::size_t n = std::min(length, out_.size() - done_);
    std::byte* to = out_.data() + done_;
    const std::byte* from = to - distance;
    if (distance >= n) {
      std::memcpy(to, from, n);
    } else {
      for (std::size_t i = 0; i < n; ++i) to[i] = from[i];  // the copy overlaps itself
    }
    done_ += n;
    if (n < length) return ended(End::full);
    return {};
  }

  const std::byte* begin_;
  Bits bits_;
  std::span<std::byte> out_;
  std::size_t done_ = 0;
  Code literals_, distances_;
};

}  // namespace

Inflated inflate(std::span<const std::byte> packed, std::span<std::byte> out) { return Inflation(packed, out).run(); }

}  // namespace ferrite::io::detail
