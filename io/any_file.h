#pragma once
/// Reading and writing weights in any format, and recognising the layers they belong to.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// A format of files that hold weights.
enum class FileFormat : std::uint8_t { safetensors, zip, legacy_torch, npy, gguf, json, unknown };

/// Recognises the format of a file by its beginning, of which the first 512 bytes suffice, and its size.
FileFormat file_format(std::span<const std::byte> head, std::uint64_t file_size);

/// Reads a file of tensors in any supported format: safetensors, both of PyTorch's forms, npz, npy (a tensor named
/// "array"), GGUF or JSON weights. The format is recognised by the contents, not by the file name. Throws the reader's
/// IoError, and IoError for a file in none of these formats.
TensorFile read_tensors(const std::filesystem::path& path, const ReadOptions& options = {});

/// Writes tensors in the format of the file name's extension: .safetensors, .pt or .pth, .npz, .gguf. Metadata is kept
/// where the format has it (safetensors, GGUF). Throws IoError for another extension.
void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                   const Metadata& metadata = {});

/// A layer recognised by the names and shapes in a state_dict: "encoder", "GRU(input 12, hidden 64, layers 2,
/// bidirectional)".
struct RecognisedLayer {
  std::string name;         ///< the prefix of its tensors without the last dot
  std::string description;  ///< the kind of layer with its hyper-parameters
};

/// Returns the layers that can be recognised in a file, in its order: recurrent layers and cells, Linear, Embedding,
/// LayerNorm and BatchNorm under PyTorch's names. A description says what the names leave open: a matrix without a bias
/// may be an Embedding or a Linear.
std::vector<RecognisedLayer> recognise_layers(const TensorFile& file);

}  // namespace ferrite::io
