/// Reads and writes tables of separated values: lines and cells, columns and their types.
#include "ferrite/io/csv.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {

/// The fields of a table. Splitting moves the text of all fields together, quotes removed, with one byte between two
/// fields, so that only one position is kept for each field.
struct CsvCells {
  std::string where;
  CsvOptions options;
  Block text;
  std::vector<std::uint64_t> begins;  ///< position of each field, then where another one would begin
  std::uint64_t columns = 0;
  std::uint64_t first = 0;  ///< number of fields in the header: 0 or `columns`
  /// The records, with their lines, that do not begin in the line after that of the record before.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> jumps;
  std::vector<std::uint64_t> by_name;  ///< columns sorted by their names

  std::uint64_t records() const { return (begins.size() - 1) / columns; }
  std::uint64_t rows() const { return (begins.size() - 1 - first) / columns; }
  /// Returns field i of all fields, including those of the header.
  std::string_view field(std::uint64_t i) const;
  std::string_view at(std::uint64_t row, std::uint64_t column) const { return field(first + row * columns + column); }
  /// Returns a column's name in the header, or its number.
  std::string name(std::uint64_t column) const;
  /// Returns the line in which field i begins, counted from 1 as in editors.
  std::uint64_t line(std::uint64_t i) const;
  /// Returns the place of a field in the file as text, "line 3, column 'age'".
  std::string place(std::uint64_t row, std::uint64_t column) const;
  /// Returns the number of a column. Throws IoError unless exactly one has the name.
  std::uint64_t find(std::string_view name) const;
};

// ---- lines and cells -----------------------------------------------------------------------------------

namespace {

constexpr char kQuote = '"';

/// Splits a text in one pass. Fields are written back to the front of the text, over what has been read.
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
    // There are no more fields than delimiters and line breaks, so memory is allocated once.
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
      ++out_;  // one byte between two fields
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

  /// Returns whether a field ends here: at the end of the text or line, or before a delimiter.
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
    if (!at_end()) refuse_line(line_, "text after a closing quote: " + quote(seen() + text_[at_]));
  }

  /// Moves the bytes up to the next one for which `stops` holds to the end of the field.
  void move_until(const auto& stops) {
    const char* const begin = text_ + at_;
    const char* const end = std::find_if(begin, static_cast<const char*>(text_) + size_, stops);
    const auto n = static_cast<std::size_t>(end - begin);
    std::memmove(text_ + out_, begin, n);
    at_ += n;
    out_ += n;
  }

  /// Returns the text of the field so far, or its beginning.
  std::string seen() const {
    const std::uint64_t begin = cells_.begins.back();
    return {text_ + begin, static_cast<std::size_t>(std::min<std::uint64_t>(out_ - begin, 200))};
  }

  CsvCells& cells_;
  char* text_;
  std::size_t size_;
  char delimiter_;
  std::size_t at_ = 0;                      // position that is read next
  std::uint64_t out_ = 0;                   // position where the next byte of a field goes, never beyond at_
  std::uint64_t line_ = 1, next_line_ = 1;  // present line; line of the next record without a jump
  std::uint64_t records_ = 0, first_line_ = 1;
};

void sort_names(CsvCells& cells) {
  cells.by_name.resize(cells.columns);
  std::iota(cells.by_name.begin(), cells.by_name.end(), std::uint64_t{0});
  std::ranges::stable_sort(cells.by_name, [&](auto a, auto b) { return cells.field(a) < cells.field(b); });
}

/// Throws ValueError for a delimiter that is a letter, a quote, a line break, NUL or part of a number.
void check_delimiter(char delimiter, std::string_view where) {
  const auto between = [&](char first, char last) { return delimiter >= first && delimiter <= last; };
  if (between('0', '9') || between('a', 'z') || between('A', 'Z') ||
      std::string_view("+-.\"\n\r\0", 7).find(delimiter) != std::string_view::npos)
    throw ValueError(std::string(where) +
                     ": the delimiter cannot be part of a number, a letter, a quote, a line break " +
                     "or NUL: " + quote(std::string_view(&delimiter, 1)));
}

