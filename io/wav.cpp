/// Reads and writes WAV files and the formats of their samples.
#include "ferrite/io/wav.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

/// The encodings of samples. The last two are ITU-T G.711: 13 or 14 bits in 8.
enum class WavSample : std::uint8_t { integer, floating, a_law, mu_law };

constexpr std::uint16_t kWavInteger = 1, kWavFloat = 3, kWavALaw = 6, kWavMuLaw = 7, kWavExtensible = 0xfffe;

struct WavLayout {
  WavSample sample = WavSample::integer;
  std::uint32_t channels = 0;
  std::uint32_t rate = 0;
  std::uint32_t bits = 0;  ///< number of bits of a sample, a multiple of 8

  std::size_t sample_bytes() const { return bits / 8; }
  std::size_t frame_bytes() const { return channels * sample_bytes(); }
};

/// Returns an unsigned little-endian number of up to four bytes.
std::uint32_t little_endian(std::span<const std::byte> bytes);

// ---- the format ----------------------------------------------------------------------------------------

constexpr std::size_t kPlain = 16, kExtended = 40;  // sizes of a format chunk in bytes

/// The bytes of KSDATAFORMAT_SUBTYPE_PCM and _IEEE_FLOAT after their first two.
constexpr std::array<unsigned char, 14> kSubtype = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};

/// Returns the format that an extensible chunk names.
std::uint32_t extended_tag(std::span<const std::byte> chunk, std::string_view where) {
  if (chunk.size() < kExtended)
    refuse(where, "the extensible format is cut short: " + counted(chunk.size(), "byte") + " of 40");
  const auto same = [](std::byte byte, unsigned char wanted) { return std::to_integer<unsigned char>(byte) == wanted; };
  const auto guid = chunk.subspan(24, 16);
  if (!std::ranges::equal(guid.subspan(2), kSubtype, same)) refuse(where, "the extensible format is not one of PCM");
  const std::uint32_t valid = little_endian(chunk.subspan(18, 2)), bits = little_endian(chunk.subspan(14, 2));
  if (valid > bits)
    refuse(where,
           "more bits of a sample are valid than there are: " + std::to_string(valid) + " of " + std::to_string(bits));
  return little_endian(guid.first(2));
}

struct SampleKind {
  std::string_view name;
  std::array<std::uint32_t, 4> bits;  ///< supported widths, padded with 0 in front
};

/// The kinds of samples, indexed by WavSample.
constexpr std::array<SampleKind, 4> kSamples = {{{"integers", {8, 16, 24, 32}},
                                                 {"floats", {0, 0, 32, 64}},
                                                 {"samples in A-law", {0, 0, 0, 8}},
                                                 {"samples in mu-law", {0, 0, 0, 8}}}};

std::optional<WavSample> sample_of(std::uint32_t tag) {
  switch (tag) {
    case kWavInteger: return WavSample::integer;
    case kWavFloat: return WavSample::floating;
    case kWavALaw: return WavSample::a_law;
    case kWavMuLaw: return WavSample::mu_law;
    default: return std::nullopt;
  }
}

void check(const WavLayout& layout, std::uint32_t frame, std::string_view where) {
  const auto& [sample, channels, rate, bits] = layout;
  const auto& [name, known] = kSamples[static_cast<std::size_t>(sample)];
  if (std::ranges::find(known, bits) == known.end() || bits == 0) {
    std::string list;
    for (const std::uint32_t b : known)
      if (b > 0) list += (list.empty() ? "" : b == known.back() ? " and " : ", ") + std::to_string(b);
    refuse(where, std::string(name) + " of other than " + list + " bits: " + std::to_string(bits));
  }
  if (channels == 0) refuse(where, "no channels: 0");
  if (rate == 0) refuse(where, "no samples a second: 0");
  if (frame != layout.frame_bytes())
    refuse(where, "the size of a frame contradicts its format: " + counted(frame, "byte") + " for " +
                      counted(channels, "channel") + " of " + std::to_string(bits) + " bits");
}

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

