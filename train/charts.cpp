/// Charts as SVG: line charts with scales, grid, curves and legend; heat maps of runs of equal colours with the scale
/// and names of rows and columns; grids of images.
#include <algorithm>
#include <array>
#include <cmath>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/text_file.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/heat_map.h"
#include "ferrite/train/line_chart.h"

namespace ferrite::train::detail {
namespace {

/// An SVG picture, written element by element. Numbers are written in the classic locale, with six digits.
class Svg {
 public:
  /// Begins a picture. Throws ValueError, naming `who`, for a size below 200 x 150.
  Svg(const char* who, int width, int height);

  /// Writes a text, if it is not empty. `anchor` is start, middle or end; `more` are further attributes.
  void text(double x, double y, const char* anchor, std::string_view text, std::string_view more = {});
  void line(double x1, double y1, double x2, double y2, std::string_view colour);
  /// Fills a path; `stroke` draws it as a line of a width.
  void fill(std::string_view path, std::string_view colour, std::string_view more = {});
  void stroke(std::string_view path, std::string_view colour, double width, std::string_view more = {});
  std::string end();

 private:
  std::ostringstream out_;
};

// ---- SVG text ------------------------------------------------------------------------------------------

/// Returns a text for XML: markup is escaped, control characters become spaces.
std::string escaped(std::string_view text) {
  std::string s;
  for (const char c : text) {
    switch (c) {
      case '<': s += "&lt;"; break;
      case '>': s += "&gt;"; break;
      case '&': s += "&amp;"; break;
      case '"': s += "&quot;"; break;
      default: s += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML cannot represent most of them
    }
  }
  return s;
}

/// Returns a stream that writes 0.5 whatever the program's locale.
std::ostringstream number_stream() {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  return s;
}

/// Returns the approximate width of a text in a font of 12 pixels: fonts differ.
double width_of(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };  // of a UTF-8 character
  return 6.7 * static_cast<double>(std::ranges::count_if(text, begins));
}

Svg::Svg(const char* who, int width, int height) : out_(number_stream()) {
  if (width < 200 || height < 150)
    throw ValueError(std::string(who) + ": the size must be at least 200 x 150, got " + std::to_string(width) + " x " +
                     std::to_string(height));
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
       << "\" viewBox=\"0 0 " << width << ' ' << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
       << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
}

void Svg::text(double x, double y, const char* anchor, std::string_view text, std::string_view more) {
  if (text.empty()) return;
  out_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << '"';
  if (more.find("fill=") == std::string_view::npos) out_ << " fill=\"#333\"";
  out_ << more << '>' << escaped(text) << "</text>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view colour) {
  out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\"" << colour
       << "\"/>\n";
}

void Svg::fill(std::string_view path, std::string_view colour, std::string_view more) {
  out_ << "<path d=\"" << path << "\" fill=\"" << colour << '"' << more << "/>\n";
}

void Svg::stroke(std::string_view path, std::string_view colour, double width, std::string_view more) {
  out_ << "<path d=\"" << path << "\" fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"" << width
       << "\" stroke-linecap=\"round\" stroke-linejoin=\"round\"" << more << "/>\n";
}

std::string Svg::end() { return out_.str() + "</svg>\n"; }

}  // namespace

}  // namespace ferrite::train::detail

// ---- line charts ---------------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

constexpr const char* kColours[] = {"#1f6feb", "#d1495b", "#2a9d54", "#8854d0", "#e08e0b", "#16808d"};
constexpr double kLeft = 64, kRight = 24, kTop = 40, kBottom = 52, kLegendRow = 20;

/// Returns whether |v| is at most 1e300: beyond, the difference of two values may overflow.
bool drawable(double v) { return std::fabs(v) <= 1e300; }

/// The range of an axis, widened to multiples of a round step: 1, 2 or 5 times a power of ten.
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

/// Returns the scale over the values of all series. Whole-numbered `places`, as epochs, have no ticks between them.
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

  /// Writes rows of names below the title, so that none lies on a curve.
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

  /// Fills the band of a series, piece by piece between points that cannot be drawn.
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

// ---- heat maps -----------------------------------------------------------------------------------------

namespace {

constexpr int kLevels = 64;
constexpr double kMargin = 24;  // at the left, right and bottom; at the top it is kTop

/// Returns the colour of a level, from white over light blue and blue to dark blue; lightness falls evenly.
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
    left_ = kMargin + (o.y_label.empty() ? 0 : 18) + widest(o.rows) + (o.rows.empty() ? 0 : 8);
    // Names that are wider than their columns are turned upright.
    upright_ = widest(o.columns) > cell_ - 4;
    below_ = o.columns.empty() ? 0 : upright_ ? widest(o.columns) + 10 : 20;
    scale_ = o.scale
                 ? 30 + 14 + 8 + std::max(detail::width_of(short_number(low_)), detail::width_of(short_number(high_)))
                 : 0;
  }

  std::string text() {
    const double inner = static_cast<double>(columns_ * cell_), high = static_cast<double>(rows_ * cell_);
    const double needed = std::max(left_ + inner + scale_ + kMargin, detail::width_of(o_.title) * 1.25 + 16);
    const double width = std::max(200.0, needed);
    left_ += (width - (left_ + inner + scale_ + kMargin)) / 2;  // centred if the title is wider
    const double height = std::max(150.0, kTop + high + below_ + (o_.x_label.empty() ? 0 : 20) + kMargin - 8);
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

  /// Returns the colour level of a value; -1 if it is not finite.
  int level(double v) const {
    if (!std::isfinite(v)) return -1;
    if (!(high_ > low_)) return v > high_ ? kLevels - 1 : 0;
    const double share = std::clamp(v / (high_ - low_) - low_ / (high_ - low_), 0.0, 1.0);
    return static_cast<int>(std::lround(share * (kLevels - 1)));
  }
  double value(std::int64_t row, std::int64_t column) const {
    return v_[static_cast<std::size_t>(row * columns_ + column)];
  }

  /// Draws the cells: each run of one colour is a rectangle, and each colour a path. White cells are the background.
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
      // Each box reaches to the bottom, so that no seams are visible.
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

// ---- grids of images -----------------------------------------------------------------------------------

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
