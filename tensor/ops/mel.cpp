/// Triangles on the mel scale, and cosines: numbers made once, in f64, and rounded.
#include "ferrite/tensor/mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"

namespace ferrite {
namespace {

const double kLogStep = std::log(6.4) / 27;  // of Slaney's scale

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) / kLogStep;
}
double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp(kLogStep * (mel - 15));
}

void check_float(std::string_view where, Dtype dtype) {
  if (!is_float(dtype)) detail::throw_dtype(where, std::string(name_of(dtype)) + " is no float");
}

}  // namespace

Tensor mel_filter_bank(std::int64_t n_frequencies, std::int64_t n_mels, double sample_rate, const MelOptions& o) {
  const double highest = o.highest == 0 ? sample_rate / 2 : o.highest;
  if (n_frequencies < 1 || n_mels < 1)
    throw ValueError("mel_filter_bank: the numbers of frequencies and mels must be positive, got " +
                     std::to_string(n_frequencies) + " and " + std::to_string(n_mels));
  if (!(sample_rate > 0) || !std::isfinite(sample_rate))
    throw ValueError("mel_filter_bank: the sample rate must be positive, got " + Scalar(sample_rate).str());
  if (!(o.lowest >= 0 && o.lowest < highest && std::isfinite(highest)))
    throw ValueError("mel_filter_bank: the lowest frequency must lie below the highest: " + Scalar(o.lowest).str() +
                     " and " + Scalar(highest).str());
  check_float("mel_filter_bank", o.dtype);
  const double first = mel_of(o.lowest, o.scale), last = mel_of(highest, o.scale);
  std::vector<double> corners;
  for (std::int64_t i = 0; i < n_mels + 2; ++i)
    corners.push_back(
        hertz_of(first + (last - first) * static_cast<double>(i) / static_cast<double>(n_mels + 1), o.scale));
  const Tensor bank = Tensor::build<double>({n_frequencies, n_mels}, [&](std::span<double> out) {
    std::size_t at = 0;
    for (std::int64_t k = 0; k < n_frequencies; ++k) {
      const double hertz =
          n_frequencies == 1 ? 0 : sample_rate / 2 * static_cast<double>(k) / static_cast<double>(n_frequencies - 1);
      for (std::size_t m = 0; m < static_cast<std::size_t>(n_mels); ++m) {
        const double rise = (hertz - corners[m]) / (corners[m + 1] - corners[m]);
        const double fall = (corners[m + 2] - hertz) / (corners[m + 2] - corners[m + 1]);
        const double scale = o.unit_area ? 2 / (corners[m + 2] - corners[m]) : 1;
        out[at++] = scale * std::max(0.0, std::min(rise, fall));
      }
    }
  });
  return cast(bank, o.dtype);
}

Tensor cosine_basis(std::int64_t n, std::int64_t count, bool orthonormal, Dtype dtype) {
  if (n < 1 || count < 1 || count > n)
    throw ValueError("cosine_basis: the number of vectors must lie in 1.." + std::to_string(n) + ", got " +
                     std::to_string(count));
  check_float("cosine_basis", dtype);
  const double length = static_cast<double>(n);
  const Tensor basis = Tensor::build<double>({n, count}, [&](std::span<double> out) {
    std::size_t at = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < count; ++k) {
        const double scale = !orthonormal ? 2 : std::sqrt((k == 0 ? 1 : 2) / length);
        out[at++] = scale * std::cos(std::numbers::pi * static_cast<double>((2 * i + 1) * k % (4 * n)) / (2 * length));
      }
  });
  return cast(basis, dtype);
}

}  // namespace ferrite
