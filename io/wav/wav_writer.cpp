/// Writes WAV files: samples as integers or floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/wav.h"
#include "ferrite/io/wav/wav_format.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

constexpr std::string_view kWhere = "write_wav";
constexpr std::uint64_t kFront = 64;  // more than stands before the samples

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

/// [C, N], dense.
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
  if (count > (0xffffffffU - kFront) / layout.sample_bytes())
    detail::refuse(kWhere, "too long for a WAV file, which holds 4 GiB: " + samples.shape().str() + " of " +
                               std::to_string(layout.bits) + " bits");
  return static_cast<std::uint32_t>(count * layout.sample_bytes());
}

/// Everything before the samples. Formats other than integers say again how many frames there are.
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
  out.bytes.reserve(kFront + size);
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
