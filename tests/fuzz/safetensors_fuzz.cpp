/// Any bytes are refused with an IoError, or parsed as a file whose tensors can be read and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/safetensors.h"
#include "tensors.h"

namespace {

namespace io = ferrite::io;
using fuzz::tensors_of;

/// Checks that tensors and metadata are the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::vector<io::NamedTensor>& tensors, const io::Metadata& metadata) noexcept {
  const std::vector<std::byte> bytes = io::serialize_safetensors(tensors, metadata);
  const io::TensorFile file = io::parse_safetensors(bytes);
  if (file.size() != tensors.size() || file.metadata() != metadata) std::abort();
  if (io::serialize_safetensors(tensors_of(file), metadata) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const io::TensorFile file = io::parse_safetensors(std::as_bytes(std::span(data, size)));
    check_round_trip(tensors_of(file), file.metadata());
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
