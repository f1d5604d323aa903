/// Reads PyTorch files in zip archives.
#include <algorithm>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/container.h"
#include "ferrite/io/torch/scripted_code.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kFreeCode = std::size_t{1} << 17;
constexpr std::uint64_t kMostNote = 64;  ///< bytes of `version` and `byteorder`

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// The folder that holds everything, with its slash.
std::string folder_of(const ZipArchive& archive, std::string_view where) {
  constexpr std::string_view pickle = "data.pkl";
  std::string_view folder;
  int found = 0;
  for (const ZipEntry& entry : archive.entries()) {
    const std::string_view name = entry.name;
    const std::size_t slash = name.find('/');
    if (slash == std::string_view::npos || name.substr(slash + 1) != pickle) continue;
    folder = name.substr(0, slash + 1);
    ++found;
  }
  if (found > 1) refuse(where, "holds more than one checkpoint: " + counted(static_cast<std::size_t>(found), pickle));
  if (found == 0)
    refuse(where, archive.find(pickle) != nullptr
                      ? "'data.pkl' is in no folder of the archive: PyTorch puts it into one"
                      : "no checkpoint of PyTorch: the zip archive holds no '<folder>/data.pkl'");
  return std::string(folder);
}

/// Whether torch.jit.save wrote the archive.
bool is_scripted(const ZipArchive& archive, const std::string& folder) {
  const std::string code = folder + "code/";
  return archive.find(folder + "constants.pkl") != nullptr ||
         std::ranges::any_of(archive.entries(), [&](const ZipEntry& entry) { return entry.name.starts_with(code); });
}

/// Reads the notes beside the pickle. Returns the order of its bytes.
ByteOrder read_notes(const ZipArchive& archive, const std::string& folder, std::string_view where) {
  const ZipEntry* version = archive.find(folder + "version");
  if (version == nullptr) refuse(where, "the archive holds no " + quote(folder + "version"));
  const ZipData data = archive.read(*version, kMostNote);
  const std::string_view number = trimmed(text_of(data.bytes()));
  if (number.empty() || number.size() > 2 || !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
    refuse(where, "the archive's version is no number: " + quote(number));
  const ZipEntry* order = archive.find(folder + "byteorder");
  if (order == nullptr) return ByteOrder::little;
  const ZipData order_data = archive.read(*order, kMostNote);
  const std::string_view word = trimmed(text_of(order_data.bytes()));
  if (word != "little" && word != "big") refuse(where, "the byte order is neither little nor big: " + quote(word));
  return word == "big" ? ByteOrder::big : ByteOrder::little;
}

/// Finds the storages of the tensors; those that are not compressed are checked now, each once.
class Records {
 public:
  Records(std::unique_ptr<ZipArchive> archive, std::string folder, std::string_view where)
      : archive_(std::move(archive)), folder_(std::move(folder) + "data/"), where_(where) {
    checked_.resize(archive_->entries().size());
  }

  void resolve(TorchIndex& index) {
    for (TorchTensor& tensor : index.tensors) {
      const std::string name = folder_ + std::string(index.text(tensor.key));
      const std::string place = where_ + ": " + quote(index.text(tensor.name));
      const ZipEntry* entry = archive_->find(name);
      if (entry == nullptr) refuse(place, "the storage is missing: the archive holds no " + quote(name));
      if (entry->size < tensor.storage_bytes || entry->size - tensor.storage_bytes >= tensor.unit)
        refuse(place, "the storage is not as large as the pickle says: " + counted(entry->size, "byte") + ", not " +
                          std::to_string(tensor.storage_bytes));
      const auto number = static_cast<std::size_t>(entry - archive_->entries().data());
      tensor.record = entry->deflated ? number : entry->begin;
      tensor.packed = entry->deflated;
      packed_ = packed_ || entry->deflated;
      if (!entry->deflated && !checked_[number]) archive_->read(*entry, entry->size);
      checked_[number] = true;
    }
  }

  /// The archive, if tensors will need it.
  std::unique_ptr<ZipArchive> release() { return packed_ ? std::move(archive_) : nullptr; }

 private:
  std::unique_ptr<ZipArchive> archive_;
  std::string folder_;
  std::string where_;
  std::vector<bool> checked_;
  bool packed_ = false;
};

TorchIndex read_pickle_of(const ZipArchive& archive, const std::string& folder, std::string_view key,
                          std::string_view where) {
  const ZipData data = archive.read(*archive.find(folder + "data.pkl"), kMostPickleBytes);
  const bool scripted = is_scripted(archive, folder);
  const Pickle pickle = read_pickle(data.bytes(), where, scripted ? PickleClasses::scripted : PickleClasses::none);
  if (pickle.size() != data.bytes().size())
    refuse(where,
           "something follows the pickle in 'data.pkl': " + counted(data.bytes().size() - pickle.size(), "byte"));
  for (const PickleValue id : pickle.persistent_ids()) storage_of(pickle, id, where);
  if (!scripted) return flatten(pickle, key, where);
  ScriptedCode code(archive, folder, where, kFreeCode + 4 * pickle.size());
  return flatten_module(pickle, code, key, where);
}

}  // namespace

TorchContents read_torch_zip(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                             const ReadOptions& options) {
  auto archive = std::make_unique<ZipArchive>(bytes, where, options.most_inflated);
  const std::string folder = folder_of(*archive, where);
  TorchContents contents;
  contents.order = read_notes(*archive, folder, where);
  contents.index = read_pickle_of(*archive, folder, key, where);
  Records records(std::move(archive), folder, where);
  records.resolve(contents.index);
  contents.archive = records.release();
  return contents;
}

}  // namespace ferrite::io::detail
