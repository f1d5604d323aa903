/// Activation functions.
#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

Value as_type(const Call& call, const Tensor& y) { return narrowed(y, call.type(0)); }

template <Tensor (*f)(const Tensor&)>
Values one(const Call& call) {
  return {as_type(call, f(call.tensor(0)))};
}

Values leaky(const Call& call) { return {as_type(call, leaky_relu(call.tensor(0), call.number("alpha", 0.01)))}; }

Values elu_of(const Call& call) { return {as_type(call, elu(call.tensor(0), call.number("alpha", 1.0)))}; }

Values selu_of(const Call& call) {
  const double alpha = call.number("alpha", 1.6732632423543772);
  const double gamma = call.number("gamma", 1.0507009873554805);
  return {as_type(call, elu(call.tensor(0), alpha) * gamma)};
}

Values celu_of(const Call& call) { return {as_type(call, celu(call.tensor(0), call.number("alpha", 1.0)))}; }

Values prelu_of(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& slope = call.tensor(1);
  return {as_type(call, where(lt(x, 0), x * slope, x))};
}

Values hard_sigmoid(const Call& call) {
  const double alpha = call.number("alpha", 0.2);
  const double beta = call.number("beta", 0.5);
  return {as_type(call, clamp(call.tensor(0) * alpha + beta, 0, 1))};
}

Values thresholded(const Call& call) {
  const Tensor& x = call.tensor(0);
  return {as_type(call, where(gt(x, call.number("alpha", 1.0)), x, 0))};
}

Values shrink(const Call& call) {
  const Tensor x = call.tensor(0);
  const double lambda = call.number("lambd", 0.5);
  const double bias = call.number("bias", 0.0);
  if (is_floating(call.type(0)))
    return {as_type(call, where(gt(x, lambda), x - bias, where(lt(x, -lambda), x + bias, zeros_like(x))))};
  const Tensor wide = cast(x, Dtype::f64);
  const Tensor y = where(gt(wide, lambda), wide - bias, where(lt(wide, -lambda), wide + bias, zeros_like(wide)));
  return {narrowed(cast(y, Dtype::i64), call.type(0))};
}

Values gelu_of(const Call& call) {
  const std::string form = call.text("approximate", "none");
  if (form != "none" && form != "tanh") call.refuse("approximate \"" + form + "\" is neither none nor tanh");
  return {as_type(call, gelu(call.tensor(0), form == "tanh" ? GeluForm::tanh : GeluForm::exact))};
}

Values swish(const Call& call) {
  const Tensor& x = call.tensor(0);
  const double alpha = call.number("alpha", 1.0);
  return {as_type(call, alpha == 1 ? silu(x) : x * sigmoid(x * alpha))};
}

constexpr Operation kOperations[] = {
    {.name = "LeakyRelu", .lower = leaky, .since = 6},
    {.name = "Elu", .lower = elu_of, .since = 6},
    {.name = "Selu", .lower = selu_of, .since = 6},
    {.name = "Celu", .lower = celu_of},
    {.name = "PRelu", .lower = prelu_of, .since = 7},
    {.name = "HardSigmoid", .lower = hard_sigmoid, .since = 6},
    {.name = "HardSwish", .lower = one<hardswish>},
    {.name = "Softplus", .lower = one<softplus>},
    {.name = "Softsign", .lower = one<softsign>},
    {.name = "Mish", .lower = one<mish>},
    {.name = "ThresholdedRelu", .lower = thresholded},
    {.name = "Shrink", .lower = shrink},
    {.name = "Gelu", .lower = gelu_of},
    {.name = "Swish", .lower = swish},
};

}  // namespace

Operations activation_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
