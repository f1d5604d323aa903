/// Any bytes are refused with an IoError, or parsed as time series whose tensors fit each other.
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "ferrite/io/time_series.h"

namespace {

namespace io = ferrite::io;

/// Checks that the tensors fit each other. Any exception here ends the program.
void check(const io::TimeSeries& s) noexcept {
  const auto lengths = s.lengths.to_vector<std::int64_t>();
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (s.values.rank() != 2 || s.values.size(0) != total || s.values.size(1) < 1) std::abort();
  if (s.labels.defined() && !(s.labels.shape() == s.lengths.shape())) std::abort();
  if (s.targets.defined() && !(s.targets.shape() == s.lengths.shape())) std::abort();
  for (const std::int64_t length : lengths)
    if (length < 1) std::abort();
  if (!s.labels.defined()) return;
  for (const std::int64_t label : s.labels.to_vector<std::int64_t>())
    if (label < 0 || label >= std::ssize(s.classes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check(io::parse_time_series({reinterpret_cast<const char*>(data), size}, "ts", io::Missing::nan));
  } catch (const ferrite::IoError&) {
    return 0;
  }
  return 0;
}
