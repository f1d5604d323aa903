#pragma once
/// Weights in JSON: objects of nested lists of numbers.
#include <cstddef>
#include <filesystem>
#include <span>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// Parses weights from one JSON object of nested lists, a state_dict by its names: {"gru.weight_ih_l0": [[...], ...],
/// ...}, as people write them from PyTorch for RTNeural, or within GuitarML's wrapper {"model_data": {...},
/// "state_dict": {...}}, whose model_data become the metadata. All tensors are F32. Throws IoError, its message
/// beginning with `where`, for anything else: not JSON, ragged lists, text, keys that occur twice, NaN, numbers beyond
/// f32, more than 8 dimensions.
TensorFile parse_json_weights(std::span<const std::byte> bytes, std::string_view where = "json");
/// Reads weights from a JSON file. Throws IoError as parse_json_weights, and for a file that cannot be read.
TensorFile read_json_weights(const std::filesystem::path& path);

}  // namespace ferrite::io
