#pragma once
/// Line charts as SVG text.
#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

/// One curve of a line chart, or a set of dots.
struct Series {
  std::string name;          ///< name in the legend; empty: not listed
  std::vector<double> x, y;  ///< coordinates, equally many; points not finite (or beyond 1e300) break the line
  bool points = false;       ///< draws dots in place of a line
  /// Limits of a band around the line, in its colour: equally many as y, or empty.
  std::vector<double> low{}, high{};

  /// Returns a series of the elements of two tensors of any shape and dtype; without x they are at 0, 1, 2, ...
  static Series of(std::string name, const Tensor& x, const Tensor& y);
  static Series of(std::string name, const Tensor& y);
};

/// The options of `line_chart`; width and height are in pixels.
struct ChartOptions {
  std::string title{}, x_label{}, y_label{};
  int width = 720;
  int height = 420;
};

/// Returns a line chart as SVG text: axes with round ticks, one colour for each series, and a legend between title and
/// axes if there are several. Control characters in texts become spaces. Throws ValueError when a series has unequal
/// numbers of x and y or a band of another length, or when the size is below 200 x 150.
std::string line_chart(const std::vector<Series>& series, const ChartOptions& options = {});

/// Writes a line chart to a file; an old file is replaced as a whole. Throws what `line_chart` throws, and IoError.
void write_line_chart(const std::filesystem::path& path, const std::vector<Series>& series,
                      const ChartOptions& options = {});

}  // namespace ferrite::train
