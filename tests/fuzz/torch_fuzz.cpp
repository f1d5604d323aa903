/// Any bytes are refused with an IoError, or are a checkpoint whose tensors can be had and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/torch.h"

namespace {

namespace io = ferrite::io;

/// Views by stride 0 may have many elements in little memory: what is written again is small.
constexpr std::int64_t kMostElements = 1 << 16;

/// The tensors that can be had; asking for the others is an IoError.
std::vector<io::NamedTensor> tensors_of(const io::TensorFile& file) {
  std::vector<io::NamedTensor> tensors;
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    try {
      const ferrite::Tensor tensor = file.tensor(name);
      if (info.loads_as != tensor.dtype()) std::abort();
      if (!(ferrite::Shape(info.shape) == tensor.shape())) std::abort();
      if (tensor.numel() <= kMostElements) tensors.push_back({std::string(name), tensor});
    } catch (const ferrite::IoError&) {
      continue;
    }
  }
  return tensors;
}

/// What we write, we read, and it is the same. Any exception here ends the program.
void check_round_trip(const std::vector<io::NamedTensor>& tensors) noexcept {
  const std::vector<std::byte> bytes = io::serialize_torch(tensors);
  const io::TensorFile file = io::parse_torch(bytes);
  if (file.size() != tensors.size()) std::abort();
  for (const io::NamedTensor& named : tensors)
    if (named.tensor.spec().str() != file.tensor(named.name).spec().str()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const io::TensorFile file = io::parse_torch(std::as_bytes(std::span(data, size)));
    file.metadata();
    check_round_trip(tensors_of(file));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
