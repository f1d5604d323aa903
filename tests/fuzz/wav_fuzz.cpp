/// Any bytes are refused with an IoError, or parsed as a sound that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ferrite/io/wav.h"

namespace {

namespace io = ferrite::io;

/// Checks that a sound is the same when written and read again. Any exception here ends the program.
void check_round_trip(const io::Audio& audio) noexcept {
  const auto bytes = io::serialize_wav(audio, io::WavFormat::float32);
  const io::Audio back = io::parse_wav(bytes);
  if (back.rate != audio.rate || !(back.samples.shape() == audio.samples.shape())) std::abort();
  if (io::serialize_wav(back, io::WavFormat::float32) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const io::Audio audio = io::parse_wav(std::as_bytes(std::span(data, size)));
    if (audio.samples.size(0) <= 0xffff / 4) check_round_trip(audio);  // more channels need bytes as samples
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
