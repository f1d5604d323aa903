/// Grids of images: joined along rows, then rows below each other.
#include "ferrite/train/image_grid.h"

#include <algorithm>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::train {

Tensor image_grid(const Tensor& images, const ImageGridOptions& o) {
  if ((images.rank() != 3 && images.rank() != 4) || images.numel() < 1)
    throw ShapeError("image grid: images must be [N, H, W] or [N, C, H, W], got " + images.shape().str());
  if (o.columns < 1 || o.padding < 0)
    throw ValueError("image grid: columns must be at least 1 and padding 0, got " + std::to_string(o.columns) +
                     " and " + std::to_string(o.padding));
  const std::int64_t n = images.shape()[0], across = std::min(n, o.columns), down = (n + across - 1) / across;
  Shape gap = images.shape();
  gap[-1] = o.padding;
  const int rank = images.rank();
  const auto filled = [&](const Shape& shape) { return cast(full(shape, o.background, Dtype::f64), images.dtype()); };
  const Tensor beside = filled(gap);
  Shape missing = images.shape();
  missing[0] = 1;
  const Tensor none = filled(missing);
  std::vector<Tensor> rows;
  for (std::int64_t r = 0; r < down; ++r) {
    std::vector<Tensor> row;
    for (std::int64_t c = 0; c < across; ++c) {
      const std::int64_t i = r * across + c;
      row.push_back(slice(beside, 0, 0, 1));
      row.push_back(i < n ? slice(images, 0, i, i + 1) : none);
    }
    row.push_back(slice(beside, 0, 0, 1));
    rows.push_back(select(concat(row, rank - 1), 0, 0));
  }
  Shape between = rows[0].shape();
  between[-2] = o.padding;
  const Tensor line = filled(between);
  std::vector<Tensor> all = {line};
  for (const Tensor& row : rows) all.push_back(row), all.push_back(line);
  return concat(all, rank - 3);
}

}  // namespace ferrite::train
