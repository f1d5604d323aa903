/// Heat maps as SVG: runs of equal colours, names of rows and columns, the scale.
#include "ferrite/train/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ferrite/io/text_file.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/chart/svg.h"

namespace ferrite::train {
namespace {

constexpr int kLevels = 64;
constexpr double kLeft = 24, kRight = 24, kTop = 40, kBottom = 24;

/// White, light blue, blue, dark blue: lightness falls evenly.
std::string colour_of(int level) {
  constexpr std::array<std::array<double, 3>, 4> kStops = {
      {{255, 255, 255}, {158, 202, 225}, {49, 130, 189}, {8, 48, 107}}};
  const double at = 3.0 * level / (kLevels - 1);
  const auto stop = std::min<std::size_t>(2, static_cast<std::size_t>(at));
  const double share = at - static_cast<double>(stop);
  constexpr const char* kHex = "0123456789abcdef";
  std::string s = "#";
  for (std::size_t c = 0; c < 3; ++c) {
    const auto v = static_cast<unsigned>(std::lround((1 - share) * kStops[stop][c] + share * kStops[stop + 1][c]));
    s += kHex[v / 16];
    s += kHex[v % 16];
  }
  return s;
}

std::string short_number(double v) {
  std::ostringstream s = detail::number_stream();
  s.precision(3);
  s << v;
  return s.str();
}

double widest(const std::vector<std::string>& names) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, detail::width_of(name));
  return width;
}

class HeatMap {
 public:
  HeatMap(const Tensor& values, const HeatMapOptions& o)
      : o_(o), rows_(values.shape()[0]), columns_(values.shape()[1]), v_(cast(values, Dtype::f64).to_vector<double>()) {
    const std::int64_t longer = std::max(rows_, columns_);
    cell_ = o.cell > 0 ? o.cell : static_cast<int>(std::max<std::int64_t>(2, 480 / longer));
    set_range();
    left_ = kLeft + (o.y_label.empty() ? 0 : 18) + widest(o.rows) + (o.rows.empty() ? 0 : 8);
    // Names that are wider than their columns stand upright.
    upright_ = widest(o.columns) > cell_ - 4;
    below_ = o.columns.empty() ? 0 : upright_ ? widest(o.columns) + 10 : 20;
    scale_ = o.scale
                 ? 30 + 14 + 8 + std::max(detail::width_of(short_number(low_)), detail::width_of(short_number(high_)))
                 : 0;
  }

  std::string text() {
    const double inner = static_cast<double>(columns_ * cell_), high = static_cast<double>(rows_ * cell_);
    const double needed = std::max(left_ + inner + scale_ + kRight, detail::width_of(o_.title) * 1.25 + 16);
    const double width = std::max(200.0, needed);
    left_ += (width - (left_ + inner + scale_ + kRight)) / 2;  // in the middle, where the title is wider
    const double height = std::max(150.0, kTop + high + below_ + (o_.x_label.empty() ? 0 : 20) + kBottom - 8);
    detail::Svg svg("heat map", static_cast<int>(width), static_cast<int>(height));
    svg.text(width / 2, 22, "middle", o_.title, " font-size=\"15\"");
    cells(svg);
    names(svg);
    svg.text(left_ + inner / 2, kTop + high + below_ + 18, "middle", o_.x_label);
    const std::string middle = std::to_string(static_cast<int>(kTop + high / 2));
    const double x = left_ - (o_.rows.empty() ? 0 : widest(o_.rows) + 8) - 14;
    svg.text(x, kTop + high / 2, "middle", o_.y_label,
             " transform=\"rotate(-90 " + short_number(std::round(x)) + ' ' + middle + ")\"");
    if (o_.scale) scale(svg, left_ + inner + 30, high);
    return svg.end();
  }

 private:
  void set_range() {
    low_ = o_.low, high_ = o_.high;
    for (const double v : v_) {
      if (!std::isfinite(v)) continue;
      if (std::isnan(o_.low)) low_ = std::fmin(low_, v);
      if (std::isnan(o_.high)) high_ = std::fmax(high_, v);
    }
    if (std::isnan(low_)) low_ = std::isnan(high_) ? 0 : high_;
    if (std::isnan(high_)) high_ = low_;
  }

  /// -1 for what is not finite.
  int level(double v) const {
    if (!std::isfinite(v)) return -1;
    if (!(high_ > low_)) return v > high_ ? kLevels - 1 : 0;
    const double share = std::clamp(v / (high_ - low_) - low_ / (high_ - low_), 0.0, 1.0);
    return static_cast<int>(std::lround(share * (kLevels - 1)));
  }
  double value(std::int64_t row, std::int64_t column) const {
    return v_[static_cast<std::size_t>(row * columns_ + column)];
  }

