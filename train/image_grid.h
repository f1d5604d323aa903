#pragma once
/// Images side by side in one.
#include <cstdint>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

struct ImageGridOptions {
  std::int64_t columns = 8;  ///< images in a row, fewer where there are fewer
  std::int64_t padding = 1;  ///< pixels between and around them
  double background = 0;     ///< the value of the padding, and of places without an image
};

/// Images side by side as one: [N, H, W] -> [H', W'], [N, C, H, W] -> [C, H', W'], in their dtype, for `heat_map`,
/// EventWriter::image and io::write_png. Throws ShapeError for other ranks and no images, ValueError for columns below
/// 1 and a negative padding.
Tensor image_grid(const Tensor& images, const ImageGridOptions& options = {});

}  // namespace ferrite::train
