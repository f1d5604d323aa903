#pragma once
/// Reads all tensors of a file, for fuzz targets.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace fuzz {

/// Returns the tensors that can be read, up to a size; reading the others is an IoError. Ends the program when a tensor
/// is not as the file describes it.
inline std::vector<ferrite::io::NamedTensor> tensors_of(
    const ferrite::io::TensorFile& file, std::int64_t most_elements = std::numeric_limits<std::int64_t>::max()) {
  std::vector<ferrite::io::NamedTensor> tensors;
  for (const std::string_view name : file.names()) {
    const ferrite::io::TensorInfo info = file.info(name);
    try {
      const ferrite::Tensor tensor = file.tensor(name);
      if (info.loads_as != tensor.dtype()) std::abort();
      if (!(ferrite::Shape(info.shape) == tensor.shape())) std::abort();
      if (tensor.numel() <= most_elements) tensors.push_back({std::string(name), tensor});
    } catch (const ferrite::IoError&) {
      continue;
    }
  }
  return tensors;
}

}  // namespace fuzz
