#pragma once
/// The table of the names of a graph's values.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace ferrite::onnx::detail {

/// A map from names to slots that takes 13 bytes for each name, as a file may consist of names.
class Names {
 public:
  /// Makes a table for at most `most` names, all of which are views of `bytes`, less than 4 GiB.
  Names(std::string_view bytes, std::size_t most) : bytes_(bytes), table_(most + most / 3 + 1, -1) {
    names_.reserve(most);
  }
  /// Returns the slot of a name, or -1.
  std::int32_t find(std::string_view name) const { return table_[place(name)]; }
  /// Assigns the next slot to a name that has none.
  void add(std::string_view name) {
    table_[place(name)] = static_cast<std::int32_t>(names_.size());
    names_.push_back(
        {static_cast<std::uint32_t>(name.data() - bytes_.data()), static_cast<std::uint32_t>(name.size())});
  }
  /// Returns the number of names.
  std::int32_t size() const { return static_cast<std::int32_t>(names_.size()); }

 private:
  struct View {
    std::uint32_t at, size;
  };
  /// Returns the position of a name in the table, or the position where it would be.
  std::size_t place(std::string_view name) const {
    const std::size_t hash = std::hash<std::string_view>()(name);
    for (std::size_t at = hash % table_.size();; at = at + 1 == table_.size() ? 0 : at + 1) {
      if (table_[at] < 0) return at;
      const View& there = names_[static_cast<std::size_t>(table_[at])];
      if (bytes_.substr(there.at, there.size) == name) return at;
    }
  }

  std::string_view bytes_;
  std::vector<View> names_{};
  std::vector<std::int32_t> table_;
};

}  // namespace ferrite::onnx::detail
