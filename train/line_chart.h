#pragma once
/// Line charts as SVG text.
#include <string>
#include <vector>

namespace ferrite::train {

struct Series {
  std::string name;
  std::vector<double> x, y;  ///< of equal length; points that are not finite (or beyond 1e300) break the line
};

struct ChartOptions {
  std::string title{}, x_label{}, y_label{};
  int width = 720;
  int height = 420;
};

/// A line chart as SVG text: axes with round ticks, one colour for each series, a legend. Control characters in texts
/// become spaces. Throws ValueError when a series has unequal numbers of x and y, or the size is below 200 x 150.
std::string line_chart(const std::vector<Series>& series, const ChartOptions& options);

}  // namespace ferrite::train
