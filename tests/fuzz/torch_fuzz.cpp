/// Any bytes are refused with an IoError, or parsed as a checkpoint whose tensors can be read and written again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/torch.h"
#include "ferrite/io/zip/zip.h"
#include "tensors.h"

namespace {

namespace io = ferrite::io;
using fuzz::tensors_of;

/// Largest number of elements to write again: views with stride 0 may have many elements in little memory.
constexpr std::int64_t kMostElements = 1 << 16;

/// The classes of scripted modules (tests/io/hostile_scripted.h).
constexpr std::string_view kCode =
    "class Net(Module):\n  __parameters__ = [\"weight\", ]\n  __buffers__ = []\n"
    "class Outer(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
    "class Old(Module):\n  __parameters__ = []\n"
    "class Pair:\n";

/// Checks that tensors are the same when written and read again. Any exception here ends the program.
void check_round_trip(const std::vector<io::NamedTensor>& tensors) noexcept {
  const std::vector<std::byte> bytes = io::serialize_torch(tensors);
  const io::TensorFile file = io::parse_torch(bytes);
  if (file.size() != tensors.size()) std::abort();
  for (const io::NamedTensor& named : tensors)
    if (named.tensor.spec().str() != file.tensor(named.name).spec().str()) std::abort();
}

/// Reads the whole checkpoint, and its part "m" alone, next to which unreadable values may be.
void read(std::span<const std::byte> bytes, std::string_view key) {
  try {
    const io::TensorFile file = io::parse_torch(bytes, key);
    file.metadata();
    check_round_trip(tensors_of(file, kMostElements));
  } catch (const ferrite::IoError&) {
    return;
  }
}

/// Returns the input as the pickle of a sound archive: without it no change of bytes would survive the archive's CRC.
std::vector<std::byte> around(std::span<const std::byte> pickle, bool scripted) {
  const std::vector<std::byte> storage(16, std::byte{1});
  const auto text = [](std::string_view s) { return std::as_bytes(std::span(s)); };
  io::detail::ZipWriter writer(64);
  writer.add("a/data.pkl", pickle);
  writer.add("a/data/0", storage);
  writer.add("a/data/1", {});
  writer.add("a/version", text("3\n"));
  if (scripted) writer.add("a/code/__torch__.py", text(kCode));
  return writer.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  for (const std::string_view key : {"", "m"}) {
    read(bytes, key);
    if (size > 1 && data[0] == 0x80) {
      read(around(bytes, false), key);
      read(around(bytes, true), key);
    }
  }
  return 0;
}
