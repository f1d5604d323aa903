/// Fingerprints of examples that functions make.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "ferrite/train/detail/data_fingerprint.h"
#include "ferrite/train/detail/fingerprints.h"

namespace ferrite::train::detail {
namespace {

constexpr std::int64_t kSamples = 64;

/// What was seen of a field.
struct Seen {
  double sum = 0, weight = 0;
  std::uint64_t hash = kHash;
  bool is_float = false;

  void add(const Tensor& x) {
    if (!ferrite::is_float(x.dtype())) {
      hash = typed_hash_of(x, hash);
      return;
    }
    is_float = true;
    double place = weight;  // so that an exchange of two values changes the mean
    for (const double v : cast(x, Dtype::f64).to_vector<double>()) {
      const double w = 1 + std::fmod(place++ * 0.6180339887498949, 1);
      if (std::isfinite(v)) sum += w * std::fabs(v) * (v < 0 ? 0.75 : 1);
    }
    weight = place;
  }
  std::string text() const {
    if (!is_float) return digits_of(hash);
    char digits[32];
    const double mean = weight > 0 ? sum / weight : 0;
    const auto end = std::to_chars(std::begin(digits), std::end(digits), mean, std::chars_format::general, 4).ptr;
    return "~" + std::string(std::begin(digits), end);
  }
};

}  // namespace

std::string types_of(const Dataset::Source& source) {
  std::string text;
  const Tensors e = source.size() > 0 ? source.example(0, {}) : Tensors();
  for (std::size_t f = 0; f < e.size(); ++f) {
    const bool sequence = f < source.fields().size() && source.fields()[f].sequence && e[f].rank() > 0;
    std::string spec = e[f].spec().str();
    if (sequence) {  // of any length
      const std::size_t begin = spec.find('['), end = spec.find_first_of(",]", begin);
      spec = spec.substr(0, begin + 1) + "?" + spec.substr(end);
    }
    text += (f ? ", " : "") + spec;
  }
  return text;
}

std::string samples_of(const Dataset::Source& source) {
  const std::int64_t n = source.size(), samples = std::min(n, kSamples);
  std::vector<Seen> seen;
  for (std::int64_t k = 0; k < samples; ++k) {
    const Tensors e = source.example(samples == n ? k : (n - 1) / (samples - 1) * k, {});
    if (seen.size() < e.size()) seen.resize(e.size());
    for (std::size_t f = 0; f < e.size(); ++f) seen[f].add(e[f]);
  }
  std::string text;
  for (const Seen& s : seen) text += " " + s.text();
  return text;
}

}  // namespace ferrite::train::detail
