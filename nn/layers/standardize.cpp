/// A layer that standardises its inputs.
#include "ferrite/nn/layers/standardize.h"

#include <cmath>
#include <vector>

#include "ferrite/tensor/math.h"

namespace ferrite::nn {
namespace {

void check_features(const Tensor& x, std::int64_t features) {
  if (x.rank() < 1 || x.shape()[-1] != features)
    throw ShapeError("standardize: expects " + std::to_string(features) + " features, got " + x.shape().str());
}

}  // namespace

Standardize::Standardize(const StandardizeOptions& options, const Init& init) : LayerOf(options, init) {
  if (options.features < 1)
    throw ValueError("standardize: features must be at least 1, got " + std::to_string(options.features));
  mean = buffer("mean", zeros({options.features}, init.dtype));
  deviation = buffer("deviation", ones({options.features}, init.dtype));
}

Tensor Standardize::forward(const Tensor& x, const Context&) const {
  check_features(x, options().features);
  const Tensor y = (x - mean) / deviation;
  return options().skip_missing ? where(isnan(x), 0, y) : y;
}

Tensor Standardize::inverse(const Tensor& y) const {
  check_features(y, options().features);
  return y * deviation + mean;
}

void Standardize::adapt(const Tensor& x) const {
  check_features(x, options().features);
  const std::int64_t D = options().features, N = x.numel() / D;
  if (N < 1) throw ValueError("standardize: there are no rows to adapt to");
  const Tensor rows = reshape(cast(x, Dtype::f64), {N, D});
  const Tensor left_out = options().skip_missing ? isnan(rows) : full(rows.shape(), 0, Dtype::boolean);
  const Tensor counts = sum(cast(!left_out, Dtype::f64), {0});
  const std::vector<double> present = counts.to_vector<double>();
  for (std::size_t d = 0; d < present.size(); ++d)
    if (present[d] == 0) throw ValueError("standardize: all numbers of feature " + std::to_string(d) + " are missing");
  const Tensor middle = sum(where(left_out, 0, rows), {0}) / counts;
  const Tensor filled = where(left_out, middle, rows);
  const Tensor spread = sqrt(sum(square(filled - middle), {0}) / counts);
  for (const double v : concat({middle, spread}, 0).to_vector<double>())
    if (!std::isfinite(v))
      throw ValueError(options().skip_missing
                           ? "standardize: the data holds infinite numbers"
                           : "standardize: the data holds numbers that are not finite; if NaN means a missing "
                             "number, give the layer .skip_missing = true");
  // Compares values: the deviation of equal ones need not be computed as 0, and may be too small for the layer's dtype.
  const Tensor high = amax(where(left_out, -INFINITY, rows), {0}), low = amin(where(left_out, INFINITY, rows), {0});
  const Tensor constant = eq(high, low), narrow = cast(spread, mean.dtype());
  mean.assign(cast(middle, mean.dtype()));
  deviation.assign(where(constant, ones_like(narrow), where(gt(narrow, 0), narrow, 1)));
}

template class LayerOf<Standardize, StandardizeOptions>;

}  // namespace ferrite::nn
