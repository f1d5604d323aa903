#pragma once
/// The index of a PyTorch checkpoint: its tensors by name, as views of its storages, collected from either form of
/// PyTorch's files.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/io/safetensors/safetensors_index.h"
#include "ferrite/io/torch/pickle.h"
#include "ferrite/io/zip/zip.h"

namespace ferrite::io::detail {

/// Largest number of dimensions of a tensor in a file; more than 8 are refused when the tensor is asked for.
inline constexpr std::size_t kMostRank = 64;

/// The description of a storage in a tensor's persistent id.
struct TorchStorage {
  std::string_view key;               ///< name of the storage in the file, decimal digits
  std::uint64_t bytes = 0;            ///< size of all its elements, in bytes
  std::uint64_t unit = 1;             ///< size of one element, in bytes
  std::uint64_t skipped = 0;          ///< bytes in front of a view of it, in the legacy form
  std::uint64_t window = 0;           ///< bytes of that view, otherwise `bytes`
  std::optional<std::uint8_t> dtype;  ///< number of the dtype; empty for an untyped storage
};

/// Reads a persistent id: ('storage', class, key, location, number of elements[, view]). Throws IoError.
TorchStorage storage_of(const Pickle& pickle, PickleValue persistent, std::string_view where);

/// One tensor of a checkpoint: a strided window on a storage.
struct TorchTensor {
  std::uint64_t storage_bytes = 0;  ///< size of the storage, as the pickle claims
  std::uint64_t begin = 0;          ///< offset of the first element in the storage, in bytes
  std::uint64_t record = 0;         ///< place of the storage in the container
  TextRange name;
  TextRange key;
  std::uint32_t extents_at = 0;  ///< position in TorchIndex::extents of its extents, followed by its strides
  std::uint8_t rank = 0;
  std::uint8_t dtype = 0;
  std::uint8_t unit = 1;  ///< size of an element of the storage, in bytes
  bool packed = false;    ///< whether the archive compresses the storage
};

/// The tensors of one part of a checkpoint by their dotted names, and its plain values as metadata.
struct TorchIndex {
  std::string pool;                    ///< names, keys and values, concatenated
  std::vector<std::int64_t> extents;   ///< shapes and strides, concatenated
  std::vector<TorchTensor> tensors;    ///< in the order of the pickle
  std::vector<std::uint32_t> by_name;  ///< numbers of tensors, in the order of their names
  std::vector<MetadataEntry> metadata;

  std::string_view text(TextRange range) const { return std::string_view(pool).substr(range.at, range.size); }
  std::string_view name(std::size_t i) const { return text(tensors[i].name); }
  std::span<const std::int64_t> shape(const TorchTensor& tensor) const {
    return std::span(extents).subspan(tensor.extents_at, tensor.rank);
  }
  std::span<const std::int64_t> strides(const TorchTensor& tensor) const {
    return std::span(extents).subspan(tensor.extents_at + tensor.rank, tensor.rank);
  }
  std::optional<std::size_t> find(std::string_view name) const;
};

/// Returns whether an object of a pickle is a tensor or a parameter.
bool is_tensor(const Pickle& pickle, PickleValue value);

/// Reads a tensor or parameter, except for its name, and checks that its window lies in the storage it names. Its key
/// and extents go into the index. Throws IoError that begins with `place`.
TorchTensor tensor_of(const Pickle& pickle, PickleValue value, TorchIndex& index, std::string_view place);

/// Returns a plain value as text for metadata: a number (NumPy's and those of an Enum, too), a bool, None, a dtype or a
/// device as Python writes it, a string unchanged; nullopt for anything else.
std::optional<std::string> plain_text(const Pickle& pickle, PickleValue value);

/// Finds the part that the key names and flattens it. Throws IoError. Memory, the pickle's included: at most nine
/// times the pickle plus 0.9 MiB.
TorchIndex flatten(const Pickle& pickle, std::string_view key, std::string_view where);

class ScriptedCode;

/// Flattens a TorchScript module: its parameters and buffers, as its classes declare them, under the names of
/// state_dict(). Other attributes are left out.
TorchIndex flatten_module(const Pickle& pickle, ScriptedCode& code, std::string_view key, std::string_view where);

/// The base of walks over a pickle that collect tensors: the name of the present place, the index, and bounds on both.
class IndexBuilder {
 protected:
  /// Name of the tensor in a file that is one tensor.
  static constexpr std::string_view kBareName = "tensor";
  /// Largest number of nested dictionaries, lists and modules.
  static constexpr std::size_t kMostLevels = 100;

  IndexBuilder(const Pickle& pickle, std::string_view where);

  /// Throws IoError about the value with the present name.
  [[noreturn]] void fail(const std::string& what) const;
  std::string place() const;

  /// Counts a visited value; refuses more visits than the pickle has bytes.
  void count_visit();
  void check_level(std::size_t levels) const;

  /// Adds a tensor under the present name.
  void add_tensor(PickleValue value);
  /// Adds a metadata entry under the present name.
  void add_metadata(std::string_view text);

  /// Throws IoError before the tables outgrow what a pickle of this size may need.
  void check_memory(std::size_t text, std::size_t tensors, std::size_t values) const;

  /// Returns the index with its names sorted. Refuses names that occur twice.
  TorchIndex finish();

  const Pickle& pickle_;
  std::string where_;
  std::string name_;  ///< dotted name of the present place

 private:
  TextRange pooled(std::string_view text);

  std::size_t most_bytes_;
  std::size_t visits_;
  TorchIndex index_;
};

/// A checkpoint with the places of its tensors' storages.
struct TorchContents {
  TorchIndex index;
  ByteOrder order = ByteOrder::little;
  /// The archive, if a storage is compressed. The `record` of its tensors is the number of the member, otherwise it is
  /// the position of the storage in the file.
  std::unique_ptr<ZipArchive> archive;
};

/// Returns whether the bytes begin as a file in the form before PyTorch 1.6.
bool looks_like_legacy(std::span<const std::byte> bytes);

/// Reads a checkpoint that is a zip archive and checks everything but compressed storages. Throws IoError.
TorchContents read_torch_zip(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                             const ReadOptions& options);
/// Reads and checks a checkpoint in the form before PyTorch 1.6. Throws IoError.
TorchContents read_torch_legacy(std::span<const std::byte> bytes, std::string_view key, std::string_view where);

}  // namespace ferrite::io::detail
