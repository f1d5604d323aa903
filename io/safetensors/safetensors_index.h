#pragma once
/// The index of a safetensors file: names, types, shapes and positions in compact tables.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/detail/file_dtype.h"

namespace ferrite::io::detail {

inline constexpr std::uint64_t kPrefixBytes = 8;  ///< the header's length, little-endian
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
inline constexpr std::size_t kMostDimensions = 64;
inline constexpr std::string_view kMetadataName = "__metadata__";

/// A string in the pool of an index.
struct TextRange {
  std::uint32_t at = 0;
  std::uint32_t size = 0;
};

/// One tensor of a safetensors file, in 40 bytes so that an index stays small compared with its header.
struct TensorEntry {
  std::uint64_t begin = 0;  ///< position of its first byte, counted from the end of the header
  std::uint64_t end = 0;
  TextRange name;
  std::uint32_t extents_at = 0;
  std::uint8_t rank = 0;
  FileDtype dtype = FileDtype::f32;
};

/// The number of a tensor with the hash of its name: sorting a million of these is several times faster than sorting
/// the names.
struct NameHash {
  std::uint32_t hash = 0;
  std::uint32_t tensor = 0;
};

struct MetadataEntry {
  TextRange key;
  TextRange value;
};

/// The header of a safetensors file, read and checked.
struct SafetensorsIndex {
  std::string pool;                     ///< names, keys and values, concatenated
  std::vector<std::int64_t> extents;    ///< shapes of all tensors, concatenated
  std::vector<TensorEntry> tensors;     ///< in the order of their bytes
  std::vector<NameHash> by_hash;        ///< in the order of hashes, then of names
  std::vector<MetadataEntry> metadata;  ///< in the order of their keys

  std::string_view text(TextRange range) const { return std::string_view(pool).substr(range.at, range.size); }
  std::string_view name(const TensorEntry& tensor) const { return text(tensor.name); }
  std::span<const std::int64_t> shape(const TensorEntry& tensor) const {
    return std::span(extents).subspan(tensor.extents_at, tensor.rank);
  }
  std::optional<std::size_t> find(std::string_view name) const;
};

/// Returns the length of the header, which the first 8 bytes of a file of `file_bytes` give. Throws IoError (too short,
/// above the limit, beyond the end of the file).
std::uint64_t header_length(std::span<const std::byte> first, std::uint64_t file_bytes, std::string_view where);

/// Reads a header that `data_bytes` bytes of tensors follow. Throws IoError, naming the tensor at fault. Memory: at
/// most ten times the header.
SafetensorsIndex read_index(std::string_view header, std::uint64_t data_bytes, std::string_view where);

/// Parses a header in its order, without the checks across tensors: the first half of read_index.
SafetensorsIndex read_header(std::string_view header, std::string_view where);

}  // namespace ferrite::io::detail
