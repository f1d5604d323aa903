#pragma once
/// SVG text: what charts and heat maps have in common.
#include <sstream>
#include <string>
#include <string_view>

namespace ferrite::train::detail {

/// Text that XML may hold: markup is escaped, control characters become spaces.
std::string escaped(std::string_view text);

/// A picture that is written element by element. Numbers are written in the classic locale, with six digits.
class Svg {
 public:
  /// Throws ValueError, naming `who`, for a size below 200 x 150.
  Svg(const char* who, int width, int height);

  /// Nothing for an empty text. `anchor` is start, middle or end; `more` further attributes.
  void text(double x, double y, const char* anchor, std::string_view text, std::string_view more = {});
  void line(double x1, double y1, double x2, double y2, std::string_view colour);
  /// A path that is filled, or drawn as a line of a width.
  void fill(std::string_view path, std::string_view colour, std::string_view more = {});
  void stroke(std::string_view path, std::string_view colour, double width, std::string_view more = {});
  std::string end();

 private:
  std::ostringstream out_;
};

/// A stream that writes 0.5 whatever the program's locale says.
std::ostringstream number_stream();

/// About how wide a text of 12 pixels is: fonts differ.
double width_of(std::string_view text);

}  // namespace ferrite::train::detail
