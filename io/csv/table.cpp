/// Columns of a CSV table as tensors, texts and classes.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ferrite/io/csv/csv_cells.h"
#include "ferrite/io/detail/decimal.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/tensor/log.h"

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

}  // namespace ferrite::io
