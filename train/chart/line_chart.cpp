/// Line charts as SVG: scales, grid, curves, legend.
#include "ferrite/train/line_chart.h"

#include <algorithm>
#include <cmath>

#include "ferrite/io/text_file.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/chart/svg.h"

namespace ferrite::train {
namespace {

constexpr const char* kColours[] = {"#1f6feb", "#d1495b", "#2a9d54", "#8854d0", "#e08e0b", "#16808d"};
constexpr double kLeft = 64, kRight = 24, kTop = 40, kBottom = 52, kLegendRow = 20;

/// Beyond that the difference of two values may overflow.
bool drawable(double v) { return std::fabs(v) <= 1e300; }

/// A range widened to multiples of a round step: 1, 2 or 5 times a power of ten.
struct Scale {
  double low = 0, high = 1, step = 0.25;
};

Scale scale_of(double low, double high, double least_step) {
  if (!(low <= high)) return {};
  const double largest = std::max(std::fabs(low), std::fabs(high));
  if (high - low <= std::max(1e-12 * largest, 1e-290)) {
    const double half = std::max(0.5, 1e-6 * largest);
    low -= half;
    high += half;
  }
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / power;
  const double step = std::max(least_step, power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10));
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

/// Over the values of all series; places that are whole numbers, as epochs are, have no ticks between them.
Scale scale_over(const std::vector<Series>& series, std::initializer_list<std::vector<double> Series::*> of,
                 bool places) {
  double low = INFINITY;
  double high = -INFINITY;
  bool whole = places;
  for (const Series& s : series)
    for (const auto values : of)
      for (const double v : s.*values)
        if (drawable(v)) {
          low = std::min(low, v);
          high = std::max(high, v);
          whole = whole && v == std::floor(v);
        }
  return scale_of(low, high, whole && high > low ? 1 : 0);
}

class Chart {
 public:
  Chart(const std::vector<Series>& series, const ChartOptions& o)
      : series_(series),
        o_(o),
        x_(scale_over(series, {&Series::x}, true)),
        y_(scale_over(series, {&Series::y, &Series::low, &Series::high}, false)),
        svg_("line chart", o.width, o.height) {}

  std::string text() {
    svg_.text(o_.width / 2.0, 22, "middle", o_.title, " font-size=\"15\"");
    legend();
    grid();
    for (std::size_t i = 0; i < series_.size(); ++i) band(series_[i], colour(i));
    for (std::size_t i = 0; i < series_.size(); ++i) marks(series_[i], colour(i));
    svg_.text(o_.width / 2.0, o_.height - 10, "middle", o_.x_label);
    svg_.text(16, (top_ + o_.height - kBottom) / 2, "middle", o_.y_label,
              " transform=\"rotate(-90 16 " + number((top_ + o_.height - kBottom) / 2) + ")\"");
    return svg_.end();
  }

 private:
  static const char* colour(std::size_t i) { return kColours[i % std::size(kColours)]; }
  static std::string number(double v) {
    std::ostringstream s = detail::number_stream();
    s << v;
    return s.str();
  }
  double px(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (o_.width - kLeft - kRight); }
  double py(double y) const {
    return o_.height - kBottom - (y - y_.low) / (y_.high - y_.low) * (o_.height - top_ - kBottom);
  }
  std::string at(double x, double y) const { return number(px(x)) + ' ' + number(py(y)); }

  /// Rows of names below the title, so that none lies on a curve.
  void legend() {
    double x = kLeft, y = kTop;
    for (std::size_t i = 0; i < series_.size() && series_.size() > 1; ++i) {
      const Series& s = series_[i];
      if (s.name.empty()) continue;
      const double width = 26 + detail::width_of(s.name) + 18;
      if (x > kLeft && x + width > o_.width - kRight) x = kLeft, y += kLegendRow;
      svg_.stroke("M" + number(s.points ? x + 10 : x) + ' ' + number(y) + (s.points ? "h0" : "h20"), colour(i),
                  s.points ? 6 : 3);
      svg_.text(x + 26, y + 4, "start", s.name);
      x += width;
      top_ = y + kLegendRow;
    }
  }

