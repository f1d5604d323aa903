#pragma once
/// Matrices and images as pictures: heat maps as SVG text, images side by side in one.
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

struct HeatMapOptions {
  std::string title{}, x_label{}, y_label{};
  std::vector<std::string> columns{}, rows{};  ///< their names; empty: none are written
  /// The values of the lightest and of the darkest colour; NaN: the smallest and the largest there are.
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  bool numbers = false;  ///< the values in their cells, with three digits
  bool scale = true;     ///< a strip of the colours with its values beside
  int cell = 0;          ///< width and height of one in pixels; 0: so that the longer side has about 480, 2 at least
};

/// A matrix [rows, columns] of any dtype as SVG text: a square for each element, from white for `low` to dark blue for
/// `high` in 64 colours; what is not finite is grey. Row 0 is at the top. Throws ShapeError for another rank, more than
/// 2^20 elements and none, ValueError for other numbers of names, a negative cell and low > high.
std::string heat_map(const Tensor& values, const HeatMapOptions& options = {});

/// Writes that text as a file, so that an old one is replaced as a whole. Throws as above, and IoError.
void write_heat_map(const std::filesystem::path& path, const Tensor& values, const HeatMapOptions& options = {});

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
