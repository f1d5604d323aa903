/// Functions of one step as layers, and the check of their promise.
#include "ferrite/nn/layers/per_step.h"

#include <cmath>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"

namespace ferrite::nn {
namespace {

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  const std::vector<double> x = cast(a, Dtype::f64).to_vector<double>(), y = cast(b, Dtype::f64).to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))) return false;
  return true;
}

}  // namespace

PerStep::PerStep(const PerStepOptions& o) : LayerOf(o) {
  if (o.name.empty()) throw ValueError("per_step: the name is empty");
  if (!o.function) throw ValueError("per_step: the function of '" + o.name + "' is null");
  if (o.features < 0)
    throw ValueError("per_step: features must not be negative, got " + std::to_string(o.features) + " for '" + o.name +
                     "'");
}

Tensor PerStep::forward(const Tensor& x, const Context&) const {
  const PerStepOptions& o = options();
  if (x.rank() < 2 || (o.features > 0 && x.shape()[-1] != o.features))
    throw ShapeError("per_step: '" + o.name + "' expects [B, T, " +
                     (o.features > 0 ? std::to_string(o.features) : "D") + "], got " + x.shape().str());
  Tensor y = o.function(x);
  Shape wanted = x.shape();
  if (y.rank() == wanted.rank()) wanted[wanted.rank() - 1] = y.shape()[-1];
  if (y.shape() != wanted)
    throw ShapeError("per_step: the function of '" + o.name + "' makes " + y.shape().str() + " of " + x.shape().str() +
                     "; it must keep all axes but the last one");
  return y;
}

void PerStep::check_promise() const {
  const std::int64_t B = 2, T = 4;
  const Tensor x = normal({B, T, options().features}, {.seed = 1}, 0, 1, options().dtype);
  const Tensor whole = (*this)(x);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = 0; t < T; ++t) {
      const auto step = [&](const Tensor& of) { return slice(slice(of, 0, b, b + 1), 1, t, t + 1); };
      if (!same_values((*this)(contiguous(step(x))), step(whole)))
        throw ValueError("per_step: the function of '" + options().name + "' gives other values for step " +
                         std::to_string(t) + " of row " + std::to_string(b) +
                         " alone than within a sequence; it must treat every step of every row by itself, and the same "
                         "in every call");
    }
}

template class LayerOf<PerStep, PerStepOptions>;

}  // namespace ferrite::nn
