#pragma once
/// Checksums of files of weights that do not depend on the format.
#include <span>
#include <string>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io {

/// Returns the CRC-32 of the names, dtypes, shapes and values of tensors, in the order of their names, and of the
/// metadata without the key "checksum", as 8 hexadecimal digits. It does not depend on the file format, as long as the
/// format keeps the dtypes.
std::string checksum(std::span<const NamedTensor> tensors, const Metadata& metadata);
/// Returns the checksum of all tensors and the metadata of a file.
std::string checksum(const TensorFile& file);

}  // namespace ferrite::io
