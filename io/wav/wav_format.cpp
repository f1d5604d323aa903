/// Reads and judges the format chunk of a WAV file.
#include "ferrite/io/wav/wav_format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kPlain = 16, kExtended = 40;  // bytes of a format chunk

/// KSDATAFORMAT_SUBTYPE_PCM and _IEEE_FLOAT behind their first two bytes.
constexpr std::array<unsigned char, 14> kSubtype = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};

/// The format that an extensible chunk names.
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
  std::array<std::uint32_t, 4> bits;  ///< those that there are, 0 before them
};
/// By WavSample.
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

}  // namespace

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

std::uint64_t little_endian_64(std::span<const std::byte> bytes) {
  return std::uint64_t{little_endian(bytes.subspan(4, 4))} << 32 | little_endian(bytes.first(4));
}

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

}  // namespace ferrite::io::detail
