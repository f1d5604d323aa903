#pragma once
/// One entry of the layers of RTNeural's JSON, and the layers that it becomes.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/rtneural.h"

namespace ferrite::io::detail {

inline constexpr std::size_t kMostWeights = 4;  ///< arrays that a layer can need; of more only their number is kept

/// One entry of "layers" as the file has it.
struct RtneuralEntry {
  explicit RtneuralEntry(std::size_t position, std::string_view file)
      : where(std::string(file) + ": layer " + std::to_string(position)) {}

  std::string where, type, activation;  ///< empty where the file has none
  std::vector<Tensor> arrays;           ///< undefined where it is no array of numbers
  std::size_t weights = 0;              ///< how many there are
  /// The number that the key holds, alone or as the last of a list; nothing where the file has none.
  std::optional<float> kernel_size{}, dilation{}, groups{}, strides{}, epsilon{};

  /// These throw IoError for what is not there.
  Tensor weight(std::size_t i) const;
  Tensor matrix(std::size_t i) const;
  void expect_weights(std::size_t n) const;
  /// A matrix or kernel with a bias (true) or without one.
  bool expect_bias_or_none() const;
};

/// Appends the layers of an entry. Throws IoError for what is not supported or does not fit.
void add_entry(nn::Sequential& net, const RtneuralEntry& entry, const RtneuralOptions& options);

}  // namespace ferrite::io::detail
