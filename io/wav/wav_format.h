#pragma once
/// The format chunk of a WAV file: what its samples are.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ferrite::io::detail {

/// The last two are ITU-T G.711: 13 or 14 bits in 8.
enum class WavSample : std::uint8_t { integer, floating, a_law, mu_law };

inline constexpr std::uint16_t kWavInteger = 1, kWavFloat = 3, kWavALaw = 6, kWavMuLaw = 7, kWavExtensible = 0xfffe;

struct WavLayout {
  WavSample sample = WavSample::integer;
  std::uint32_t channels = 0;
  std::uint32_t rate = 0;
  std::uint32_t bits = 0;  ///< of one sample: a multiple of 8

  std::size_t sample_bytes() const { return bits / 8; }
  std::size_t frame_bytes() const { return channels * sample_bytes(); }
};

/// An unsigned little-endian number of up to four bytes.
std::uint32_t little_endian(std::span<const std::byte> bytes);
/// The same of eight bytes.
std::uint64_t little_endian_64(std::span<const std::byte> bytes);

/// The content of a format chunk. Throws IoError.
WavLayout read_wav_format(std::span<const std::byte> chunk, std::string_view where);

}  // namespace ferrite::io::detail
