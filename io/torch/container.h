#pragma once
/// What both forms of PyTorch's files are read into.
#include <memory>
#include <span>
#include <string_view>

#include "ferrite/io/torch/torch_index.h"
#include "ferrite/io/zip/zip.h"

namespace ferrite::io::detail {

/// A checkpoint whose tensors know where their storages are.
struct TorchContents {
  TorchIndex index;
  ByteOrder order = ByteOrder::little;
  /// Only where a storage is compressed: its tensors' `record` is then the number of the member, otherwise the
  /// position of the storage in the file.
  std::unique_ptr<ZipArchive> archive;
};

/// Whether the bytes begin as the form before 1.6 does.
bool looks_like_legacy(std::span<const std::byte> bytes);

/// Reads and checks everything but compressed storages. Throws IoError.
TorchContents read_torch_zip(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                             const ReadOptions& options);
TorchContents read_torch_legacy(std::span<const std::byte> bytes, std::string_view key, std::string_view where);

}  // namespace ferrite::io::detail
