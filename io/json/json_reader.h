#pragma once
/// Reading JSON as a stream of events, without a tree of its values, and reading and writing nested lists of numbers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/tensor.h"

// ---- lists of numbers ----------------------------------------------------------------------------------

namespace ferrite::io::detail {

/// Finds the shape of nested lists of numbers from their brackets and numbers, in order. Each function returns false
/// where the lists are ragged, or deeper than a shape can be.
class NumberShape {
 public:
  bool open();
  bool close();
  bool number() { return add(Item::number); }
  /// Returns the shape of the lists that have been closed, of rank 0 for a single number.
  Shape shape() const;

 private:
  enum class Item : std::uint8_t { none, number, list };
  bool add(Item item);

  std::array<Item, Shape::kMaxRank> items_{};            ///< kind of items in the lists at each depth
  std::array<std::int64_t, Shape::kMaxRank> counts_{};   ///< number of items in the open list at each depth
  std::array<std::int64_t, Shape::kMaxRank> extents_{};  ///< length of the closed lists at each depth
  int depth_ = 0;
  int closed_ = Shape::kMaxRank;  ///< lists of this depth and deeper ones have been closed
  int rank_ = 0;
};

/// A growing list of floats in blocks, which are not copied when it grows.
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

/// Appends numbers as nested lists of the given shape, each in the fewest digits that read back as the same f32.
/// Infinity and NaN, which JSON does not have, are refused. `at` counts the values written.
void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at);

// ---- events --------------------------------------------------------------------------------------------

/// Largest number of nested lists and objects that are read.
inline constexpr std::size_t kMostJsonLevels = 32;

/// The listener to which read_json reports the parts of a JSON text, in order. An exception from it ends the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void number(float value) = 0;
  virtual void text(std::string_view value) = 0;
  virtual void other() = 0;  ///< called for null, true and false
  virtual void begin_object() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end_object() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;
};

/// Reads a whole JSON text, in time and memory proportional to it. Throws IoError beginning with `where` for text that
/// is not UTF-8 or not JSON, more than 32 levels, numbers beyond f32. Keys that occur twice are left to the listener.
void read_json(std::string_view text, std::string_view where, JsonEvents& events);

/// A list of names, which are stored in one string. Together they must be shorter than 4 GiB: `add` does not check it.
class NamePool {
 public:
  void add(std::string_view name);
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const;
  /// Returns the numbers of all names in the order of their bytes, equal ones in the order in which they were added.
  std::vector<std::uint32_t> sorted() const;
  /// Returns a name that occurs twice, if there is one; `sorted` are the numbers in order.
  std::optional<std::string_view> twice(const std::vector<std::uint32_t>& sorted) const;

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

/// Checks the keys of nested objects for duplicates whenever an object ends.
class KeyCheck {
 public:
  void begin_object() { open_.emplace_back(); }
  void key(std::string_view name) { open_.back().add(name); }
  /// Ends the innermost object. Throws IoError beginning with `where` for a key that occurs twice.
  void end_object(std::string_view where);

 private:
  std::vector<NamePool> open_;
};

[[noreturn]] void refuse_twice(std::string_view where, std::string_view key);

}  // namespace ferrite::io::detail
