/// Any bytes are refused with an IoError, or parsed as a pickle whose values can be walked over and flattened.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ferrite/io/torch/torch_index.h"
#include "ferrite/tensor/error.h"

namespace {

namespace detail = ferrite::io::detail;

/// Checks that everything flattened has a name, and that no view reaches beyond the storage that it claims.
void check(const detail::TorchIndex& index) noexcept {
  for (std::size_t i = 0; i < index.tensors.size(); ++i) {
    const detail::TorchTensor& tensor = index.tensors[i];
    if (index.find(index.name(i)) != i) std::abort();
    if (index.shape(tensor).size() != index.strides(tensor).size()) std::abort();
    if (tensor.begin > tensor.storage_bytes) std::abort();
  }
  for (const detail::MetadataEntry& entry : index.metadata)
    if (index.text(entry.key).size() + index.text(entry.value).size() > index.pool.size()) std::abort();
}

void read(std::span<const std::byte> bytes, detail::PickleClasses classes) {
  try {
    const detail::Pickle pickle = detail::read_pickle(bytes, "pickle", classes);
    if (pickle.size() > bytes.size()) std::abort();
    for (const char* key : {"", "a", "m", "model.a"}) {
      try {
        check(detail::flatten(pickle, key, "pickle"));
      } catch (const ferrite::IoError&) {
        continue;
      }
    }
  } catch (const ferrite::IoError&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  read(bytes, detail::PickleClasses::none);
  read(bytes, detail::PickleClasses::scripted);
  return 0;
}