/// Splits a file into fields. Throws IoError.
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

// ---- cells of columns ----------------------------------------------------------------------------------

constexpr std::uint64_t kShownNames = 2000;  // names among which the nearest one is sought

std::string unknown(const CsvCells& cells, std::string_view name) {
  std::string what = "no column has the name " + quote(name);
  std::vector<std::string> numbers;  // names of columns without a header
  std::vector<std::string_view> names;
  const std::uint64_t most = std::min(cells.columns, kShownNames);
  for (std::uint64_t i = 0; cells.first == 0 && i < most; ++i) numbers.push_back(cells.name(i));
  for (std::uint64_t i = 0; i < most; ++i)
    names.push_back(cells.first == 0 ? std::string_view(numbers[i]) : cells.field(i));
  what += ": there are " + counted(cells.columns, "column");
  for (std::size_t i = 0; i < names.size() && i < 5; ++i) what += (i == 0 ? ", " : " ") + quote(names[i]);
  if (const std::string_view near = nearest(name, names); !near.empty()) return what + "; did you mean " + quote(near);
  if (cells.columns > 1 || names[0].find_first_of(";\t|") == std::string_view::npos) return what;
  return what + "; is another byte the delimiter (CsvOptions::delimiter)";
}

}  // namespace

std::string_view CsvCells::field(std::uint64_t i) const {
  const std::uint64_t begin = begins[i], end = begins[i + 1] - 1;
  return {reinterpret_cast<const char*>(text.span().data()) + begin, static_cast<std::size_t>(end - begin)};
}

std::string CsvCells::name(std::uint64_t column) const {
  return first > 0 ? std::string(field(column)) : std::to_string(column);
}

std::uint64_t CsvCells::line(std::uint64_t i) const {
  const std::uint64_t record = i / columns;
  const auto after = std::ranges::upper_bound(jumps, record, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  std::uint64_t line = after == jumps.begin() ? record + 1 : record - after[-1].first + after[-1].second;
  for (std::uint64_t k = record * columns; k < i; ++k)
    line += static_cast<std::uint64_t>(std::ranges::count(field(k), '\n'));
  return line;
}

std::string CsvCells::place(std::uint64_t row, std::uint64_t column) const {
  return "line " + std::to_string(line(first + row * columns + column)) + ", column " + quote(name(column));
}

std::uint64_t CsvCells::find(std::string_view wanted) const {
  if (first == 0) {
    const Decimal<std::int64_t> number = parse_integer(wanted);
    const auto column = static_cast<std::uint64_t>(number.value);
    if (column < columns && std::to_string(column) == wanted) return column;
    refuse(where, unknown(*this, wanted));
  }
  const auto named = [&](std::uint64_t i) { return field(i); };
  const auto same = std::ranges::lower_bound(by_name, wanted, {}, named);
  const auto count = std::ranges::upper_bound(by_name, wanted, {}, named) - same;
  if (count == 0) refuse(where, unknown(*this, wanted));
  if (count > 1)
    refuse(where, counted(static_cast<std::size_t>(count), "column") + " have the name " + quote(wanted) +
                      ": the first ones are " + std::to_string(same[0] + 1) + " and " + std::to_string(same[1] + 1) +
                      "; rename one of them, or read without the header by CsvOptions::header");
  return *same;
}

}  // namespace ferrite::io::detail

// ---- tables --------------------------------------------------------------------------------------------

namespace ferrite::io {

using detail::CsvCells;
using detail::DecimalKind;
using detail::quote;
using detail::refuse;

namespace {

/// Reads fields as numbers of type T.
template <class T>
class Numbers {
 public:
  explicit Numbers(const CsvCells& cells) : cells_(cells) {}

