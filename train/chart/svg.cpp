/// SVG text: escaping, elements.
#include "ferrite/train/chart/svg.h"

#include <algorithm>
#include <locale>

#include "ferrite/tensor/error.h"

namespace ferrite::train::detail {

std::string escaped(std::string_view text) {
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

std::ostringstream number_stream() {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  return s;
}

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

}  // namespace ferrite::train::detail
