/// Reads WAV files: the chunks, and samples as floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "ferrite/io/detail/text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/wav.h"
#include "ferrite/io/wav/format.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io {

using detail::little_endian;
using detail::refuse;
using detail::WavLayout;
using detail::WavSample;
using Bytes = std::span<const std::byte>;

namespace {

constexpr std::uint32_t kUnknownSize = 0xffffffff;
constexpr std::size_t kFront = 12, kChunkFront = 8;

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

float sample_of(Bytes bytes, WavSample kind) {
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

/// The samples: what a data chunk declares, or all that is left where it was written to a pipe.
Bytes data_of(Bytes rest, std::uint32_t size, std::uint32_t whole, std::size_t frame, std::string_view where) {
  const bool to_the_end = size == kUnknownSize || (size == 0 && (whole == 0 || whole == kUnknownSize));
  if (to_the_end) return rest.first(rest.size() - rest.size() % frame);
  if (size > rest.size())
    refuse(where, "the samples are cut short: " + std::to_string(rest.size()) + " of " + detail::counted(size, "byte"));
  if (size % frame != 0)
    refuse(where, "the samples are no whole number of frames: " + detail::counted(size, "byte") + " in frames of " +
                      std::to_string(frame));
  return rest.first(size);
}

void check_front(Bytes bytes, std::string_view where) {
  if (bytes.size() < kFront) refuse(where, "too short for a WAV file: " + detail::counted(bytes.size(), "byte"));
  if (!is(bytes, "RIFF"))
    refuse(where, "not a WAV file: it begins with " + detail::quote(word_of(bytes.first(4))) + ", not with 'RIFF'");
  if (!is(bytes.subspan(8), "WAVE"))
    refuse(where, "RIFF, but not a WAV file: its form is " + detail::quote(word_of(bytes.subspan(8, 4))));
}

}  // namespace

Audio parse_wav(Bytes bytes, std::string_view where) {
  check_front(bytes, where);
  const std::uint32_t whole = little_endian(bytes.subspan(4, 4));
  std::optional<WavLayout> layout;
  Bytes rest = bytes.subspan(kFront);
  while (rest.size() >= kChunkFront) {
    const Bytes kind = rest.first(4);
    const std::uint32_t size = little_endian(rest.subspan(4, 4));
    rest = rest.subspan(kChunkFront);
    if (is(kind, "data")) {
      if (!layout) refuse(where, "the samples come before their format");
      const Bytes data = data_of(rest, size, whole, layout->frame_bytes(), where);
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