  T at(std::uint64_t row, std::uint64_t column) const {
    const std::string_view text = detail::trimmed(cells_.at(row, column));
    if (std::ranges::find(cells_.options.missing_texts, text) != cells_.options.missing_texts.end())
      return missing(row, column);
    if constexpr (std::is_same_v<T, std::int64_t>) {
      const auto number = detail::parse_integer(text);
      check(number.kind, row, column, "not an integer", "column(name, Dtype::f64) reads any number");
      return number.value;
    } else {
      const auto number = detail::parse_double(text);
      check(number.kind, row, column, "not a number", "text(name) and categories(name) read any text");
      if (std::isnan(number.value)) return missing(row, column);
      const T value = static_cast<T>(number.value);
      if (std::isinf(value) && !std::isinf(number.value)) check(DecimalKind::too_large, row, column, {}, {});
      return value;
    }
  }

 private:
  [[noreturn]] void refuse_field(std::uint64_t row, std::uint64_t column, const std::string& what,
                                 std::string_view advice) const {
    const std::string text = quote(cells_.at(row, column));
    refuse(cells_.where, cells_.place(row, column) + ": " + what + ": " + text +
                             (advice.empty() ? std::string() : "; " + std::string(advice)));
  }

  void check(DecimalKind kind, std::uint64_t row, std::uint64_t column, std::string_view malformed,
             std::string_view advice) const {
    if (kind == DecimalKind::malformed) refuse_field(row, column, std::string(malformed), advice);
    if (kind == DecimalKind::too_large)
      refuse_field(row, column, "too large for " + std::string(name_of(dtype_of<T>)), {});
  }

  T missing(std::uint64_t row, std::uint64_t column) const {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      refuse_field(row, column, "an integer is missing", "column(name, Dtype::f64) with Missing::nan reads a NaN");
    } else {
      if (cells_.options.missing == Missing::refused)
        refuse_field(row, column, "a number is missing", "CsvOptions::missing = Missing::nan reads a NaN");
      return std::numeric_limits<T>::quiet_NaN();
    }
  }

  const CsvCells& cells_;
};

template <class T>
Tensor numbers_of(const CsvCells& cells, const Shape& shape, std::span<const std::uint64_t> columns) {
  const Numbers<T> numbers(cells);
  return Tensor::build<T>(shape, [&](std::span<T> out) {
    auto next = out.begin();
    for (std::uint64_t row = 0; row < cells.rows(); ++row)
      for (const std::uint64_t column : columns) *next++ = numbers.at(row, column);
  });
}

Tensor numbers_of(const CsvCells& cells, const Shape& shape, std::span<const std::uint64_t> columns, Dtype dtype) {
  if (dtype == Dtype::f32) return numbers_of<float>(cells, shape, columns);
  if (dtype == Dtype::f64) return numbers_of<double>(cells, shape, columns);
  if (dtype == Dtype::i64) return numbers_of<std::int64_t>(cells, shape, columns);
  throw DtypeError(cells.where + ": numbers are read as f32, f64 or i64, got " + std::string(name_of(dtype)) +
                   "; cast the tensor");
}

std::int64_t signed_of(std::uint64_t n) { return static_cast<std::int64_t>(n); }

using Positions = std::unordered_map<std::string_view, std::int64_t>;

Positions positions_of(std::span<const std::string> vocabulary) {
  Positions positions;
  for (const std::string& text : vocabulary)
    if (!positions.emplace(text, static_cast<std::int64_t>(positions.size())).second)
      throw ValueError("codes: the vocabulary holds a text twice: " + quote(text));
  return positions;
}

Tensor codes_of(const CsvCells& cells, std::uint64_t column, const Positions& positions) {
  return Tensor::build<std::int64_t>({signed_of(cells.rows())}, [&](std::span<std::int64_t> out) {
    for (std::uint64_t row = 0; row < out.size(); ++row) {
      const auto found = positions.find(cells.at(row, column));
      if (found == positions.end())
        refuse(cells.where, cells.place(row, column) + ": not in the vocabulary of " +
                                detail::counted(positions.size(), "text") + ": " + quote(cells.at(row, column)));
      out[row] = found->second;
    }
  });
}

CsvTable table_of(detail::Block text, std::string where, const CsvOptions& options) {
  return CsvTable(std::make_shared<const CsvCells>(detail::split_csv(std::move(text), std::move(where), options)));
}

}  // namespace

