/// Writes CSV tables: numbers by their shortest digits, texts quoted where they need it.
#include <cstdint>
#include <span>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/csv.h"
#include "ferrite/io/csv/csv_cells.h"
#include "ferrite/io/detail/decimal.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

constexpr std::string_view kWhere = "write_csv";

std::string where(std::string_view what) { return std::string(kWhere) + ": " + std::string(what); }

/// Dense, and of a dtype that has digits.
Tensor writable(const Tensor& x) {
  if (!x.defined() || x.is_abstract())
    detail::refuse(kWhere, "a column has no values: it is undefined or being traced");
  if (x.rank() != 1 && x.rank() != 2)
    throw ShapeError(where("a column must be [N], or [N, D] for D columns, got " + x.shape().str()));
  if (is_storage_only(x.dtype()))
    throw DtypeError(where("a column must be f32, f64, i64, i32 or bool, got " + x.spec().str() + "; cast it"));
  return contiguous(x.unmarked());
}

/// Columns that stand side by side: texts, or a dense tensor.
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

/// How many columns there are. Throws ShapeError.
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
  /// An empty line is no record, and a byte order mark at the front no text.
  bool needs_quotes(std::string_view field) const {
    const char special[] = {delimiter_, '"', '\n', '\r'};
    return field.find_first_of(std::string_view(special, sizeof(special))) != std::string_view::npos ||
           (field.empty() && single_) || (out_.empty() && field.starts_with("\xef"));
  }

  std::string& out_;
  char delimiter_;
  bool single_;  // one column
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
