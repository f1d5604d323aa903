/// Lowers the optimisers of ai.onnx.preview.training: Adagrad, Adam, Momentum.
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Returns the number of weights. The inputs are the rate, the number of the step, then `each` tensors for every
/// weight, grouped by kind.
std::size_t weights_of(const Call& call, std::size_t each) {
  if (call.inputs() < 2 + each || (call.inputs() - 2) % each != 0) call.refuse("its inputs are no whole families");
  return (call.inputs() - 2) / each;
}
Tensor scalar(const Call& call, std::size_t i) { return reshape(call.tensor(i), {}); }

Values adagrad(const Call& call) {
  const std::size_t n = weights_of(call, 3);
  const double decay = call.number("decay_factor", 0.0), epsilon = call.number("epsilon", 1e-6);
  const double norm = call.number("norm_coefficient", 0.0);
  const Tensor step = cast(scalar(call, 1), call.tensor(2).dtype());
  const Tensor rate = cast(scalar(call, 0), step.dtype()) / (1 + step * decay);
  Values values(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = call.tensor(2 + i);
    const Tensor g = x * norm + call.tensor(2 + n + i);
    const Tensor h = call.tensor(2 + 2 * n + i) + square(g);
    values[i] = {x - rate * g / (sqrt(h) + epsilon), call.type(2 + i)};
    values[n + i] = {h, call.type(2 + 2 * n + i)};
  }
  return values;
}

Values adam(const Call& call) {
  const std::size_t n = weights_of(call, 4);
  const double alpha = call.number("alpha", 0.9), beta = call.number("beta", 0.999);
  const double epsilon = call.number("epsilon", 1e-6);
  const double norm = call.number("norm_coefficient", 0.0), post = call.number("norm_coefficient_post", 0.0);
  const Dtype dtype = call.tensor(2).dtype();
  const Tensor t = cast(scalar(call, 1), Dtype::f64), rate = cast(scalar(call, 0), Dtype::f64);
  // beta^t as e^(t ln beta); without a correction where t is 0
  const auto left = [&](double decay) { return 1 - exp(t * std::log(decay)); };
  const Tensor corrected = gt(t, 0);
  const Tensor safe = where(corrected, left(alpha), 1.0);
  const Tensor adjusted = cast(where(corrected, rate * sqrt(left(beta)) / safe, rate), dtype);
  Values values(3 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = call.tensor(2 + i);
    const Tensor g = x * norm + call.tensor(2 + n + i);
    const Tensor v = call.tensor(2 + 2 * n + i) * alpha + g * (1 - alpha);
    const Tensor h = call.tensor(2 + 3 * n + i) * beta + square(g) * (1 - beta);
    values[i] = {(x - adjusted * (v / (sqrt(h) + epsilon))) * (1 - post), call.type(2 + i)};
    values[n + i] = {v, call.type(2 + i)};
    values[2 * n + i] = {h, call.type(2 + i)};
  }
  return values;
}

Values momentum(const Call& call) {
  const std::size_t n = weights_of(call, 3);
  const double alpha = call.number("alpha"), beta = call.number("beta"), norm = call.number("norm_coefficient");
  const std::string mode = call.text("mode");
  if (mode != "standard" && mode != "nesterov") call.refuse("mode \"" + mode + "\" is neither standard nor nesterov");
  const Dtype dtype = call.tensor(2).dtype();
  const Tensor share = where(gt(scalar(call, 1), 0), full({}, beta, dtype), full({}, 1.0, dtype));
  const Tensor rate = cast(scalar(call, 0), dtype);
  Values values(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& x = call.tensor(2 + i);
    const Tensor g = x * norm + call.tensor(2 + n + i);
    const Tensor v = call.tensor(2 + 2 * n + i) * alpha + share * g;
    values[i] = {x - rate * (mode == "standard" ? v : g + v * alpha), call.type(2 + i)};
    values[n + i] = {v, call.type(2 + i)};
  }
  return values;
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr Operation kOperations[] = {
    {.name = "Adagrad", .lower = adagrad, .domain = kDomain},
    {.name = "Adam", .lower = adam, .domain = kDomain},
    {.name = "Momentum", .lower = momentum, .domain = kDomain},
};

}  // namespace

Operations training_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
