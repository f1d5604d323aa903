#pragma once
/// Windows on tensors: padding with what a tensor holds, patches as an axis and their sums, channels and pixels.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// What stands around a tensor: zeros, its elements mirrored at the first and the last one, which are not repeated
/// (c b | a b c | b a), the first and the last one again (a a | a b c | c c), or its other end (b c | a b c | a b).
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

/// Adds before[i] and after[i] elements around axis i, by torch.nn.functional.pad's modes. Any dtype but those that are
/// only stored. Throws ShapeError unless `before` and `after` have x's rank, ValueError for negative amounts, and
/// ShapeError for more than the mode has: reflect below the extent, circular up to it, replicate any of an axis that is
/// not empty.
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, PaddingMode mode);

}  // namespace ferrite
