#pragma once
/// Reading CSV files by columns, and writing them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ferrite/io/missing.h"
#include "ferrite/tensor/tensor.h"

/// Comma-separated values as RFC 4180 describes them (rfc-editor.org/rfc/rfc4180): one record a line, fields between
/// delimiters; a field in quotes may hold delimiters, line breaks and quotes, these doubled. Lines end in LF or CR LF.
/// A UTF-8 byte order mark at the front is skipped, and so are empty lines. Numbers have a decimal point, whatever the
/// locale.
namespace ferrite::io {

namespace detail {
struct CsvCells;
}  // namespace detail

/// Options for reading CSV: the delimiter, the header, and what a missing number is.
struct CsvOptions {
  char delimiter = ',';  ///< character between fields; must not be a letter, digit, sign, point, quote or line break
  bool header = true;    ///< whether the first line holds the names of the columns; else they are "0", "1", ...
  Missing missing = Missing::refused;  ///< what becomes of a missing number
  /// Texts that mark a missing number, compared after blanks around a field are cut off. A NaN in any other spelling
  /// also counts as missing.
  std::vector<std::string> missing_texts = {"", "NA", "nan", "NaN"};
};

/// A column of texts as class numbers, with the text of each class.
struct Categories {
  Tensor codes;                         ///< i64 [N], positions in `vocabulary`
  std::vector<std::string> vocabulary;  ///< the distinct texts, sorted by their bytes
};

/// A table whose fields stay text until a column is asked for. A cheap handle: copies share the table.
///
/// Columns are found by name. Every function that takes a name throws IoError if no column has it (the message suggests
/// the nearest name) or if several do.
class CsvTable {
 public:
  explicit CsvTable(std::shared_ptr<const detail::CsvCells> cells);

  /// Returns N, the number of records, without the header.
  std::int64_t rows() const;
  /// Returns D, the number of columns.
  std::int64_t columns() const;
  /// Returns the names of all columns, in the order of the file.
  std::vector<std::string> names() const;

  /// Returns all columns as numbers, [N, D] of f32, f64 or i64.
  ///
  /// Blanks around a number and a leading plus are accepted. f32 is the nearest double, rounded, as in NumPy and
  /// pandas; a number too small for a double is 0. i64 takes integers only, exactly. Throws IoError with line, column
  /// and text for a field that is not a number, a number that is too large for the dtype, and a missing one, unless
  /// `CsvOptions::missing` says NaN and floats are asked for; DtypeError for other dtypes.
  Tensor numbers(Dtype dtype = Dtype::f32) const;
  /// Returns the named columns as numbers, [N, D] in the order of `names`. Throws as the other form.
  Tensor numbers(const std::vector<std::string>& names, Dtype dtype = Dtype::f32) const;
  /// Returns one column as numbers, [N]. Throws as `numbers`.
  Tensor column(std::string_view name, Dtype dtype = Dtype::f32) const;

  /// Returns the N fields of one column as text, quotes removed.
  std::vector<std::string> text(std::string_view name) const;
  /// Returns one column as classes: the sorted list of its texts, and the position in it of every record's text.
  Categories categories(std::string_view name) const;
  /// Returns the position of every record's text in a given list, such as that of the training data: i64 [N]. Throws
  /// IoError with the line for a text that is not in the list, ValueError for a list that holds a text twice.
  Tensor codes(std::string_view name, std::span<const std::string> vocabulary) const;

 private:
  std::shared_ptr<const detail::CsvCells> cells_;
};

/// Reads a whole CSV file. Throws ValueError for an unusable delimiter, and IoError, its message beginning with the
/// path and naming the line, for an empty file, a record whose number of fields differs from the first's (the lines of
/// both are named), a quote that is not closed, a quote inside a field without quotes, text after a closing quote, a
/// carriage return without a line feed, NUL bytes and UTF-16. Memory: the bytes of the file, and eight bytes a field.
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// Parses CSV text in memory, which is copied. Throws as read_csv; messages begin with `where`.
CsvTable parse_csv(std::string_view text, std::string_view where = "csv", const CsvOptions& options = {});

/// A column to write: a tensor [N] of f32, f64, i64, i32 or bool (0 and 1), or one [N, D] for D columns; or N texts.
using CsvColumn = std::variant<Tensor, std::vector<std::string>>;

/// Returns a CSV file as text: a header and N records, with LF as line ending. Numbers have the fewest digits that read
/// back as the same number (NaN as "nan", infinities as "inf"); texts are quoted where they need it.
///
/// Throws ValueError for an unusable delimiter, ShapeError when there are no columns, their lengths differ or their
/// number is not that of the names, DtypeError for other dtypes, IoError for a NUL in a text.
std::string serialize_csv(const std::vector<std::string>& names, const std::vector<CsvColumn>& columns,
                          char delimiter = ',');

/// Writes a CSV file; an old one is replaced as a whole or not at all (AtomicFile). Throws as serialize_csv, and
/// IoError where the file cannot be written.
void write_csv(const std::filesystem::path& path, const std::vector<std::string>& names,
               const std::vector<CsvColumn>& columns, char delimiter = ',');

}  // namespace ferrite::io
