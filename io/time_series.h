#pragma once
/// Sets of time series: reading the .ts files of the UEA and UCR archive.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/missing.h"
#include "ferrite/tensor/tensor.h"

/// The .ts format of sktime and aeon (aeon-toolkit.org/en/stable/api_reference/data_format.html), in which
/// timeseriesclassification.com distributes its archive: comments after `#`, a header of lines such as `@dimensions
/// 12`, and after `@data` one series a line, its dimensions separated by colons and their values by commas, the label
/// last.
namespace ferrite::io {

/// N series of D dimensions and different lengths, concatenated. The first three tensors are what train::sequences
/// takes.
struct TimeSeries {
  std::string name{};                  ///< the file's `@problemName`, or empty
  Tensor values{};                     ///< f32 [sum of lengths, D]
  Tensor lengths{};                    ///< i64 [N], at least 1 each
  Tensor labels{};                     ///< i64 [N], positions in `classes`; undefined without `@classLabel true`
  std::vector<std::string> classes{};  ///< the labels, in the order of the header
  Tensor targets{};                    ///< f32 [N], for regression; undefined without `@targetLabel true`
};

/// Parses the text of a .ts file. A missing value is "?" or "NaN"; a missing target is always refused.
///
/// In the header, the case of keys and of the words true and false does not matter; unknown keys are skipped.
/// Throws IoError, its message beginning with `where` and naming the line: a header line that is malformed or comes
/// twice, time stamps, classes and targets together, no `@data`, no series; and of a series: a number of dimensions
/// that is not that of the first one or of the header, dimensions of different lengths, a length that contradicts
/// `@equalLength true` or `@seriesLength`, a value that is not a number or too large for f32, a missing one unless
/// `missing` says NaN, a label that the header does not list. Memory: a small multiple of the text.
TimeSeries parse_time_series(std::string_view text, std::string_view where = "ts", Missing missing = Missing::refused);

/// Reads a whole .ts file. Throws IoError as parse_time_series, and for a file that is missing, unreadable or not
/// regular.
TimeSeries read_time_series(const std::filesystem::path& path, Missing missing = Missing::refused);

}  // namespace ferrite::io
