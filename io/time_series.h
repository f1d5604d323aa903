#pragma once
/// Sets of time series: the .ts files of the UEA and UCR archive.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/missing.h"
#include "ferrite/tensor/tensor.h"

/// The .ts format of sktime and aeon (aeon-toolkit.org/en/stable/api_reference/data_format.html), in which
/// timeseriesclassification.com distributes its archive: comments after `#`, a header of lines such as `@dimensions
/// 12`, and behind `@data` one series a line, its dimensions separated by colons and their values by commas, the label
/// last.
namespace ferrite::io {

/// N series of D dimensions, of different lengths, all of them one after another. The first three tensors are what
/// train::sequences takes.
struct TimeSeries {
  std::string name{};                  ///< `@problemName`, or empty
  Tensor values{};                     ///< f32 [sum of lengths, D]
  Tensor lengths{};                    ///< i64 [N], at least 1 each
  Tensor labels{};                     ///< i64 [N], positions in `classes`; undefined without `@classLabel true`
  std::vector<std::string> classes{};  ///< in the order of the header
  Tensor targets{};                    ///< f32 [N], of regression; undefined without `@targetLabel true`
};

/// Reads text in memory. A value that is missing is "?" or "NaN"; a missing target is always refused.
///
/// In the header, keys and the words true and false are read in any case; unknown keys are skipped.
/// Throws IoError, its message beginning with `where` and naming the line: a header line that is malformed or comes
/// twice, time stamps, classes and targets together, no `@data`, no series; and of a series: another number of
/// dimensions than the first one or the header has, dimensions of different lengths, a length that contradicts
/// `@equalLength true` or `@seriesLength`, a value that is no number or too large for f32, one that is missing unless
/// `missing` says NaN, a label that the header does not list. Memory: a small multiple of the text.
TimeSeries parse_time_series(std::string_view text, std::string_view where = "ts", Missing missing = Missing::refused);

/// Reads a file whole. Throws IoError as above, and for what is missing, not readable or no regular file.
TimeSeries read_time_series(const std::filesystem::path& path, Missing missing = Missing::refused);

}  // namespace ferrite::io
