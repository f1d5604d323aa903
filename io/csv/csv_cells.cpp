/// Where the fields of a CSV file stand, and how columns are found.
#include "ferrite/io/csv/csv_cells.h"

#include <algorithm>

#include "ferrite/io/detail/decimal.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/suggest.h"

namespace ferrite::io::detail {
namespace {

constexpr std::uint64_t kShownNames = 2000;  // among which the nearest is sought

std::string unknown(const CsvCells& cells, std::string_view name) {
  std::string what = "no column has the name " + quote(name);
  std::vector<std::string> numbers;  // where there is no header
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