CsvTable::CsvTable(std::shared_ptr<const CsvCells> cells) : cells_(std::move(cells)) {}

std::int64_t CsvTable::rows() const { return signed_of(cells_->rows()); }
std::int64_t CsvTable::columns() const { return signed_of(cells_->columns); }

std::vector<std::string> CsvTable::names() const {
  std::vector<std::string> all;
  all.reserve(cells_->columns);
  for (std::uint64_t i = 0; i < cells_->columns; ++i) all.push_back(cells_->name(i));
  return all;
}

Tensor CsvTable::numbers(Dtype dtype) const {
  std::vector<std::uint64_t> all(cells_->columns);
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = i;
  return numbers_of(*cells_, {rows(), columns()}, all, dtype);
}

Tensor CsvTable::numbers(const std::vector<std::string>& names, Dtype dtype) const {
  std::vector<std::uint64_t> some;
  for (const std::string& name : names) some.push_back(cells_->find(name));
  return numbers_of(*cells_, {rows(), static_cast<std::int64_t>(names.size())}, some, dtype);
}

Tensor CsvTable::column(std::string_view name, Dtype dtype) const {
  const std::uint64_t one = cells_->find(name);
  return numbers_of(*cells_, {rows()}, std::span(&one, 1), dtype);
}

std::vector<std::string> CsvTable::text(std::string_view name) const {
  const std::uint64_t column = cells_->find(name);
  std::vector<std::string> all;
  all.reserve(cells_->rows());
  for (std::uint64_t row = 0; row < cells_->rows(); ++row) all.emplace_back(cells_->at(row, column));
  return all;
}

Categories CsvTable::categories(std::string_view name) const {
  const std::uint64_t column = cells_->find(name);
  Positions seen;
  for (std::uint64_t row = 0; row < cells_->rows(); ++row) seen.emplace(cells_->at(row, column), 0);
  std::vector<std::string_view> sorted;
  for (const auto& [text, position] : seen) sorted.push_back(text);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) seen[sorted[i]] = static_cast<std::int64_t>(i);
  return {codes_of(*cells_, column, seen), std::vector<std::string>(sorted.begin(), sorted.end())};
}

Tensor CsvTable::codes(std::string_view name, std::span<const std::string> vocabulary) const {
  return codes_of(*cells_, cells_->find(name), positions_of(vocabulary));
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  detail::check_delimiter(options.delimiter, detail::shown(path));
  detail::WholeFile file = detail::read_whole(path);
  ferrite::detail::log_debug(file.where + ": read " + detail::counted(file.bytes.span().size(), "byte"));
  return table_of(std::move(file.bytes), std::move(file.where), options);
}

CsvTable parse_csv(std::string_view text, std::string_view where, const CsvOptions& options) {
  detail::Block bytes(text.size(), where);
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.span().begin());
  return table_of(std::move(bytes), std::string(where), options);
}

// ---- writing -------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kWhere = "write_csv";

std::string where(std::string_view what) { return std::string(kWhere) + ": " + std::string(what); }

/// Returns x as a dense tensor of a dtype that can be written in digits.
Tensor writable(const Tensor& x) {
  if (!x.defined() || x.is_abstract())
    detail::refuse(kWhere, "a column has no values: it is undefined or being traced");
  if (x.rank() != 1 && x.rank() != 2)
    throw ShapeError(where("a column must be [N], or [N, D] for D columns, got " + x.shape().str()));
  if (is_storage_only(x.dtype()))
    throw DtypeError(where("a column must be f32, f64, i64, i32 or bool, got " + x.spec().str() + "; cast it"));
  return contiguous(x.unmarked());
}

/// Adjacent columns: texts, or a dense tensor.
struct Part {
  const std::vector<std::string>* texts = nullptr;
  Tensor numbers{};