/// Returns an unsigned little-endian number of eight bytes.
std::uint64_t little_endian_64(std::span<const std::byte> bytes) {
  return std::uint64_t{little_endian(bytes.subspan(4, 4))} << 32 | little_endian(bytes.first(4));
}

/// Reads a format chunk. Throws IoError.
WavLayout read_wav_format(std::span<const std::byte> chunk, std::string_view where) {
  if (chunk.size() < kPlain) refuse(where, "the format is cut short: " + counted(chunk.size(), "byte") + " of 16");
  const auto number = [&](std::size_t at, std::size_t width) { return little_endian(chunk.subspan(at, width)); };
  std::uint32_t tag = number(0, 2);
  if (tag == kWavExtensible) tag = extended_tag(chunk, where);
  const std::optional<WavSample> sample = sample_of(tag);
  if (!sample)
    refuse(where, "unsupported format: " + std::to_string(tag) +
                      "; supported are 1 (integers), 3 (floats), 6 (A-law) and 7 (mu-law)");
  const WavLayout layout{*sample, number(2, 2), number(4, 4), number(14, 2)};
  check(layout, number(12, 2), where);
  return layout;
}

}  // namespace

}  // namespace ferrite::io::detail

// ---- reading -------------------------------------------------------------------------------------------

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

/// Returns an integer of 8 to 32 bits in the top bits of 32.
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

/// Decodes a byte of G.711 to an integer of 16 bits, of which the top 13 (A-law) or 14 (mu-law) are used. The byte has
/// a sign, three bits of an exponent and four of a mantissa, in whose middle the value lies; some bits are inverted.
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
  constexpr float kStep = 1.0F / 32768;  // a step of 16 bits
  const auto byte = std::to_integer<unsigned>(bytes[0]);
  if (kind == WavSample::a_law) return static_cast<float>(of_a_law(byte)) * kStep;
  if (kind == WavSample::mu_law) return static_cast<float>(of_mu_law(byte)) * kStep;
  // Below 25 bits the float is exact; for 32 bits it is the nearest one.
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

/// The sizes in bytes that the file declares for itself and its samples.
struct Sizes {
  std::uint64_t whole = 0, data = 0;
  bool in_64_bits = false;

  bool unknown() const {
    const std::uint64_t none = in_64_bits ? kUnknownLong : kUnknownSize;
    return data == none || (data == 0 && (whole == 0 || whole == none));
  }
};

/// Returns the samples: as many bytes as the data chunk declares, or all that are left where it was written to a pipe.
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

/// Returns whether a file is RF64 (EBU Tech 3306) or BW64 (ITU-R BS.2088), whose first chunk has sizes of 64 bits.
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

/// Reads the sizes of RF64 or BW64 from their chunk, which precedes all others.
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

// ---- writing -------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kWhere = "write_wav";
constexpr std::uint64_t kBeforeSamples = 64;  // more than there is before the samples

std::string message(std::string_view what) { return std::string(kWhere) + ": " + std::string(what); }

/// Appends little-endian numbers and words.
struct Output {
  std::vector<std::byte> bytes{};

