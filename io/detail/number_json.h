#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::io::detail {

/// JSON that is mostly numbers, read as a stream: nested lists of numbers become dense arrays of f32 at once, the rest
/// stays a small tree.
struct JsonValue {
  enum class Kind : std::uint8_t { other, text, numbers, list, object };

  Kind kind = Kind::other;                                   ///< other: null, true, false
  std::string text{};                                        ///< text
  Shape shape{};                                             ///< numbers: rank 0 for a single one
  std::vector<float> numbers{};                              ///< numbers, row-major
  std::vector<JsonValue> items{};                            ///< list: what is no dense array
  std::vector<std::pair<std::string, JsonValue>> members{};  ///< object, in the order of the file

  const JsonValue* find(std::string_view name) const;
  /// The items of a list, or the rows of an array of numbers.
  std::size_t size() const;
  JsonValue item(std::size_t i) const;
};

/// Reads a whole text. Throws IoError beginning with `where`: not UTF-8 or not JSON, a key that occurs twice, more
/// than 8 nested lists of numbers or 32 levels in all, numbers beyond f32. Memory: a small multiple of the text.
JsonValue read_number_json(std::string_view text, std::string_view where);

/// Appends numbers as nested lists of that shape, each in the fewest digits that read back as the same f32. Infinity
/// and NaN, which JSON does not have, are refused. `at` counts the values written.
void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at);

}  // namespace ferrite::io::detail
