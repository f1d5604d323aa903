/// Reads WAV files: the chunks, and samples as floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/wav.h"
#include "ferrite/io/wav/wav_format.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io {

using detail::little_endian;
using detail::little_endian_64;
using detail::refuse;
using detail::WavLayout;
using detail::WavSample;
using Bytes = std::span<const std::byte>;

namespace {

constexpr std::uint32_t kUnknownSize = 0xffffffff;
constexpr std::uint64_t kUnknownLong = ~std::uint64_t{0};
constexpr std::size_t kFront = 12, kChunkFront = 8, kLongSizes = 28;

bool is(Bytes bytes, std::string_view word) { return std::memcmp(bytes.data(), word.data(), word.size()) == 0; }

std::string word_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// An integer of 8 to 32 bits, at the top of 32.
std::int32_t top(Bytes bytes) {
  const std::uint32_t value = little_endian(bytes) << (32 - 8 * bytes.size());
  return static_cast<std::int32_t>(bytes.size() == 1 ? value ^ 0x80000000U : value);
}

template <class T>
float from_bits(Bytes bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<float>(value);
}

/// A byte of G.711 as an integer of 16 bits, whose top 13 (A-law) or 14 (mu-law) there are: a sign, three bits of an
/// exponent and four of a mantissa in whose middle the value lies. Sent with some of the bits inverted.
std::int32_t of_a_law(unsigned byte) {
  const unsigned bits = byte ^ 0x55U, exponent = bits >> 4 & 7U, mantissa = (bits & 15U) << 4 | 8U;
  const auto size = static_cast<std::int32_t>(exponent == 0 ? mantissa : (mantissa | 0x100U) << (exponent - 1));
  return (bits & 0x80U) != 0 ? size : -size;
}
std::int32_t of_mu_law(unsigned byte) {
  const unsigned bits = byte ^ 0xffU, exponent = bits >> 4 & 7U, mantissa = (bits & 15U) << 3 | 0x84U;
  const auto size = static_cast<std::int32_t>((mantissa << exponent) - 0x84U);
  return (bits & 0x80U) != 0 ? -size : size;
}

float sample_of(Bytes bytes, WavSample kind) {
  constexpr float kStep = 1.0F / 32768;  // of 16 bits
  const auto byte = std::to_integer<unsigned>(bytes[0]);
  if (kind == WavSample::a_law) return static_cast<float>(of_a_law(byte)) * kStep;
  if (kind == WavSample::mu_law) return static_cast<float>(of_mu_law(byte)) * kStep;
  // Below 25 bits the float is exact; of 32 bits it is the nearest one.
  if (kind == WavSample::integer) return std::ldexp(static_cast<float>(top(bytes)), -31);
  return bytes.size() == sizeof(float) ? from_bits<float>(bytes) : from_bits<double>(bytes);
}

Tensor samples_of(Bytes data, const WavLayout& layout) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t frames = data.size() / layout.frame_bytes(), width = layout.sample_bytes();
  const Shape shape = {static_cast<std::int64_t>(layout.channels), static_cast<std::int64_t>(frames)};
  return Tensor::build<float>(shape, [&](std::span<float> out) {
    for (std::size_t c = 0; c < layout.channels; ++c)
      for (std::size_t i = 0; i < frames; ++i)
        out[c * frames + i] = sample_of(data.subspan((i * layout.channels + c) * width, width), layout.sample);
  });
}

/// How many bytes the file and its samples say that they have.
struct Sizes {
  std::uint64_t whole = 0, data = 0;
  bool in_64_bits = false;

  bool unknown() const {
    const std::uint64_t none = in_64_bits ? kUnknownLong : kUnknownSize;
    return data == none || (data == 0 && (whole == 0 || whole == none));
  }
};

/// The samples: what a data chunk declares, or all that is left where it was written to a pipe.
Bytes data_of(Bytes rest, const Sizes& sizes, std::size_t frame, std::string_view where) {
  if (sizes.unknown()) return rest.first(rest.size() - rest.size() % frame);
  const std::uint64_t size = sizes.data;
  if (size > rest.size())
    refuse(where, "the samples are cut short: " + std::to_string(rest.size()) + " of " +
                      detail::counted(static_cast<std::size_t>(size), "byte"));
  if (size % frame != 0)
    refuse(where,
           "the samples are no whole number of frames: " + detail::counted(static_cast<std::size_t>(size), "byte") +
               " in frames of " + std::to_string(frame));
  return rest.first(static_cast<std::size_t>(size));
}

/// RF64 (EBU Tech 3306) and BW64 (ITU-R BS.2088): sizes of 64 bits are in a chunk of their own, the first.
bool is_long(Bytes bytes) { return is(bytes, "RF64") || is(bytes, "BW64"); }

void check_front(Bytes bytes, std::string_view where) {
  if (bytes.size() < kFront) refuse(where, "too short for a WAV file: " + detail::counted(bytes.size(), "byte"));
  if (!is(bytes, "RIFF") && !is_long(bytes))
    refuse(where, "not a WAV file: it begins with " + detail::quote(word_of(bytes.first(4))) +
                      ", not with 'RIFF', 'RF64' or 'BW64'");
  if (!is(bytes.subspan(8), "WAVE"))
    refuse(where, word_of(bytes.first(4)) + ", but not a WAV file: its form is " +
                      detail::quote(word_of(bytes.subspan(8, 4))));
}

/// The sizes of a long form, which stand in front of all other chunks.
Sizes long_sizes(Bytes rest, std::string_view where) {
  if (rest.size() < kChunkFront + kLongSizes || !is(rest, "ds64") || little_endian(rest.subspan(4, 4)) < kLongSizes)
    refuse(where, "its sizes are missing: the first chunk is no whole 'ds64'");
  return {little_endian_64(rest.subspan(8, 8)), little_endian_64(rest.subspan(16, 8)), true};
}

}  // namespace

Audio parse_wav(Bytes bytes, std::string_view where) {
  check_front(bytes, where);
  Bytes rest = bytes.subspan(kFront);
  const Sizes in_front = is_long(bytes) ? long_sizes(rest, where) : Sizes{.whole = little_endian(bytes.subspan(4, 4))};
  std::optional<WavLayout> layout;
  while (rest.size() >= kChunkFront) {
    const Bytes kind = rest.first(4);
    const std::uint32_t size = little_endian(rest.subspan(4, 4));
    rest = rest.subspan(kChunkFront);
    if (is(kind, "data")) {
      if (!layout) refuse(where, "the samples come before their format");
      const bool elsewhere = in_front.in_64_bits && size == kUnknownSize;
      const Sizes sizes = elsewhere ? in_front : Sizes{in_front.whole, size};
      const Bytes data = data_of(rest, sizes, layout->frame_bytes(), where);
      return {samples_of(data, *layout), layout->rate};
    }
    const std::uint64_t padded = std::uint64_t{size} + size % 2;
    if (size > rest.size())
      refuse(where, "the chunk " + detail::quote(word_of(kind)) + " is cut short: " + std::to_string(rest.size()) +
                        " of " + detail::counted(size, "byte"));
    if (is(kind, "fmt ")) {
      if (layout) refuse(where, "there are two formats");
      layout = detail::read_wav_format(rest.first(size), where);
    }
    rest = rest.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(padded, rest.size())));
  }
  refuse(where, "there are no samples: no chunk is 'data'");
}

Audio read_wav(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  ferrite::detail::log_debug(file.where + ": read " + detail::counted(file.bytes.span().size(), "byte"));
  return parse_wav(file.bytes.span(), file.where);
}

}  // namespace ferrite::io
