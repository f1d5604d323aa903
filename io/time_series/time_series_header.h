#pragma once
/// The header of a .ts file, and its lines.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferrite::io::detail {

/// A text, line by line, without blanks and carriage returns at the ends of lines.
class TextLines {
 public:
  /// Skips a byte order mark.
  TextLines(std::string_view text, std::string_view where);

  /// Goes to the next line that is not empty; false at the end.
  bool next();
  std::string_view line() const { return line_; }
  /// Throws IoError "<where>: line <number>: <what>".
  [[noreturn]] void refuse_line(const std::string& what) const;
  std::string_view where() const { return where_; }

 private:
  std::string_view rest_, where_, line_;
  std::uint64_t number_ = 0;
};

struct TimeSeriesHeader {
  std::string name;
  std::optional<bool> univariate, equal_length, has_classes, has_targets, time_stamps, missing;
  std::optional<std::uint64_t> dimensions, length;
  std::vector<std::string> classes;

  bool labelled() const { return has_classes.value_or(false) || has_targets.value_or(false); }
};

/// Reads up to the line `@data`, that one included. Throws IoError.
TimeSeriesHeader read_time_series_header(TextLines& lines);

}  // namespace ferrite::io::detail
