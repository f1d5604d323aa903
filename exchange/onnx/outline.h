#pragma once
/// The part of an ONNX model that stays in memory: its messages, without the elements of large tensors.
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ferrite::onnx::detail {

/// The bytes of a model, in a file or in memory.
class Input {
 public:
  /// Opens a file. Throws OnnxError where there is no regular file of that name.
  explicit Input(const std::filesystem::path& path);
  /// Refers to bytes in memory, which must outlive the input.
  explicit Input(std::span<const std::byte> bytes) : memory_(bytes), size_(bytes.size()) {}
  std::size_t size() const { return size_; }
  /// Copies bytes from the position `at` on into `to`. Throws OnnxError where the file cannot be read or has shrunk.
  void copy(std::size_t at, std::span<char> to);

 private:
  std::filesystem::path path_{};
  std::ifstream file_{};
  std::span<const std::byte> memory_{};
  std::size_t size_ = 0;
};

/// The messages of a model without large elements, and the places of these, which are read when they are needed.
struct Outline {
  struct Range {
    std::size_t at = 0, size = 0;
  };
  /// The messages, without raw_data of 1 KiB and more. Names and attributes are views of these bytes.
  std::vector<char> bytes{};
  /// The places of raw_data in the input, by the position in `bytes` of the TensorProto that lacks it.
  std::map<std::size_t, Range> left_out{};
};

/// Reads the outline of a model. Damaged messages stay as they are; their readers refuse them. Throws OnnxError where a
/// tensor has raw_data twice, and what Input::copy throws.
Outline outline_of(Input& input);

}  // namespace ferrite::onnx::detail
