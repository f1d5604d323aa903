/// Line charts as SVG: scales, grid, curves, legend.
#include "ferrite/train/line_chart.h"

#include <algorithm>
#include <cmath>
#include <locale>
#include <sstream>

#include "ferrite/tensor/error.h"

namespace ferrite::train {
namespace {

constexpr const char* kColours[] = {"#1f6feb", "#d1495b", "#2a9d54", "#8854d0", "#e08e0b", "#16808d"};
constexpr double kLeft = 64, kRight = 20, kTop = 40, kBottom = 52;

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) {
    switch (c) {
      case '<': s += "&lt;"; break;
      case '>': s += "&gt;"; break;
      case '&': s += "&amp;"; break;
      case '"': s += "&quot;"; break;
      default: s += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no words for most of them
    }
  }
  return s;
}

/// Beyond that the difference of two values may overflow.
bool drawable(double v) { return std::fabs(v) <= 1e300; }

/// A stream that writes 0.5 whatever the program's locale says.
std::ostringstream number_stream() {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  return s;
}

/// A range widened to multiples of a round step: 1, 2 or 5 times a power of ten.
struct Scale {
  double low = 0, high = 1, step = 0.25;
};

Scale scale_of(double low, double high) {
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
  const double step = power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

Scale scale_over(const std::vector<Series>& series, std::vector<double> Series::*values) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const Series& s : series)
    for (const double v : s.*values)
      if (drawable(v)) {
        low = std::min(low, v);
        high = std::max(high, v);
      }
  return scale_of(low, high);
}

class Chart {
 public:
  Chart(const std::vector<Series>& series, const ChartOptions& o)
      : series_(series), o_(o), x_(scale_over(series, &Series::x)), y_(scale_over(series, &Series::y)) {}

  std::string text() {
    svg_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << o_.width << "\" height=\"" << o_.height
         << "\" viewBox=\"0 0 " << o_.width << ' ' << o_.height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    words(o_.width / 2.0, 22, "middle", o_.title, " font-size=\"15\"");
    grid();
    for (std::size_t i = 0; i < series_.size(); ++i) lines(series_[i], kColours[i % std::size(kColours)]);
    legend();
    words(o_.width / 2.0, o_.height - 10, "middle", o_.x_label);
    words(16, o_.height / 2.0, "middle", o_.y_label,
          " transform=\"rotate(-90 16 " + std::to_string(o_.height / 2) + ")\"");
    svg_ << "</svg>\n";
    return svg_.str();
  }

 private:
  double px(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (o_.width - kLeft - kRight); }
  double py(double y) const {
    return o_.height - kBottom - (y - y_.low) / (y_.high - y_.low) * (o_.height - kTop - kBottom);
  }

  void words(double x, double y, const char* anchor, const std::string& text, const std::string& more = {}) {
    if (text.empty()) return;
    svg_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" fill=\"#333\"" << more << '>'
         << escaped(text) << "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    svg_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\"" << colour
         << "\"/>\n";
  }
  static std::string tick(double v, double step) {
    std::ostringstream s = number_stream();
    s << (std::fabs(v) < step * 1e-9 ? 0 : v);
    return s.str();
  }

  void grid() {
    for (int i = 0; y_.low + i * y_.step <= y_.high + y_.step / 2; ++i) {
      const double v = y_.low + i * y_.step;
      line(kLeft, py(v), o_.width - kRight, py(v), "#e4e4e4");
      words(kLeft - 8, py(v) + 4, "end", tick(v, y_.step));
    }
    for (int i = 0; x_.low + i * x_.step <= x_.high + x_.step / 2; ++i) {
      const double v = x_.low + i * x_.step;
      line(px(v), o_.height - kBottom, px(v), o_.height - kBottom + 5, "#888");
      words(px(v), o_.height - kBottom + 19, "middle", tick(v, x_.step));
    }
    line(kLeft, o_.height - kBottom, o_.width - kRight, o_.height - kBottom, "#888");
    line(kLeft, kTop, kLeft, o_.height - kBottom, "#888");
  }

  void lines(const Series& s, const char* colour) {
    std::string path;
    bool drawing = false;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s.x[i]) || !drawable(s.y[i])) {
        drawing = false;
        continue;
      }
      std::ostringstream point = number_stream();
      point << (drawing ? 'L' : 'M') << px(s.x[i]) << ' ' << py(s.y[i]);
      if (!drawing) point << "h0";  // with round ends, a point alone is a dot
      path += point.str();
      drawing = true;
    }
    svg_ << "<path d=\"" << path << "\" fill=\"none\" stroke=\"" << colour
         << "\" stroke-width=\"2\" stroke-linecap=\"round\"/>\n";
  }

  void legend() {
    double y = kTop + 14;
    for (std::size_t i = 0; i < series_.size(); ++i, y += 18) {
      line(o_.width - kRight - 130, y - 4, o_.width - kRight - 108, y - 4, kColours[i % std::size(kColours)]);
      words(o_.width - kRight - 102, y, "start", series_[i].name);
    }
  }

  const std::vector<Series>& series_;
  const ChartOptions& o_;
  Scale x_, y_;
  std::ostringstream svg_ = number_stream();
};

}  // namespace

std::string line_chart(const std::vector<Series>& series, const ChartOptions& options) {
  if (options.width < 200 || options.height < 150)
    throw ValueError("line chart: the size must be at least 200 x 150, got " + std::to_string(options.width) + " x " +
                     std::to_string(options.height));
  for (const Series& s : series)
    if (s.x.size() != s.y.size())
      throw ValueError("line chart: series '" + s.name + "' has " + std::to_string(s.x.size()) + " x and " +
                       std::to_string(s.y.size()) + " y");
  return Chart(series, options).text();
}

}  // namespace ferrite::train