  /// Runs of one colour are one rectangle, and all of a colour one path: white ones are the background.
  void cells(detail::Svg& svg) const {
    std::vector<std::string> paths(kLevels + 1);
    const int left = static_cast<int>(left_), top = static_cast<int>(kTop);
    const auto box = [&](std::int64_t x, std::int64_t y, std::int64_t n) {
      return "M" + std::to_string(left + x * cell_) + ' ' + std::to_string(top + y * cell_) + "h" +
             std::to_string(n * cell_) + "v" + std::to_string(cell_) + "h-" + std::to_string(n * cell_) + "z";
    };
    for (std::int64_t row = 0; row < rows_; ++row)
      for (std::int64_t begin = 0, end = 0; begin < columns_; begin = end) {
        const int l = level(value(row, begin));
        while (end < columns_ && level(value(row, end)) == l) ++end;
        paths[static_cast<std::size_t>(l + 1)] += box(begin, row, end - begin);
      }
    for (int l = -1; l < kLevels; ++l)
      if (l != 0 && !paths[static_cast<std::size_t>(l + 1)].empty())
        svg.fill(paths[static_cast<std::size_t>(l + 1)], l < 0 ? "#999999" : colour_of(l),
                 " shape-rendering=\"crispEdges\"");
    svg.stroke("M" + std::to_string(left) + ' ' + std::to_string(top) + "h" + std::to_string(columns_ * cell_) + "v" +
                   std::to_string(rows_ * cell_) + "h-" + std::to_string(columns_ * cell_) + "z",
               "#888", 1);
  }

  void names(detail::Svg& svg) const {
    const auto at = [&](std::int64_t i) { return (static_cast<double>(i) + 0.5) * cell_; };
    for (std::size_t r = 0; r < o_.rows.size(); ++r)
      svg.text(left_ - 6, kTop + at(static_cast<std::int64_t>(r)) + 4, "end", o_.rows[r]);
    const double y = kTop + static_cast<double>(rows_ * cell_) + (upright_ ? 6 : 15);
    for (std::size_t c = 0; c < o_.columns.size(); ++c) {
      const double x = left_ + at(static_cast<std::int64_t>(c));
      std::ostringstream turn = detail::number_stream();
      if (upright_) turn << " transform=\"rotate(-90 " << x + 4 << ' ' << y << ")\"";
      svg.text(upright_ ? x + 4 : x, y, upright_ ? "end" : "middle", o_.columns[c], turn.str());
    }
    if (!o_.numbers) return;
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t c = 0; c < columns_; ++c)
        svg.text(left_ + at(c), kTop + at(r) + 4, "middle", short_number(value(r, c)),
                 level(value(r, c)) > kLevels / 2 ? " fill=\"white\"" : "");
  }

  void scale(detail::Svg& svg, double x, double height) const {
    const double step = height / kLevels;
    for (int l = kLevels; l-- > 0;) {
      std::ostringstream box = detail::number_stream();
      // Each reaches to the bottom, so that no seams are seen between them.
      box << 'M' << x << ' ' << kTop + height - (l + 1) * step << "h14V" << kTop + height << "h-14z";
      svg.fill(box.str(), colour_of(l));
    }
    svg.text(x + 20, kTop + 10, "start", short_number(high_));
    svg.text(x + 20, kTop + height, "start", short_number(low_));
  }

  const HeatMapOptions& o_;
  std::int64_t rows_, columns_;
  std::vector<double> v_;
  int cell_ = 1;
  double low_ = 0, high_ = 0, left_ = 0, below_ = 0, scale_ = 0;
  bool upright_ = false;
};

void check_names(const char* what, const std::vector<std::string>& names, std::int64_t n) {
  if (!names.empty() && static_cast<std::int64_t>(names.size()) != n)
    throw ValueError("heat map: " + std::to_string(n) + ' ' + what + ", but " + std::to_string(names.size()) +
                     " names of them");
}

}  // namespace

std::string heat_map(const Tensor& values, const HeatMapOptions& o) {
  if (values.rank() != 2) throw ShapeError("heat map: values must be [rows, columns], got " + values.shape().str());
  if (values.numel() < 1 || values.numel() > (1 << 20))
    throw ShapeError("heat map: between 1 and 2^20 values, got " + values.shape().str());
  check_names("rows", o.rows, values.shape()[0]);
  check_names("columns", o.columns, values.shape()[1]);
  if (o.cell < 0) throw ValueError("heat map: cell must be at least 0, got " + std::to_string(o.cell));
  if (o.low > o.high)
    throw ValueError("heat map: low must not be above high, got " + short_number(o.low) + " and " +
                     short_number(o.high));
  return HeatMap(values, o).text();
}

void write_heat_map(const std::filesystem::path& path, const Tensor& values, const HeatMapOptions& options) {
  io::write_text(path, heat_map(values, options));
}

}  // namespace ferrite::train
