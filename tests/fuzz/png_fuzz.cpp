/// Any bytes are refused with an IoError, or parsed as a picture that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ferrite/io/png.h"

namespace {

namespace io = ferrite::io;

/// Checks that a picture is the same when written and read again. Any exception here ends the program.
void check_round_trip(const ferrite::Tensor& pixels) noexcept {
  const ferrite::Tensor back = io::parse_png(io::serialize_png(pixels, io::PngDepth::bits16));
  if (back.to_vector<float>() != pixels.to_vector<float>()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_round_trip(io::parse_png(std::as_bytes(std::span(data, size)), "png", 1 << 16));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
