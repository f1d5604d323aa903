#pragma once
/// The head of a GGUF file, read and checked: where keys and descriptions of tensors stand, in compact tables.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/gguf/gguf_format.h"

namespace ferrite::io::detail::gguf {

/// What a file says of a tensor.
struct Description {
  std::string_view name;
  std::array<std::int64_t, kMostDimensions> extents{};  ///< row-major: the first varies slowest
  std::uint32_t rank = 0;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;  ///< of its bytes in the data
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< 0 for an unknown type

  std::span<const std::int64_t> shape() const { return {extents.data(), rank}; }
};

/// A value of the metadata: its bytes in the file.
struct Value {
  std::string_view key;
  ValueType type{};
  ValueType element{};               ///< of a list
  std::uint64_t count = 1;           ///< of a list's elements
  std::span<const std::byte> bytes;  ///< of a string without its length; of a list's elements one after another
};

/// Takes eight bytes for a tensor or key, and four for its place in the order of names; descriptions are read again
/// where they stand when asked for.
class Index {
 public:
  /// Throws IoError beginning with `where` for all that parse_gguf refuses.
  Index(std::span<const std::byte> file, std::string_view where);

  std::size_t tensors() const { return tensors_.size(); }
  Description tensor(std::size_t i) const;
  std::string_view name(std::size_t i) const;
  std::optional<std::size_t> find(std::string_view name) const;
  std::size_t keys() const { return keys_.size(); }
  Value value(std::size_t i) const;
  /// The bytes of all tensors.
  std::span<const std::byte> data() const { return data_; }

 private:
  void check_names(std::string_view where);
  void check_places(std::uint64_t alignment, std::string_view where) const;

  std::span<const std::byte> file_, data_;
  std::vector<std::uint64_t> tensors_, keys_;  ///< where their descriptions begin
  std::vector<std::uint32_t> by_name_;         ///< tensors in the order of their names
};

}  // namespace ferrite::io::detail::gguf
