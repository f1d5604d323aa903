/// Reads time series of the UEA and UCR archives: the header of a .ts file, and its series.
#include "ferrite/io/time_series.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io::detail {
namespace {

/// Reads a text line by line, without blanks and carriage returns at the ends of lines.
class TextLines {
 public:
  /// Starts before the first line; skips a byte order mark.
  TextLines(std::string_view text, std::string_view where);

  /// Advances to the next line that is not empty. Returns false at the end.
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

// ---- the header ----------------------------------------------------------------------------------------

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// One line of the header, split into words.
class HeaderLine {
 public:
  explicit HeaderLine(const TextLines& lines) : lines_(lines), words_(words_of(lines.line())), key_(lower(words_[0])) {}

  const std::string& key() const { return key_; }
  std::size_t values() const { return words_.size() - 1; }
  std::string_view value(std::size_t i) const { return words_[i + 1]; }

  void read(std::optional<bool>& to, bool alone = true) const {
    if (to) refuse("the header says it twice");
    const std::string word = values() > 0 ? lower(value(0)) : "";
    if ((word != "true" && word != "false") || (alone && values() != 1)) refuse("neither true nor false");
    to = word == "true";
  }
  void read(std::optional<std::uint64_t>& to) const {
    if (to) refuse("the header says it twice");
    const Decimal<std::int64_t> number = values() == 1 ? parse_integer(value(0)) : Decimal<std::int64_t>{};
    if (number.kind != DecimalKind::number || number.value < 1) refuse("not a positive integer");
    to = static_cast<std::uint64_t>(number.value);
  }
  [[noreturn]] void refuse(const std::string& what) const { lines_.refuse_line(what + ": " + quote(lines_.line())); }

 private:
  const TextLines& lines_;
  std::vector<std::string_view> words_;
  std::string key_;
};

void read_classes(const HeaderLine& line, TimeSeriesHeader& header) {
  line.read(header.has_classes, false);
  std::set<std::string_view> seen;
  for (std::size_t i = 1; i < line.values(); ++i) {
    if (!seen.insert(line.value(i)).second) line.refuse("a class is listed twice");
    header.classes.emplace_back(line.value(i));
  }
  if (*header.has_classes == header.classes.empty()) line.refuse("true takes a list of classes, and false none");
}

/// Reads one line of the header. Returns false for `@data`, after which the series follow.
bool read_line(const HeaderLine& line, TimeSeriesHeader& header) {
  const std::string& key = line.key();
  if (key == "@data") {
    if (line.values() > 0) line.refuse("the data begin in the next line");
    return false;
  }
  if (key == "@problemname" && line.values() > 0) header.name = line.value(0);
  if (key == "@timestamps") line.read(header.time_stamps);
  if (key == "@missing") line.read(header.missing);
  if (key == "@univariate") line.read(header.univariate);
  if (key == "@dimension" || key == "@dimensions") line.read(header.dimensions);
  if (key == "@equallength") line.read(header.equal_length);
  if (key == "@serieslength") line.read(header.length);
  if (key == "@targetlabel") line.read(header.has_targets);
  if (key == "@classlabel") read_classes(line, header);
  if (header.time_stamps.value_or(false)) line.refuse("time stamps are not supported");
  return true;
}

void check(const TimeSeriesHeader& header, std::string_view where) {
  if (header.has_classes.value_or(false) && header.has_targets.value_or(false))
    refuse(where, "labels are classes or targets, not both: the header has @classLabel true and @targetLabel true");
  if (header.univariate.value_or(false) && header.dimensions.value_or(1) != 1)
    refuse(where, "univariate series have one dimension, the header says " + std::to_string(*header.dimensions));
}

TextLines::TextLines(std::string_view text, std::string_view where) : rest_(text), where_(where) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

bool TextLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    line_ = trimmed(line_);
    if (!line_.empty()) return true;
  }
  return false;
}

void TextLines::refuse_line(const std::string& what) const {
  refuse(where_, "line " + std::to_string(number_) + ": " + what);
}

/// Reads up to and including the line `@data`. Throws IoError.
TimeSeriesHeader read_time_series_header(TextLines& lines) {
  TimeSeriesHeader header;
  while (lines.next()) {
    if (lines.line().starts_with('#')) continue;
    if (!lines.line().starts_with('@'))
      lines.refuse_line("neither a comment nor part of a header, before '@data': " + quote(lines.line()));
    if (read_line(HeaderLine(lines), header)) continue;
    check(header, lines.where());
    return header;
  }
  refuse(lines.where(), "there are no data: no line is '@data'");
}

}  // namespace

}  // namespace ferrite::io::detail

// ---- the series ----------------------------------------------------------------------------------------

namespace ferrite::io {

using detail::counted;
using detail::Decimal;
using detail::DecimalKind;
using detail::quote;
using detail::TextLines;
using detail::TimeSeriesHeader;

namespace {

/// Removes and returns the text before the next `mark`.
std::string_view cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return front;
}

std::size_t count(std::string_view text, char mark) {
  return static_cast<std::size_t>(std::ranges::count(text, mark)) + 1;
}

class Series {
 public:
  Series(TextLines& lines, const TimeSeriesHeader& header, Missing missing)
      : lines_(lines), header_(header), missing_(missing) {
    for (std::size_t i = 0; i < header.classes.size(); ++i)
      classes_.emplace(header.classes[i], static_cast<std::int64_t>(i));
  }

