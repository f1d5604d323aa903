#pragma once
/// Heat maps of matrices as SVG text, and grids of images.
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

/// The options of `heat_map`: texts, colours and size.
struct HeatMapOptions {
  std::string title{}, x_label{}, y_label{};
  std::vector<std::string> columns{}, rows{};  ///< names of columns and rows; empty: none are written
  /// The values of the lightest and of the darkest colour; NaN: the smallest and the largest element.
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  bool numbers = false;  ///< writes the values into their cells, with three digits
  bool scale = true;     ///< draws a strip of the colours with their values
  int cell = 0;          ///< width and height of a cell in pixels; 0: about 480 for the longer side, at least 2 each
};

/// Returns a heat map of a matrix [rows, columns] of any dtype as SVG text. Each element is a square, from white for
/// `low` to dark blue for `high` in 64 colours, or grey if not finite; row 0 is at the top. Throws ShapeError for
/// another rank, more than 2^20 elements or none, ValueError for a wrong number of names, a negative cell or
/// low > high.
std::string heat_map(const Tensor& values, const HeatMapOptions& options = {});

/// Writes a heat map to a file; an old file is replaced as a whole. Throws what `heat_map` throws, and IoError.
void write_heat_map(const std::filesystem::path& path, const Tensor& values, const HeatMapOptions& options = {});

/// The options of `image_grid`.
struct ImageGridOptions {
  std::int64_t columns = 8;  ///< images in a row, or fewer if there are fewer images
  std::int64_t padding = 1;  ///< pixels between and around images
  double background = 0;     ///< value of the padding and of places without an image
};

/// Returns one image that shows several in a grid: [N, H, W] -> [H', W'], [N, C, H, W] -> [C, H', W'], in their dtype,
/// for `heat_map`, EventWriter::image and io::write_png. Throws ShapeError for other ranks or no images, ValueError for
/// columns below 1 or a negative padding.
Tensor image_grid(const Tensor& images, const ImageGridOptions& options = {});

}  // namespace ferrite::train
