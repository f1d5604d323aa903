#pragma once
/// Reading and writing WAV sound files.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/tensor/tensor.h"

/// RIFF/WAVE (Microsoft, "Multiple Channel Audio Data and WAVE Files"): a format chunk and samples, channel by channel
/// within each frame.
namespace ferrite::io {

/// A recording: samples and their rate.
struct Audio {
  Tensor samples{};       ///< f32 [C, N]: C channels of N samples, 1 is full scale
  std::int64_t rate = 0;  ///< samples per second of each channel
};

/// The encoding of samples that are written.
enum class WavFormat : std::uint8_t { pcm16, pcm24, float32 };

/// Reads a WAV file that is already in memory.
///
/// Integers of 8 (unsigned), 16, 24 and 32 bits are divided by 2^(bits - 1), as in soundfile and torchaudio, so that
/// they lie in [-1, 1); floats of 32 and 64 bits keep their values, rounded to f32. A-law and mu-law (ITU-T G.711,
/// telephony) become integers of 16 bits first. WAVE_FORMAT_EXTENSIBLE is understood for all of these. RF64 (EBU Tech
/// 3306) and BW64 have their sizes in 64 bits, in the chunk 'ds64', which must be the first. Other chunks are skipped,
/// with the byte that pads an odd one. Chunks after the samples are not read, and the size in the RIFF header is not
/// checked.
///
/// Programs that write to a pipe do not know the size of the samples. Where it is 0xFFFFFFFF, or 0 while the size in
/// the RIFF header is 0 or 0xFFFFFFFF (in RF64 the same with 64 bits), the samples end with the file; an incomplete
/// frame at its end is dropped.
///
/// Throws IoError, its message beginning with `where`, for anything else: RIFX, other compressed formats, other bits,
/// no channels or a rate of 0, sizes of frames that contradict the format, samples that are cut short, are not a whole
/// number of frames or come before the format, a second format. Memory: the samples.
Audio parse_wav(std::span<const std::byte> bytes, std::string_view where = "wav");

/// Reads a whole WAV file. Throws IoError as parse_wav, and for a file that is missing, unreadable or not regular.
Audio read_wav(const std::filesystem::path& path);

/// Returns the bytes of a WAV file. `audio.samples` is f32 [C, N], or [N] for one channel.
///
/// Integers are the samples times 2^(bits - 1), rounded to nearest (ties to even) and clipped: 1 and more become
/// 2^(bits - 1) - 1, below -1 becomes -2^(bits - 1). Samples read from integers of that width are written as the same
/// integers. float32 is neither rounded nor clipped.
///
/// Throws ShapeError and DtypeError for other samples, ValueError for no channels, a rate outside 1..2^32 - 1 and, with
/// integers, a NaN; IoError for samples without values and for more bytes than a WAV file can hold (4 GiB).
std::vector<std::byte> serialize_wav(const Audio& audio, WavFormat format = WavFormat::pcm16);

/// Writes a WAV file; an old one is replaced as a whole or not at all (AtomicFile). Throws as serialize_wav, and
/// IoError where the file cannot be written.
void write_wav(const std::filesystem::path& path, const Audio& audio, WavFormat format = WavFormat::pcm16);

}  // namespace ferrite::io
