#pragma once
/// What of an ONNX model stays in memory: its messages, without the elements of large tensors.
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
  /// Throws OnnxError where there is no such regular file.
  explicit Input(const std::filesystem::path& path);
  /// Bytes that live longer than this.
  explicit Input(std::span<const std::byte> bytes) : memory_(bytes), size_(bytes.size()) {}
  std::size_t size() const { return size_; }
  /// Copies the bytes from `at` on. Throws OnnxError where the file cannot be read or has become shorter.
  void copy(std::size_t at, std::span<char> to);

 private:
  std::filesystem::path path_{};
  std::ifstream file_{};
  std::span<const std::byte> memory_{};
  std::size_t size_ = 0;
};

/// The messages of a model, and where the elements are that it lacks: they are read when they are wanted.
struct Outline {
  struct Range {
    std::size_t at = 0, size = 0;
  };
  /// The model, raw_data of 1 KiB and more left out. Names and attributes are views of these bytes.
  std::vector<char> bytes{};
  /// Where raw_data is in the input, by the place in `bytes` of the TensorProto that lacks it.
  std::map<std::size_t, Range> left_out{};
};

/// Damaged messages stay as they are, for those who read them to refuse. Throws OnnxError where a tensor has raw_data
/// twice, and what Input::copy throws.
Outline outline_of(Input& input);

}  // namespace ferrite::onnx::detail
