/// Reads and judges the format chunk of a WAV file.
#include "ferrite/io/wav/format.h"

#include <algorithm>
#include <array>
#include <string>

#include "ferrite/io/detail/text.h"

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

void check(const WavLayout& layout, std::uint32_t frame, std::string_view where) {
  const auto& [sample, channels, rate, bits] = layout;
  const bool integer = sample == WavSample::integer;
  if (integer ? bits == 0 || bits % 8 != 0 || bits > 32 : bits != 32 && bits != 64)
    refuse(where, std::string(integer ? "integers" : "floats") + " of other than " +
                      (integer ? "8, 16, 24 and 32" : "32 and 64") + " bits: " + std::to_string(bits));
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

WavLayout read_wav_format(std::span<const std::byte> chunk, std::string_view where) {
  if (chunk.size() < kPlain) refuse(where, "the format is cut short: " + counted(chunk.size(), "byte") + " of 16");
  const auto number = [&](std::size_t at, std::size_t width) { return little_endian(chunk.subspan(at, width)); };
  std::uint32_t tag = number(0, 2);
  if (tag == kWavExtensible) tag = extended_tag(chunk, where);
  if (tag != kWavInteger && tag != kWavFloat)
    refuse(where, "unsupported format: " + std::to_string(tag) + "; supported are 1 (integers) and 3 (floats)");
  const WavLayout layout{tag == kWavFloat ? WavSample::floating : WavSample::integer, number(2, 2), number(4, 4),
                         number(14, 2)};
  check(layout, number(12, 2), where);
  return layout;
}

}  // namespace ferrite::io::detail
