/// Any bytes are refused with an IoError, or parsed as a table that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/csv.h"

namespace {

namespace io = ferrite::io;
using Columns = std::vector<std::vector<std::string>>;

Columns columns_of(const io::CsvTable& table) {
  Columns columns;
  for (std::int64_t i = 0; i < table.columns(); ++i) columns.push_back(table.text(std::to_string(i)));
  return columns;
}

/// Checks that a table is the same when written and read again. Any exception here ends the program.
void check_round_trip(const io::CsvTable& table) noexcept {
  const Columns columns = columns_of(table);
  const std::vector<std::string> names(columns.size(), "n");
  const std::string text = io::serialize_csv(names, {columns.begin(), columns.end()});
  const io::CsvTable back = io::parse_csv(text);
  if (back.names() != names || back.rows() != table.rows()) std::abort();
  for (std::int64_t i = 0; i < back.columns(); ++i) {
    const io::CsvTable bare = io::parse_csv(text, "csv", {.header = false});
    auto with_name = bare.text(std::to_string(i));
    with_name.erase(with_name.begin());
    if (with_name != columns[static_cast<std::size_t>(i)]) std::abort();
  }
}

/// Reads each column as numbers, which may be refused.
void read_numbers(const io::CsvTable& table) {
  for (const std::string& name : table.names()) {
    for (const ferrite::Dtype dtype : {ferrite::Dtype::f32, ferrite::Dtype::i64}) {
      try {
        if (table.column(name, dtype).shape()[0] != table.rows()) std::abort();
      } catch (const ferrite::IoError&) {
        continue;
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const io::CsvTable table = io::parse_csv(text, "csv", {.header = false, .missing = io::Missing::nan});
    if (table.columns() > 20) return 0;
    check_round_trip(table);
    read_numbers(table);
    read_numbers(io::parse_csv(text));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