  void grid() {
    const auto tick = [](double v, double step) { return number(std::fabs(v) < step * 1e-9 ? 0 : v); };
    for (int i = 0; y_.low + i * y_.step <= y_.high + y_.step / 2; ++i) {
      const double v = y_.low + i * y_.step;
      svg_.line(kLeft, py(v), o_.width - kRight, py(v), "#e4e4e4");
      svg_.text(kLeft - 8, py(v) + 4, "end", tick(v, y_.step));
    }
    for (int i = 0; x_.low + i * x_.step <= x_.high + x_.step / 2; ++i) {
      const double v = x_.low + i * x_.step;
      svg_.line(px(v), o_.height - kBottom, px(v), o_.height - kBottom + 5, "#888");
      svg_.text(px(v), o_.height - kBottom + 19, "middle", tick(v, x_.step));
    }
    svg_.line(kLeft, o_.height - kBottom, o_.width - kRight, o_.height - kBottom, "#888");
    svg_.line(kLeft, top_, kLeft, o_.height - kBottom, "#888");
  }

  /// Piece by piece between points that cannot be drawn.
  void band(const Series& s, const char* colour) {
    std::string path;
    for (std::size_t i = 0; i < s.low.size();) {
      std::size_t end = i;
      while (end < s.low.size() && drawable(s.x[end]) && drawable(s.low[end]) && drawable(s.high[end])) ++end;
      for (std::size_t k = i; k < end; ++k) path += (k == i ? "M" : "L") + at(s.x[k], s.high[k]);
      for (std::size_t k = end; k-- > i;) path += "L" + at(s.x[k], s.low[k]);
      if (end > i) path += "Z";
      i = end + 1;
    }
    if (!path.empty()) svg_.fill(path, colour, " fill-opacity=\"0.18\"");
  }

  void marks(const Series& s, const char* colour) {
    std::string path;
    bool drawing = false;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const bool there = drawable(s.x[i]) && drawable(s.y[i]);
      if (there) path += (drawing ? "L" : "M") + at(s.x[i], s.y[i]);
      if (there && !drawing) path += "h0";  // with round ends, a point alone is a dot
      drawing = there && !s.points;
    }
    svg_.stroke(path, colour, s.points ? 6 : 2, s.points ? " stroke-opacity=\"0.6\"" : "");
  }

  const std::vector<Series>& series_;
  const ChartOptions& o_;
  Scale x_, y_;
  double top_ = kTop;
  detail::Svg svg_;
};

void check(const Series& s) {
  const auto refuse = [&](std::size_t other, const char* what) {
    if (other != s.y.size())
      throw ValueError("line chart: series '" + s.name + "' has " + std::to_string(other) + what + " and " +
                       std::to_string(s.y.size()) + " y");
  };
  refuse(s.x.size(), " x");
  if (s.low.empty() && s.high.empty()) return;
  refuse(s.low.size(), " lower limits");
  refuse(s.high.size(), " upper limits");
}

}  // namespace

Series Series::of(std::string name, const Tensor& x, const Tensor& y) {
  return {.name = std::move(name),
          .x = cast(x, Dtype::f64).to_vector<double>(),
          .y = cast(y, Dtype::f64).to_vector<double>()};
}

Series Series::of(std::string name, const Tensor& y) { return of(std::move(name), arange(y.numel()), y); }

std::string line_chart(const std::vector<Series>& series, const ChartOptions& options) {
  for (const Series& s : series) check(s);
  return Chart(series, options).text();
}

void write_line_chart(const std::filesystem::path& path, const std::vector<Series>& series,
                      const ChartOptions& options) {
  io::write_text(path, line_chart(series, options));
}

}  // namespace ferrite::train