  void word(std::string_view text) {
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  }
  void number(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
};

/// Returns the samples as dense [C, N].
Tensor checked_samples(const Tensor& x) {
  if (!x.defined() || x.is_abstract())
    detail::refuse(kWhere, "the samples have no values: they are undefined or being traced");
  if (x.dtype() != Dtype::f32) throw DtypeError(message("samples must be f32, got " + x.spec().str()));
  if (x.rank() != 1 && x.rank() != 2)
    throw ShapeError(message("samples must be [C, N], or [N] for one channel, got " + x.shape().str()));
  const Tensor dense = contiguous(x.unmarked());
  return x.rank() == 1 ? reshape(dense, {1, x.size(0)}) : dense;
}

detail::WavLayout layout_of(const Tensor& samples, std::int64_t rate, WavFormat format) {
  const std::uint32_t bits = format == WavFormat::pcm16 ? 16 : format == WavFormat::pcm24 ? 24 : 32;
  const std::int64_t channels = samples.size(0), most = 0xffff / (bits / 8);  // a frame has 16 bits for its size
  if (channels < 1 || channels > most)
    throw ValueError(message("a file has 1 to " + std::to_string(most) + " channels, got " + std::to_string(channels)));
  if (rate < 1 || !std::in_range<std::uint32_t>(rate))
    throw ValueError(message("the rate must lie in 1..4294967295, got " + std::to_string(rate)));
  return {format == WavFormat::float32 ? detail::WavSample::floating : detail::WavSample::integer,
          static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(rate), bits};
}

std::uint32_t checked_size(const Tensor& samples, const detail::WavLayout& layout) {
  const auto count = static_cast<std::uint64_t>(samples.numel());
  if (count > (0xffffffffU - kBeforeSamples) / layout.sample_bytes())
    detail::refuse(kWhere, "too long for a WAV file, which holds 4 GiB: " + samples.shape().str() + " of " +
                               std::to_string(layout.bits) + " bits");
  return static_cast<std::uint32_t>(count * layout.sample_bytes());
}

/// Appends everything before the samples. Formats other than integers repeat the number of frames.
void append_front(Output& out, const detail::WavLayout& layout, std::uint32_t size) {
  const bool floating = layout.sample == detail::WavSample::floating;
  const std::uint32_t format_size = floating ? 18 : 16, fact_size = floating ? 12 : 0;
  const std::uint64_t frame = layout.frame_bytes();
  out.word("RIFF");
  out.number(4 + 8 + format_size + fact_size + 8 + std::uint64_t{size} + size % 2, 4);
  out.word("WAVEfmt ");
  out.number(format_size, 4);
  out.number(floating ? detail::kWavFloat : detail::kWavInteger, 2);
  out.number(layout.channels, 2);
  out.number(layout.rate, 4);
  out.number(layout.rate * frame, 4);
  out.number(frame, 2);
  out.number(layout.bits, 2);
  if (floating) {
    out.number(0, 2);
    out.word("fact");
    out.number(4, 4);
    out.number(size / frame, 4);
  }
  out.word("data");
  out.number(size, 4);
}

std::uint64_t bits_of(float sample, const detail::WavLayout& layout) {
  if (layout.sample == detail::WavSample::floating) return std::bit_cast<std::uint32_t>(sample);
  if (std::isnan(sample)) throw ValueError(message("a sample is NaN, which no integer is; write float32"));
  const double full = std::ldexp(1.0, static_cast<int>(layout.bits) - 1);
  const double scaled = std::nearbyint(static_cast<double>(sample) * full);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::clamp(scaled, -full, full - 1)));
}

}  // namespace

std::vector<std::byte> serialize_wav(const Audio& audio, WavFormat format) {
  const Tensor samples = checked_samples(audio.samples);
  const detail::WavLayout layout = layout_of(samples, audio.rate, format);
  const std::uint32_t size = checked_size(samples, layout);
  Output out;
  out.bytes.reserve(kBeforeSamples + size);
  append_front(out, layout, size);
  const std::span<const float> values = samples.values<float>();
  const std::size_t channels = layout.channels, frames = values.size() / channels;
  for (std::size_t i = 0; i < frames; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      out.number(bits_of(values[c * frames + i], layout), layout.sample_bytes());
  if (size % 2 != 0) out.number(0, 1);
  return std::move(out.bytes);
}

void write_wav(const std::filesystem::path& path, const Audio& audio, WavFormat format) {
  write_atomically(path, serialize_wav(audio, format));
}

}  // namespace ferrite::io
