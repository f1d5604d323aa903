/// Reads the header of a .ts file.
#include "ferrite/io/time_series/time_series_header.h"

#include <algorithm>
#include <set>

#include "ferrite/io/detail/decimal.h"
#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

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

/// One line of the header.
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

/// False at the line behind which the data stand.
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

}  // namespace

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

}  // namespace ferrite::io::detail
