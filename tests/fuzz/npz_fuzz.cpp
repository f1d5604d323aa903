/// Any bytes are refused with an IoError, or are an archive whose tensors can be had and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/numpy.h"

namespace {

namespace io = ferrite::io;

/// The tensors that can be had; asking for the others is an IoError.
std::vector<io::NamedTensor> tensors_of(const io::TensorFile& file) {
  std::vector<io::NamedTensor> tensors;
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    try {
      const ferrite::Tensor tensor = file.tensor(name);
      if (info.loads_as != tensor.dtype()) std::abort();
      if (!(ferrite::Shape(info.shape) == tensor.shape())) std::abort();
      tensors.push_back({std::string(name), tensor});
    } catch (const ferrite::IoError&) {
      continue;
    }
  }
  return tensors;
}

/// What we write, we read, and it is the same. Any exception here ends the program.
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
