/// Splits the text of a CSV file into its fields, in place.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ferrite/io/csv/csv_cells.h"
#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

constexpr char kQuote = '"';

/// One pass over the text. What was read is written again in front of what is still to be read.
class Splitter {
 public:
  explicit Splitter(CsvCells& cells)
      : cells_(cells),
        text_(reinterpret_cast<char*>(cells.text.span().data())),
        size_(cells.text.span().size()),
        delimiter_(cells.options.delimiter) {}

  void split() {
    skip_mark();
    check_bytes();
    // No more fields than delimiters and line breaks: memory is taken once.
    const auto ends = std::count_if(text_ + at_, text_ + size_, [&](char c) { return c == delimiter_ || c == '\n'; });
    cells_.begins.reserve(static_cast<std::size_t>(ends) + 2);
    while (at_ < size_) {
      if (!skip_empty_line()) record();
    }
    if (cells_.begins.empty()) refuse(cells_.where, "the file holds no table: it is empty");
    cells_.begins.push_back(out_);
  }

 private:
  [[noreturn]] void refuse_line(std::uint64_t line, const std::string& what) const {
    refuse(cells_.where, "line " + std::to_string(line) + ": " + what);
  }

  void skip_mark() {
    const std::string_view front(text_, std::min<std::size_t>(size_, 3));
    if (front.starts_with("\xff\xfe") || front.starts_with("\xfe\xff"))
      refuse(cells_.where, "the file is UTF-16: it begins with " + quote(front.substr(0, 2)) + "; save it as UTF-8");
    if (front == "\xef\xbb\xbf") at_ = 3;
  }
  void check_bytes() const {
    const void* nul = size_ > 0 ? std::memchr(text_, 0, size_) : nullptr;
    if (nul != nullptr)
      refuse(cells_.where, "a byte is NUL, which text does not hold: at position " +
                               std::to_string(static_cast<const char*>(nul) - text_) + "; save the table as UTF-8");
  }

  bool skip_empty_line() {
    const std::size_t end = at_ + (text_[at_] == '\r' ? 1 : 0);
    if (end >= size_ || text_[end] != '\n') return false;
    at_ = end + 1;
    ++line_;
    return true;
  }

  void record() {
    const std::uint64_t number = records_++, line = line_;
    if (line != next_line_) cells_.jumps.emplace_back(number, line);
    std::uint64_t fields = 0;
    do {
      cells_.begins.push_back(out_);
      ++fields;
      if (at_ < size_ && text_[at_] == kQuote)
        quoted();
      else
        plain();
      ++out_;  // a place for what ends the field
    } while (ended_by_delimiter());
    next_line_ = line + 1;
    if (number == 0) {
      cells_.columns = fields;
      first_line_ = line;
    } else if (fields != cells_.columns) {
      refuse_line(line, "another number of fields than in line " + std::to_string(first_line_) + ": " +
                            std::to_string(fields) + ", there " + std::to_string(cells_.columns));
    }
  }

  bool ended_by_delimiter() {
    if (at_ == size_) return false;
    if (text_[at_] == delimiter_) {
      ++at_;
      return true;
    }
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    return false;
  }

  /// At the end of a field: of the text, of the line, or before a delimiter.
  bool at_end() const {
    if (at_ == size_) return true;
    const char c = text_[at_];
    return c == delimiter_ || c == '\n' || (c == '\r' && at_ + 1 < size_ && text_[at_ + 1] == '\n');
  }

  void plain() {
    move_until([d = delimiter_](char c) { return c == d || c == kQuote || c == '\n' || c == '\r'; });
    if (at_end()) return;
    if (text_[at_] == kQuote)
      refuse_line(line_, "a quote inside a field that does not begin with one: " + quote(seen()) +
                             "; enclose the field in quotes and double those inside");
    refuse_line(line_, "a carriage return without a line feed: " + quote(seen()));
  }

  void quoted() {
    const std::uint64_t line = line_;
    ++at_;
    for (;;) {
      move_until([](char c) { return c == kQuote || c == '\n'; });
      if (at_ == size_) refuse_line(line, "a quote is not closed: " + quote(seen()));
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == kQuote && (++at_ == size_ || text_[at_] != kQuote)) break;
      text_[out_++] = text_[at_++];
    }
    if (!at_end()) refuse_line(line_, "text behind a closing quote: " + quote(seen() + text_[at_]));
  }

  /// Moves what is in front of the next byte that stops to the end of the field.
  void move_until(const auto& stops) {
    const char* const begin = text_ + at_;
    const char* const end = std::find_if(begin, static_cast<const char*>(text_) + size_, stops);
    const auto n = static_cast<std::size_t>(end - begin);
    std::memmove(text_ + out_, begin, n);
    at_ += n;
    out_ += n;
  }

  /// What the field has so far, or its beginning.
  std::string seen() const {
    const std::uint64_t begin = cells_.begins.back();
    return {text_ + begin, static_cast<std::size_t>(std::min<std::uint64_t>(out_ - begin, 200))};
  }

  CsvCells& cells_;
  char* text_;
  std::size_t size_;
  char delimiter_;
  std::size_t at_ = 0;                      // what is read next
  std::uint64_t out_ = 0;                   // where the next byte of a field goes, never behind at_
  std::uint64_t line_ = 1, next_line_ = 1;  // where we are; where a record without a jump would begin
  std::uint64_t records_ = 0, first_line_ = 1;
};

void sort_names(CsvCells& cells) {
  cells.by_name.resize(cells.columns);
  std::iota(cells.by_name.begin(), cells.by_name.end(), std::uint64_t{0});
  std::ranges::stable_sort(cells.by_name, [&](auto a, auto b) { return cells.field(a) < cells.field(b); });
}

}  // namespace

void check_delimiter(char delimiter, std::string_view where) {
  const auto between = [&](char first, char last) { return delimiter >= first && delimiter <= last; };
  if (between('0', '9') || between('a', 'z') || between('A', 'Z') ||
      std::string_view("+-.\"\n\r\0", 7).find(delimiter) != std::string_view::npos)
    throw ValueError(std::string(where) +
                     ": the delimiter cannot be part of a number, a letter, a quote, a line break " +
                     "or NUL: " + quote(std::string_view(&delimiter, 1)));
}

CsvCells split_csv(Block text, std::string where, const CsvOptions& options) {
  check_delimiter(options.delimiter, where);
  CsvCells cells;
  cells.where = std::move(where);
  cells.options = options;
  cells.text = std::move(text);
  Splitter(cells).split();
  if (options.header) {
    cells.first = cells.columns;
    sort_names(cells);
  }
  return cells;
}

}  // namespace ferrite::io::detail
