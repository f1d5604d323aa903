/// Any bytes are refused with an IoError, or parsed as an array that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/numpy.h"

namespace {

namespace io = ferrite::io;

/// Checks that an array is the same when written and read again. Any exception here ends the program.
void check_round_trip(const ferrite::Tensor& tensor) noexcept {
  const std::vector<std::byte> bytes = io::serialize_npy(tensor);
  const ferrite::Tensor back = io::parse_npy(bytes);
  if (!(back.shape() == tensor.shape()) || back.dtype() != tensor.dtype()) std::abort();
  if (io::serialize_npy(back) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_round_trip(io::parse_npy(std::as_bytes(std::span(data, size))));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
