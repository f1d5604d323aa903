#pragma once
/// Line charts as SVG text.
#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

struct Series {
  std::string name;          ///< in the legend; empty: not there
  std::vector<double> x, y;  ///< of equal length; points that are not finite (or beyond 1e300) break the line
  bool points = false;       ///< dots in place of a line
  /// A band around the line, in its colour: of the length of y, or empty.
  std::vector<double> low{}, high{};

  /// The elements of two tensors of any shape and dtype; without x, 0, 1, 2, ...
  static Series of(std::string name, const Tensor& x, const Tensor& y);
  static Series of(std::string name, const Tensor& y);
};

struct ChartOptions {
  std::string title{}, x_label{}, y_label{};
  int width = 720;
  int height = 420;
};

/// A line chart as SVG text: axes with round ticks, one colour for each series, a legend between title and axes where
/// there are several. Control characters in texts become spaces. Throws ValueError when a series has unequal numbers of
/// x and y, or of them and its band, or the size is below 200 x 150.
std::string line_chart(const std::vector<Series>& series, const ChartOptions& options = {});

/// Writes that text as a file, so that an old one is replaced as a whole. Throws as above, and IoError.
void write_line_chart(const std::filesystem::path& path, const std::vector<Series>& series,
                      const ChartOptions& options = {});

}  // namespace ferrite::train
