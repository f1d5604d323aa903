#pragma once
/// Blocks of quantised elements as numbers, and numbers as blocks.
#include <cstddef>
#include <span>

#include "ferrite/io/gguf/gguf_format.h"

namespace ferrite::io::detail::gguf {

/// The elements of whole blocks; `blocks` holds exactly those of `out`.
void dequantize(Packing packing, std::span<const std::byte> blocks, std::span<float> out);

/// Blocks of 32 finite elements each as Q8_0 or Q4_0, into exactly their bytes. False where a scale is beyond f16.
bool quantize(Packing packing, std::span<const float> elements, std::span<std::byte> blocks);

}  // namespace ferrite::io::detail::gguf
