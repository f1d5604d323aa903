#pragma once
/// Which tensors of a PyTorch file share a storage.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io::detail {

/// A range of memory that becomes one storage.
struct Range {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  Dtype dtype = Dtype::f32;
};

/// What is written of a tensor: a window on a storage.
struct Window {
  std::string_view name;
  Tensor tensor;
  std::size_t storage = 0;
};

/// Decides which tensors share a storage.
class Storages {
 public:
  /// Throws IoError for a name that occurs twice, holds a NUL or is not UTF-8, and for undefined tensors.
  Storages(std::span<const NamedTensor> tensors, std::string_view where);

  /// In the order of the tensors.
  const std::vector<Window>& windows() const { return windows_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  /// Elements in front of a window in its storage.
  std::int64_t offset(const Window& window) const;

 private:
  void place(const std::vector<std::size_t>& group);

  std::vector<Window> windows_;
  std::vector<Range> ranges_;
};

/// The archive of a pickle and the storages that it names. Throws IoError for a pickle above 100 MB.
std::vector<std::byte> torch_archive(std::string_view pickle, const Storages& storages, std::string_view where);

}  // namespace ferrite::io::detail
