/// Any bytes are refused with an IoError, or parsed as a GGUF file whose tensors can be read and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ferrite/io/gguf.h"
#include "tensors.h"

namespace {

namespace io = ferrite::io;

/// Checks that a file is the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::vector<std::byte>& bytes) noexcept {
  const io::TensorFile file = io::parse_gguf(bytes);
  const std::vector<io::NamedTensor> tensors = fuzz::tensors_of(file);
  if (io::serialize_gguf(tensors, io::parse_gguf_metadata(bytes)) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
    const io::TensorFile file = io::parse_gguf(bytes);
    const io::GgufMetadata metadata = io::parse_gguf_metadata(bytes);
    if (file.metadata().size() > metadata.size()) std::abort();
    constexpr std::int64_t kMost = 1 << 16;  // a block of zeros makes many numbers from a few bytes
    const std::vector<std::byte> written = io::serialize_gguf(fuzz::tensors_of(file, kMost), metadata);
    check_round_trip(written);
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
