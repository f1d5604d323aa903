#pragma once
/// The tensors of a PyTorch checkpoint by name, as views of its storages.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/safetensors/safetensors_index.h"
#include "ferrite/io/torch/pickle.h"

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

}  // namespace ferrite::io::detail
