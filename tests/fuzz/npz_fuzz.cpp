/// Any bytes are refused with an IoError, or parsed as an archive whose tensors can be read and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/numpy.h"
#include "tensors.h"

namespace {

namespace io = ferrite::io;
using fuzz::tensors_of;

/// Checks that tensors are the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::vector<io::NamedTensor>& tensors) noexcept {
  const std::vector<std::byte> bytes = io::serialize_npz(tensors);
  const io::TensorFile file = io::parse_npz(bytes);
  if (file.size() != tensors.size()) std::abort();
  if (io::serialize_npz(tensors_of(file)) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_round_trip(tensors_of(io::parse_npz(std::as_bytes(std::span(data, size)))));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
