#pragma once
/// Checksums of files of weights that do not depend on the format.
#include <span>
#include <string>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// CRC-32 over names, dtypes, shapes and values of tensors in the order of their names, then over the metadata, but
/// for the key "checksum": 8 hexadecimal digits. The same whatever file they went through, as long as dtypes do.
std::string checksum(std::span<const NamedTensor> tensors, const Metadata& metadata);
std::string checksum(const TensorFile& file);

}  // namespace ferrite::io