  /// Adds the series of one line; the numbers of values are compared before memory is allocated for them.
  void add() {
    std::string_view line = lines_.line();
    if (header_.labelled()) line = read_label(line);
    const std::size_t dimensions = count(line, ':'), length = length_of(line);
    check(dimensions, length);
    const std::size_t begin = values_.size();
    values_.resize(begin + dimensions * length);
    for (std::size_t d = 0; d < dimensions; ++d) {
      std::string_view numbers = cut(line, ':');
      for (std::size_t t = 0; t < length; ++t) values_[begin + t * dimensions + d] = number(cut(numbers, ','), d, t);
    }
    lengths_.push_back(static_cast<std::int64_t>(length));
  }

  TimeSeries take() const {
    if (lengths_.empty()) detail::refuse(lines_.where(), "there are no series after '@data'");
    const auto dimensions = static_cast<std::int64_t>(dimensions_);
    const auto n = static_cast<std::int64_t>(lengths_.size());
    TimeSeries result;
    result.name = header_.name;
    result.values = Tensor::from(values_, {static_cast<std::int64_t>(values_.size()) / dimensions, dimensions});
    result.lengths = Tensor::from(lengths_, {n});
    result.classes = header_.classes;
    if (header_.has_classes.value_or(false)) result.labels = Tensor::from(labels_, {n});
    if (header_.has_targets.value_or(false)) result.targets = Tensor::from(targets_, {n});
    return result;
  }

 private:
  /// Reads the label of a line and returns the line without it.
  std::string_view read_label(std::string_view line) {
    const std::size_t at = line.rfind(':');
    if (at == std::string_view::npos) lines_.refuse_line("a series without values or without a label: " + quote(line));
    const std::string_view label = detail::trimmed(line.substr(at + 1));
    if (header_.has_targets.value_or(false)) {
      targets_.push_back(target(label));
    } else {
      const auto found = classes_.find(label);
      if (found == classes_.end()) refuse_label(label);
      labels_.push_back(found->second);
    }
    return line.substr(0, at);
  }

  [[noreturn]] void refuse_label(std::string_view label) const {
    const std::vector<std::string_view> names(header_.classes.begin(), header_.classes.end());
    const std::string_view near = detail::nearest(label, names);
    lines_.refuse_line("a label that is none of the header's " + std::to_string(names.size()) +
                       " classes: " + quote(label) + (near.empty() ? std::string() : "; did you mean " + quote(near)));
  }

  float target(std::string_view text) const {
    const Decimal<double> number = detail::parse_double(text);
    if (number.kind == DecimalKind::malformed || std::isnan(number.value))
      lines_.refuse_line("a target that is not a number: " + quote(text));
    return rounded(number, "target", text);
  }

  float rounded(const Decimal<double>& number, const std::string& what, std::string_view text) const {
    const auto value = static_cast<float>(number.value);
    if (number.kind == DecimalKind::too_large || (std::isinf(value) && !std::isinf(number.value)))
      lines_.refuse_line(what + " too large for f32: " + quote(text));
    return value;
  }

  float number(std::string_view text, std::size_t d, std::size_t t) const {
    text = detail::trimmed(text);
    const Decimal<double> number =
        text == "?" ? Decimal<double>{DecimalKind::number, std::nan("")} : detail::parse_double(text);
    if (number.kind == DecimalKind::number && !std::isnan(number.value) && std::fabs(number.value) < 1e38)
      return static_cast<float>(number.value);
    const std::string place = "dimension " + std::to_string(d + 1) + ", value " + std::to_string(t + 1) + ":";
    if (number.kind == DecimalKind::malformed) lines_.refuse_line(place + " not a number: " + quote(text));
    if (!std::isnan(number.value)) return rounded(number, place, text);
    if (missing_ == Missing::refused)
      lines_.refuse_line(place + " a value is missing: " + quote(text) + "; Missing::nan reads a NaN");
    return std::numeric_limits<float>::quiet_NaN();
  }

  /// Returns the number of values in every dimension of a series.
  std::size_t length_of(std::string_view line) const {
    const std::size_t length = count(cut(line, ':'), ',');
    for (std::size_t d = 2; !line.empty(); ++d)
      if (const std::size_t other = count(cut(line, ':'), ','); other != length)
        lines_.refuse_line("dimensions of different lengths: the first one has " + counted(length, "value") +
                           ", dimension " + std::to_string(d) + " has " + std::to_string(other));
    return length;
  }

  void check(std::size_t dimensions, std::size_t length) {
    if (lengths_.empty()) {
      dimensions_ = header_.univariate.value_or(false) ? 1 : header_.dimensions.value_or(dimensions);
      length_ = header_.length.value_or(length);
    }
    if (dimensions != dimensions_)
      lines_.refuse_line("a series of " + counted(dimensions, "dimension") + ", there are " +
                         std::to_string(dimensions_));
    if (header_.equal_length.value_or(false) && length != length_)
      lines_.refuse_line("series of different lengths where the header says they are equal: " +
                         std::to_string(length_) + " and " + std::to_string(length));
  }

  TextLines& lines_;
  const TimeSeriesHeader& header_;
  Missing missing_;
  std::unordered_map<std::string_view, std::int64_t> classes_{};
  std::uint64_t dimensions_ = 0, length_ = 0;
  std::vector<float> values_{}, targets_{};
  std::vector<std::int64_t> lengths_{}, labels_{};
};

}  // namespace

TimeSeries parse_time_series(std::string_view text, std::string_view where, Missing missing) {
  TextLines lines(text, where);
  const TimeSeriesHeader header = detail::read_time_series_header(lines);
  Series series(lines, header, missing);
  while (lines.next()) series.add();
  return series.take();
}

TimeSeries read_time_series(const std::filesystem::path& path, Missing missing) {
  const detail::WholeFile file = detail::read_whole(path);
  const std::span<const std::byte> bytes = file.bytes.span();
  ferrite::detail::log_debug(file.where + ": read " + counted(bytes.size(), "byte"));
  return parse_time_series({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.where, missing);
}

}  // namespace ferrite::io
