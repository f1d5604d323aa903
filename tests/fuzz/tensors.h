#pragma once
/// What fuzz targets ask of a file that was read: all its tensors.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "ferrite/io/tensor_file.h"

namespace fuzz {

/// The tensors that can be had, up to a size; asking for the others is an IoError. Ends the program when one is not
/// what the file says of it.
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
