#pragma once
/// Tensors from strided elements of a file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ferrite/io/detail/file_dtype.h"

namespace ferrite::io::detail {

/// A tensor from strided elements; `bytes` begins at the first one and holds all of them. Strides are
/// in elements and not negative. The result is row-major, but for axes of stride 0, which it keeps. The type is
/// supported, at most 8 dimensions. Takes 64 KiB beside the result. Throws IoError as `decode`.
Tensor decode_strided(FileDtype type, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                      std::span<const std::byte> bytes, std::string_view where, Elements elements, ByteOrder order);

}  // namespace ferrite::io::detail
