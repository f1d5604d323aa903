#pragma once
/// Nested lists of numbers in JSON: their shape while they are read, their elements, and how they are written.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::io::detail {

/// The shape of nested lists of numbers, told list by list. Each function is false where the lists are ragged, or
/// deeper than a shape can be.
class NumberShape {
 public:
  bool open();
  bool close();
  bool number() { return add(Item::number); }
  /// Of what has been closed: rank 0 for a number alone.
  Shape shape() const;

 private:
  enum class Item : std::uint8_t { none, number, list };
  bool add(Item item);

  std::array<Item, Shape::kMaxRank> items_{};            ///< what the lists of a depth hold
  std::array<std::int64_t, Shape::kMaxRank> counts_{};   ///< in the list of a depth that is open
  std::array<std::int64_t, Shape::kMaxRank> extents_{};  ///< of the lists of a depth that have been closed
  int depth_ = 0;
  int closed_ = Shape::kMaxRank;  ///< lists of this depth and deeper ones have been closed
  int rank_ = 0;
};

/// Floats in blocks: they grow without being copied.
class FloatStore {
 public:
  void push(float value);
  std::size_t size() const { return size_; }
  void copy(std::size_t first, std::span<float> to) const;
  /// Forgets the floats and keeps the first block.
  void clear();

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 14;
  std::vector<std::unique_ptr<float[]>> blocks_;
  std::size_t size_ = 0;
};

/// Appends numbers as nested lists of that shape, each in the fewest digits that read back as the same f32. Infinity
/// and NaN, which JSON does not have, are refused. `at` counts the values written.
void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at);

}  // namespace ferrite::io::detail
