#pragma once
/// Reading weights of any format, and which layers they belong to.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// Reads a file of tensors, whichever of the formats it is in; told by its contents, not by its name: safetensors, both
/// of PyTorch's forms, npz, npy (a tensor named "array"), GGUF, JSON weights. Throws the reader's IoError, and one for
/// what is none of these.
TensorFile read_tensors(const std::filesystem::path& path, const ReadOptions& options = {});

/// Writes tensors in the format that the name ends with: .safetensors, .pt or .pth, .npz, .gguf. Metadata is kept where
/// the format has it (safetensors, GGUF). Throws IoError for another ending.
void write_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                   const Metadata& metadata = {});

/// A layer that names and shapes of a state_dict tell: "encoder", "GRU(input 12, hidden 64, layers 2, bidirectional)".
struct RecognisedLayer {
  std::string name;         ///< the prefix of its tensors without the last dot
  std::string description;  ///< with hyper-parameters
};

/// Recurrent layers and cells, Linear, Embedding, LayerNorm and BatchNorm under PyTorch's names, in the order of the
/// file. What a name alone does not tell is said: a matrix without a bias may be an Embedding or a Linear.
std::vector<RecognisedLayer> recognise_layers(const TensorFile& file);

}  // namespace ferrite::io
