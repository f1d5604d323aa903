/// Standardised inputs.
#include "ferrite/nn/layers/standardize.h"

#include <cmath>
#include <vector>

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
  return (x - mean) / deviation;
}

Tensor Standardize::inverse(const Tensor& y) const {
  check_features(y, options().features);
  return y * deviation + mean;
}

void Standardize::adapt(const Tensor& x) const {
  check_features(x, options().features);
  const std::int64_t D = options().features, N = x.numel() / D;
  if (N < 1) throw ValueError("standardize: there are no rows to adapt to");
  const Tensor rows = reshape(cast(x, Dtype::f64), {N, D}), middle = ferrite::mean(rows, {0});
  const Tensor spread = sqrt(ferrite::mean(square(rows - middle), {0}));
  for (const double v : concat({middle, spread}, 0).to_vector<double>())
    if (!std::isfinite(v)) throw ValueError("standardize: the data holds numbers that are not finite");
  // By its values: the deviation of equal ones need not come out as 0, and may be too small for the layer's dtype.
  const Tensor constant = eq(amax(rows, {0}), amin(rows, {0})), narrow = cast(spread, mean.dtype());
  mean.assign(cast(middle, mean.dtype()));
  deviation.assign(where(constant, ones_like(narrow), where(gt(narrow, 0), narrow, 1)));
}

}  // namespace ferrite::nn