  std::int64_t rows() const { return texts != nullptr ? static_cast<std::int64_t>(texts->size()) : numbers.size(0); }
  std::int64_t width() const { return texts == nullptr && numbers.rank() == 2 ? numbers.size(1) : 1; }
};

std::vector<Part> parts_of(const std::vector<CsvColumn>& columns) {
  std::vector<Part> parts;
  for (const CsvColumn& column : columns) {
    const auto* texts = std::get_if<std::vector<std::string>>(&column);
    parts.push_back(texts != nullptr ? Part{texts} : Part{nullptr, writable(std::get<Tensor>(column))});
  }
  return parts;
}

/// Returns the number of columns. Throws ShapeError where names and columns do not fit.
std::int64_t checked_width(const std::vector<std::string>& names, const std::vector<Part>& parts) {
  std::int64_t width = 0;
  for (const Part& part : parts) {
    if (part.rows() != parts.front().rows())
      throw ShapeError(where("columns have different lengths: " + std::to_string(parts.front().rows()) + " and " +
                             std::to_string(part.rows())));
    width += part.width();
  }
  if (width == 0 || static_cast<std::int64_t>(names.size()) != width)
    throw ShapeError(where("names and columns must be as many, and at least one: " + std::to_string(names.size()) +
                           " and " + std::to_string(width)));
  return width;
}

/// Appends fields and ends lines.
class Lines {
 public:
  Lines(std::string& out, char delimiter, bool single) : out_(out), delimiter_(delimiter), single_(single) {}

  void text(std::string_view field) {
    separate();
    if (field.find('\0') != std::string_view::npos)
      detail::refuse(kWhere, "a text holds a NUL, which no CSV file may: " + detail::quote(field));
    if (!needs_quotes(field)) {
      out_ += field;
      return;
    }
    out_ += '"';
    for (const char c : field) out_.append(c == '"' ? 2 : 1, c);
    out_ += '"';
  }
  template <class T>
  void number(T value) {
    separate();
    if constexpr (std::is_integral_v<T>)
      detail::append_number(out_, static_cast<std::int64_t>(value));
    else
      detail::append_number(out_, value);
  }
  void end() {
    out_ += '\n';
    begun_ = false;
  }

 private:
  void separate() {
    if (begun_) out_ += delimiter_;
    begun_ = true;
  }
  /// Returns whether a field must be quoted, also because an empty line would not be a record and a byte order mark at
  /// the front would not be text.
  bool needs_quotes(std::string_view field) const {
    const char special[] = {delimiter_, '"', '\n', '\r'};
    return field.find_first_of(std::string_view(special, sizeof(special))) != std::string_view::npos ||
           (field.empty() && single_) || (out_.empty() && field.starts_with("\xef"));
  }

  std::string& out_;
  char delimiter_;
  bool single_;  // whether there is only one column
  bool begun_ = false;
};

void append_row(Lines& lines, const Part& part, std::int64_t row) {
  if (part.texts != nullptr) return lines.text((*part.texts)[static_cast<std::size_t>(row)]);
  visit_computed(part.numbers.dtype(), [&]<class T>(T) {
    const T* values = part.numbers.data<T>() + row * part.width();
    for (std::int64_t i = 0; i < part.width(); ++i) lines.number(values[i]);
  });
}

}  // namespace

std::string serialize_csv(const std::vector<std::string>& names, const std::vector<CsvColumn>& columns,
                          char delimiter) {
  detail::check_delimiter(delimiter, kWhere);
  const std::vector<Part> parts = parts_of(columns);
  std::string out;
  Lines lines(out, delimiter, checked_width(names, parts) == 1);
  for (const std::string& name : names) lines.text(name);
  lines.end();
  for (std::int64_t row = 0; row < parts.front().rows(); ++row) {
    for (const Part& part : parts) append_row(lines, part, row);
    lines.end();
  }
  return out;
}

void write_csv(const std::filesystem::path& path, const std::vector<std::string>& names,
               const std::vector<CsvColumn>& columns, char delimiter) {
  const std::string text = serialize_csv(names, columns, delimiter);
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
