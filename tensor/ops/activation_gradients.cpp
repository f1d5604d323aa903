/// The gradients of activation functions, each as one operation whose derivatives are those of its composition.
#include <numbers>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace ferrite::detail {
namespace {

/// What gradients share: operands g, x and, of some, a constant. Their own gradient is that of `reference`.
struct OfCotangent {
  static constexpr auto onnx = "", stablehlo = "";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
};

struct ReluGrad : functors::ReluGrad, OfCotangent {
  static constexpr auto name = "relu_grad", summary = "g where y > 0, else 0: a cotangent g behind y = relu(x)";
  static Tensors reference(Inputs in) { return {where(gt(in[1], 0), in[0], 0)}; }
};

struct SiluGrad : functors::SiluGrad, OfCotangent {
  static constexpr auto name = "silu_grad";
  static constexpr auto summary = "g s (1 + x (1 - s)), s = sigmoid(x): a cotangent g behind silu(x)";
  static Tensors reference(Inputs in) {
    const Tensor s = sigmoid(in[1]);
    return {in[0] * (s * (1 + in[1] * (1 - s)))};
  }
};

struct LogSigmoidGrad : functors::LogSigmoidGrad, OfCotangent {
  static constexpr auto name = "log_sigmoid_grad", summary = "g sigmoid(-x): a cotangent g behind log_sigmoid(x)";
  static Tensors reference(Inputs in) { return {in[0] * sigmoid(-in[1])}; }
};

struct SoftplusGrad : functors::SoftplusGrad, OfCotangent {
  static constexpr auto name = "softplus_grad", summary = "g sigmoid(x): a cotangent g behind softplus(x)";
  static Tensors reference(Inputs in) { return {in[0] * sigmoid(in[1])}; }
};

struct SoftsignGrad : functors::SoftsignGrad, OfCotangent {
  static constexpr auto name = "softsign_grad", summary = "g / (1 + |x|)^2: a cotangent g behind softsign(x)";
  static Tensors reference(Inputs in) { return {in[0] / square(1 + abs(in[1]))}; }
};

/// Without a reference: exponential and distribution function have a part in common.
struct GeluGrad : functors::GeluGrad {
  static constexpr auto name = "gelu_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "g (Phi(x) + x phi(x)): a cotangent g behind gelu(x)";
  static constexpr Reads reads = reads_inputs;
  static constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.b.tensor();
    return v.wanted([&] { return gelu_grad(v.grad, x); },
                    [&] {
                      const Tensor bounded = clamp(x, -40, 40), power = square(bounded);
                      return v.grad * v.a * ((2 - power) * (kDensity * exp(-0.5 * power)));
                    });
  }
};

struct GeluTanhGrad : functors::GeluTanhGrad, OfCotangent {
  static constexpr auto name = "gelu_tanh_grad";
  static constexpr auto summary = "a cotangent g behind gelu in its form by tanh, of x between -32 and 32";
  static constexpr double kScale = functors::kGeluScale, kCube = functors::kGeluCube;
  static Tensors reference(Inputs in) {
    const Tensor x = clamp(in[1], -32, 32), power = x * x;
    const Tensor u = 2 * kScale * (x + kCube * (power * x)), s = sigmoid(u);
    const Tensor inner = 2 * kScale * (1 + 3 * kCube * power);
    return {in[0] * (s + x * ((s * sigmoid(-u)) * inner))};
  }
};

struct LeakyReluGrad : functors::LeakyReluGrad, OfCotangent {
  static constexpr auto name = "leaky_relu_grad";
  static constexpr auto summary = "g where x > 0, else slope g: a cotangent g behind leaky_relu(x)";
  static Tensors reference(Inputs in) { return {where(gt(in[1], 0), in[0], in[2] * in[0])}; }
};

struct EluGrad : functors::EluGrad, OfCotangent {
  static constexpr auto name = "elu_grad";
  static constexpr auto summary = "g where x > 0, else g alpha e^x: a cotangent g behind elu(x)";
  static Tensors reference(Inputs in) {
    return {where(le(in[1], 0), in[0] * (in[2] * exp(not_positive(in[1]))), in[0])};
  }
};

struct CeluGrad : functors::CeluGrad, OfCotangent {
  static constexpr auto name = "celu_grad";
  static constexpr auto summary = "g where x > 0, else g e^(x / alpha): a cotangent g behind celu(x)";
  static Tensors reference(Inputs in) { return {where(le(in[1], 0), in[0] * exp(not_positive(in[1]) / in[2]), in[0])}; }
};

struct SeluGrad : functors::SeluGrad, OfCotangent {
  static constexpr auto name = "selu_grad";
  static constexpr auto summary = "1.0507 (g where x > 0, else 1.6733 g e^x): a cotangent g behind selu(x)";
  static constexpr double kAlpha = functors::kSeluAlpha, kScale = functors::kSeluScale;
  static Tensors reference(Inputs in) {
    return {in[0] * (kScale * where(le(in[1], 0), kAlpha * exp(not_positive(in[1])), 1.0))};
  }
};

struct HardswishGrad : functors::HardswishGrad, OfCotangent {
  static constexpr auto name = "hardswish_grad";
  static constexpr auto summary = "g (2 x + 3) / 6 for -3 < x < 3, 0 below, g above: a cotangent g behind hardswish(x)";
  static Tensors reference(Inputs in) {
    const Tensor &g = in[0], &x = in[1];
    return {where(le(x, -3), 0.0, where(lt(x, 3), g * ((x + x + 3) / 6.0), g))};
  }
};

