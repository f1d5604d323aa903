/// Writes PyTorch files that `torch.load(weights_only=True)` reads.
#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/torch/pickle_writer.h"

namespace ferrite::io {
namespace {

std::vector<std::byte> archive_of(std::span<const NamedTensor> tensors, std::string_view where) {
  const detail::Storages storages(tensors, where);
  detail::PickleWriter pickle(storages);
  pickle.ordered_dictionary();
  pickle.mark();
  for (const detail::Window& window : storages.windows()) {
    pickle.text(window.name);
    pickle.tensor(window);
  }
  pickle.set_items();
  return detail::torch_archive(pickle.finish(), storages, where);
}

}  // namespace

std::vector<std::byte> serialize_torch(std::span<const NamedTensor> tensors) {
  return archive_of(tensors, "serialize_torch");
}

void write_torch(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_atomically(path, archive_of(tensors, detail::shown(path)));
}

}  // namespace ferrite::io
