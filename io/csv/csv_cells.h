#pragma once
/// The fields of a CSV file, split but not yet read as numbers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/io/csv.h"
#include "ferrite/io/file/file_block.h"

namespace ferrite::io::detail {

/// Splitting moves the text of all fields together, quotes removed, one byte between two fields; what is left is one
/// position a field.
struct CsvCells {
  std::string where;
  CsvOptions options;
  Block text;
  std::vector<std::uint64_t> begins;  ///< of each field; behind the last one, where another would begin
  std::uint64_t columns = 0;
  std::uint64_t first = 0;  ///< fields of the header: 0 or `columns`
  /// Records that do not stand in the line after the one before: the record, and its line.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> jumps;
  std::vector<std::uint64_t> by_name;  ///< columns in the order of their names

  std::uint64_t records() const { return (begins.size() - 1) / columns; }
  std::uint64_t rows() const { return (begins.size() - 1 - first) / columns; }
  /// Field i of all, those of the header among them.
  std::string_view field(std::uint64_t i) const;
  std::string_view at(std::uint64_t row, std::uint64_t column) const { return field(first + row * columns + column); }
  /// A column's name: that in the header, or its number.
  std::string name(std::uint64_t column) const;
  /// The line that field i begins in, counted from 1 as editors do.
  std::uint64_t line(std::uint64_t i) const;
  /// "line 3, column 'age'": where a field stands in the file.
  std::string place(std::uint64_t row, std::uint64_t column) const;
  /// Throws IoError.
  std::uint64_t find(std::string_view name) const;
};

/// Throws ValueError for a delimiter that is a letter, a quote, a line break, NUL or part of a number.
void check_delimiter(char delimiter, std::string_view where);

/// Takes a file apart. Throws IoError.
CsvCells split_csv(Block text, std::string where, const CsvOptions& options);

}  // namespace ferrite::io::detail
