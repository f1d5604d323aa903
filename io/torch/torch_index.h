#pragma once
/// The tensors of a PyTorch checkpoint by name, as views of its storages: how they are collected, and what both forms
/// of PyTorch's files are read into.
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

/// Dimensions of a tensor in a file; more than 8 are refused when the tensor is asked for.
inline constexpr std::size_t kMostRank = 64;

/// A storage as a tensor of a pickle names it.
struct TorchStorage {
  std::string_view key;               ///< decimal digits
  std::uint64_t bytes = 0;            ///< of all its elements
  std::uint64_t unit = 1;             ///< bytes of one element
  std::uint64_t skipped = 0;          ///< bytes in front of a view of it, in the legacy form
  std::uint64_t window = 0;           ///< bytes of that view, otherwise `bytes`
  std::optional<std::uint8_t> dtype;  ///< nothing for an untyped one
};

/// Reads a persistent id: ('storage', class, key, location, number of elements[, view]). Throws IoError.
TorchStorage storage_of(const Pickle& pickle, PickleValue persistent, std::string_view where);

/// One tensor of a checkpoint: a strided window on a storage.
struct TorchTensor {
  std::uint64_t storage_bytes = 0;  ///< as the pickle claims
  std::uint64_t begin = 0;          ///< of its first element, in bytes of the storage
  std::uint64_t record = 0;         ///< where the container keeps the storage
  TextRange name;
  TextRange key;
  std::uint32_t extents_at = 0;  ///< its extents, then its strides
  std::uint8_t rank = 0;
  std::uint8_t dtype = 0;
  std::uint8_t unit = 1;  ///< bytes of an element of the storage
  bool packed = false;    ///< whether the archive compresses the storage
};

/// The tensors of one part of a checkpoint by their dotted names, and the plain values beside them.
struct TorchIndex {
  std::string pool;                    ///< names, keys and values, one after the other
  std::vector<std::int64_t> extents;   ///< shapes and strides, one after the other
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

/// Whether an object of a pickle is a tensor or a parameter.
bool is_tensor(const Pickle& pickle, PickleValue value);

/// Reads a tensor or parameter and checks that its window lies in the storage it names; the name is left empty. Its
/// key and extents go into the index. Throws IoError that begins with `place`.
TorchTensor tensor_of(const Pickle& pickle, PickleValue value, TorchIndex& index, std::string_view place);

/// Python's words for a number, a bool, None, a dtype or a device; a string as it is; nothing for the rest.
std::optional<std::string> plain_text(const Pickle& pickle, PickleValue value);

/// Finds the part that the key names and flattens it. Throws IoError. Memory, the pickle's included: at most nine
/// times the pickle and 0.9 MiB.
TorchIndex flatten(const Pickle& pickle, std::string_view key, std::string_view where);

class ScriptedCode;

/// The same of a module of TorchScript: its parameters and buffers, as its classes name them, under the names of
/// state_dict(). Other attributes are left out.
TorchIndex flatten_module(const Pickle& pickle, ScriptedCode& code, std::string_view key, std::string_view where);

/// What walks over a pickle and names its tensors derives from this: the name of where it is, the tables of what it has
/// found, and bounds on both.
class IndexBuilder {
 protected:
  /// The name of a file that is one tensor.
  static constexpr std::string_view kBareName = "tensor";
  /// Levels of dictionaries, lists and modules.
  static constexpr std::size_t kMostLevels = 100;

  IndexBuilder(const Pickle& pickle, std::string_view where);

  /// Throws IoError about what has the present name.
  [[noreturn]] void fail(const std::string& what) const;
  std::string place() const;

  /// Counts a value that is looked at; refuses more than the pickle has bytes.
  void count_visit();
  void check_level(std::size_t levels) const;

  /// Adds what has the present name.
  void add_tensor(PickleValue value);
  void add_metadata(std::string_view text);

  /// Refuses before the tables outgrow what a pickle of this size may need.
  void check_memory(std::size_t text, std::size_t tensors, std::size_t values) const;

  /// The index, its names in order. Refuses names that occur twice.
  TorchIndex finish();

  const Pickle& pickle_;
  std::string where_;
  std::string name_;  ///< of where the walk is

 private:
  TextRange pooled(std::string_view text);

  std::size_t most_bytes_;
  std::size_t visits_;
  TorchIndex index_;
};

/// A checkpoint whose tensors know where their storages are.
struct TorchContents {
  TorchIndex index;
  ByteOrder order = ByteOrder::little;
  /// Only where a storage is compressed: its tensors' `record` is then the number of the member, otherwise the
  /// position of the storage in the file.
  std::unique_ptr<ZipArchive> archive;
};

/// Whether the bytes begin as the form before 1.6 does.
bool looks_like_legacy(std::span<const std::byte> bytes);

/// Reads and checks everything but compressed storages. Throws IoError.
TorchContents read_torch_zip(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                             const ReadOptions& options);
TorchContents read_torch_legacy(std::span<const std::byte> bytes, std::string_view key, std::string_view where);

}  // namespace ferrite::io::detail
