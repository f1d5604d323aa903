#pragma once
/// Collects the tensors of a checkpoint, each under the dotted name of where it is.
#include <string>
#include <string_view>
#include <utility>

#include "ferrite/io/torch/torch_index.h"

namespace ferrite::io::detail {

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

}  // namespace ferrite::io::detail