struct MishGrad : functors::MishGrad, OfCotangent {
  static constexpr auto name = "mish_grad";
  static constexpr auto summary = "g (t + x sigmoid(x) (1 - t^2)), t = tanh(softplus(x)): a cotangent g behind mish(x)";
  static Tensors reference(Inputs in) {
    const Tensor t = tanh(softplus(in[1]));
    return {in[0] * (t + in[1] * sigmoid(in[1]) * (1 - t * t))};
  }
};

struct TanhshrinkGrad : functors::TanhshrinkGrad, OfCotangent {
  static constexpr auto name = "tanhshrink_grad", summary = "g tanh(x)^2: a cotangent g behind tanhshrink(x)";
  static Tensors reference(Inputs in) {
    const Tensor t = tanh(in[1]);
    return {in[0] * (t * t)};
  }
};

struct PassAbove : functors::PassAbove, OfCotangent {
  static constexpr auto name = "pass_above", summary = "0 where x <= bound, else g";
  static Tensors reference(Inputs in) { return {where(le(in[1], in[2]), 0.0, in[0])}; }
};

struct PassBelow : functors::PassBelow, OfCotangent {
  static constexpr auto name = "pass_below", summary = "0 where x >= bound, else g";
  static Tensors reference(Inputs in) { return {where(ge(in[1], in[2]), 0.0, in[0])}; }
};

struct ShrinkGrad : functors::ShrinkGrad, OfCotangent {
  static constexpr auto name = "shrink_grad", summary = "0 where -lambda <= x <= lambda, else g";
  static Tensors reference(Inputs in) { return {where(ge(in[1], -in[2]) && le(in[1], in[2]), 0.0, in[0])}; }
};

template <class Op>
Tensor of_two(const Tensor& g, const Tensor& x) {
  return call(pointwise<Op>, {{&g, &x}});
}
template <class Op>
Tensor of_three(const Tensor& g, const Tensor& x, const Operand& c) {
  const Operand a(g), b(x);
  return call_pointwise(pointwise<Op>, {&a, &b, &c});
}

}  // namespace

Family activation_gradient_family() {
  static constexpr const Primitive* list[] = {
      &pointwise<ReluGrad>,     &pointwise<SiluGrad>,       &pointwise<LogSigmoidGrad>, &pointwise<SoftplusGrad>,
      &pointwise<SoftsignGrad>, &pointwise<GeluGrad>,       &pointwise<GeluTanhGrad>,   &pointwise<LeakyReluGrad>,
      &pointwise<EluGrad>,      &pointwise<CeluGrad>,       &pointwise<SeluGrad>,       &pointwise<HardswishGrad>,
      &pointwise<MishGrad>,     &pointwise<TanhshrinkGrad>, &pointwise<PassAbove>,      &pointwise<PassBelow>,
      &pointwise<ShrinkGrad>};
  return list;
}

Tensor relu_grad(const Tensor& g, const Tensor& y) { return of_two<ReluGrad>(g, y); }
Tensor silu_grad(const Tensor& g, const Tensor& x) { return of_two<SiluGrad>(g, x); }
Tensor log_sigmoid_grad(const Tensor& g, const Tensor& x) { return of_two<LogSigmoidGrad>(g, x); }
Tensor softplus_grad(const Tensor& g, const Tensor& x) { return of_two<SoftplusGrad>(g, x); }
Tensor softsign_grad(const Tensor& g, const Tensor& x) { return of_two<SoftsignGrad>(g, x); }
Tensor gelu_grad(const Tensor& g, const Tensor& x) { return of_two<GeluGrad>(g, x); }
Tensor gelu_tanh_grad(const Tensor& g, const Tensor& x) { return of_two<GeluTanhGrad>(g, x); }
Tensor selu_grad(const Tensor& g, const Tensor& x) { return of_two<SeluGrad>(g, x); }
Tensor hardswish_grad(const Tensor& g, const Tensor& x) { return of_two<HardswishGrad>(g, x); }
Tensor mish_grad(const Tensor& g, const Tensor& x) { return of_two<MishGrad>(g, x); }
Tensor tanhshrink_grad(const Tensor& g, const Tensor& x) { return of_two<TanhshrinkGrad>(g, x); }
Tensor leaky_relu_grad(const Tensor& g, const Tensor& x, const Operand& slope) {
  return of_three<LeakyReluGrad>(g, x, slope);
}
Tensor elu_grad(const Tensor& g, const Tensor& x, const Operand& alpha) { return of_three<EluGrad>(g, x, alpha); }
Tensor celu_grad(const Tensor& g, const Tensor& x, const Operand& alpha) { return of_three<CeluGrad>(g, x, alpha); }
Tensor pass_above(const Tensor& g, const Tensor& x, const Operand& bound) { return of_three<PassAbove>(g, x, bound); }
Tensor pass_below(const Tensor& g, const Tensor& x, const Operand& bound) { return of_three<PassBelow>(g, x, bound); }
Tensor shrink_grad(const Tensor& g, const Tensor& x, const Operand& lambda) {
  return of_three<ShrinkGrad>(g, x, lambda);
}

}  // namespace ferrite::detail
