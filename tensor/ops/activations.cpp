/// Activation functions, each one operation where it is a function of single elements, and their gradients.
#include "ferrite/tensor/activations.h"

#include <cmath>
#include <numbers>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace ferrite {

// ---- gradients, each as one operation whose derivatives are those of its composition ----------------------

namespace detail {
namespace {

/// Common part of gradients: operands g, x and, for some, a constant. Their own gradient is that of `reference`.
struct OfCotangent {
  static constexpr auto onnx = "", stablehlo = "";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
};

struct ReluGrad : functors::ReluGrad, OfCotangent {
  static constexpr auto name = "relu_grad", summary = "g where y > 0, else 0: a cotangent g through y = relu(x)";
  static Tensors reference(Inputs in) { return {where(gt(in[1], 0), in[0], 0)}; }
};

struct SiluGrad : functors::SiluGrad, OfCotangent {
  static constexpr auto name = "silu_grad";
  static constexpr auto summary = "g s (1 + x (1 - s)), s = sigmoid(x): a cotangent g through silu(x)";
  static Tensors reference(Inputs in) {
    const Tensor s = sigmoid(in[1]);
    return {in[0] * (s * (1 + in[1] * (1 - s)))};
  }
};

struct LogSigmoidGrad : functors::LogSigmoidGrad, OfCotangent {
  static constexpr auto name = "log_sigmoid_grad", summary = "g sigmoid(-x): a cotangent g through log_sigmoid(x)";
  static Tensors reference(Inputs in) { return {in[0] * sigmoid(-in[1])}; }
};

struct SoftplusGrad : functors::SoftplusGrad, OfCotangent {
  static constexpr auto name = "softplus_grad", summary = "g sigmoid(x): a cotangent g through softplus(x)";
  static Tensors reference(Inputs in) { return {in[0] * sigmoid(in[1])}; }
};

struct SoftsignGrad : functors::SoftsignGrad, OfCotangent {
  static constexpr auto name = "softsign_grad", summary = "g / (1 + |x|)^2: a cotangent g through softsign(x)";
  static Tensors reference(Inputs in) { return {in[0] / square(1 + abs(in[1]))}; }
};

/// Without a reference: the exponential and the distribution function share a part.
struct GeluGrad : functors::GeluGrad {
  static constexpr auto name = "gelu_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "g (Phi(x) + x phi(x)): a cotangent g through gelu(x)";
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
  static constexpr auto summary = "a cotangent g through gelu in its form by tanh, of x between -32 and 32";
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
  static constexpr auto summary = "g where x > 0, else slope g: a cotangent g through leaky_relu(x)";
  static Tensors reference(Inputs in) { return {where(gt(in[1], 0), in[0], in[2] * in[0])}; }
};

struct EluGrad : functors::EluGrad, OfCotangent {
  static constexpr auto name = "elu_grad";
  static constexpr auto summary = "g where x > 0, else g alpha e^x: a cotangent g through elu(x)";
  static Tensors reference(Inputs in) {
    return {where(le(in[1], 0), in[0] * (in[2] * exp(not_positive(in[1]))), in[0])};
  }
};

struct CeluGrad : functors::CeluGrad, OfCotangent {
  static constexpr auto name = "celu_grad";
  static constexpr auto summary = "g where x > 0, else g e^(x / alpha): a cotangent g through celu(x)";
  static Tensors reference(Inputs in) { return {where(le(in[1], 0), in[0] * exp(not_positive(in[1]) / in[2]), in[0])}; }
};

struct SeluGrad : functors::SeluGrad, OfCotangent {
  static constexpr auto name = "selu_grad";
  static constexpr auto summary = "1.0507 (g where x > 0, else 1.6733 g e^x): a cotangent g through selu(x)";
  static constexpr double kAlpha = functors::kSeluAlpha, kScale = functors::kSeluScale;
  static Tensors reference(Inputs in) {
    return {in[0] * (kScale * where(le(in[1], 0), kAlpha * exp(not_positive(in[1])), 1.0))};
  }
};

struct HardswishGrad : functors::HardswishGrad, OfCotangent {
  static constexpr auto name = "hardswish_grad";
  static constexpr auto summary =
      "g (2 x + 3) / 6 for -3 < x < 3, 0 below, g above: a cotangent g through hardswish(x)";
  static Tensors reference(Inputs in) {
    const Tensor &g = in[0], &x = in[1];
    return {where(le(x, -3), 0.0, where(lt(x, 3), g * ((x + x + 3) / 6.0), g))};
  }
};

struct MishGrad : functors::MishGrad, OfCotangent {
  static constexpr auto name = "mish_grad";
  static constexpr auto summary =
      "g (t + x sigmoid(x) (1 - t^2)), t = tanh(softplus(x)): a cotangent g through mish(x)";
  static Tensors reference(Inputs in) {
    const Tensor t = tanh(softplus(in[1]));
    return {in[0] * (t + in[1] * sigmoid(in[1]) * (1 - t * t))};
  }
};

struct TanhshrinkGrad : functors::TanhshrinkGrad, OfCotangent {
  static constexpr auto name = "tanhshrink_grad", summary = "g tanh(x)^2: a cotangent g through tanhshrink(x)";
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

// ---- functions --------------------------------------------------------------------------------------------

namespace {

/// Common part of activation functions.
struct Activation {
  static constexpr auto stablehlo = "";
  static constexpr Reads reads = reads_inputs;
};

/// x Phi(x) in its tanh form.
struct GeluTanh : functors::GeluTanh, Activation {
  static constexpr auto name = "gelu_tanh", onnx = "Gelu";
  static constexpr auto summary = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): gelu in its form by tanh";
  static constexpr double kScale = functors::kGeluScale, kCube = functors::kGeluCube;
  static Tensors reference(Inputs in) {
    const Tensor& x = in[0];
    return {x * sigmoid(2 * kScale * (x + kCube * (x * x * x)))};
  }
  static Tensors vjp(const PointwiseVjp& v) { return {gelu_tanh_grad(v.grad, v.a.tensor())}; }
};

struct Silu : functors::Silu, Activation {
  static constexpr auto name = "silu", onnx = "", summary = "x / (1 + e^-x)";
  /// The composition uses x e^x far below 0, where the sigmoid has no digits left (tensor/kernel/packet_exp.h).
  static Tensors reference(Inputs in) {
    const Tensor &x = in[0], half = exp(0.5 * x);
    return {where(lt(x, x.dtype() == Dtype::f32 ? -80 : -700), (x * half) * half, x * sigmoid(x))};
  }
  static Tensors vjp(const PointwiseVjp& v) { return {silu_grad(v.grad, v.a.tensor())}; }
};

struct LogSigmoid : functors::LogSigmoid, Activation {
  static constexpr auto name = "log_sigmoid", onnx = "", summary = "-ln(1 + e^-x), without overflow";
  static Tensors reference(Inputs in) { return {-softplus(-in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) { return {log_sigmoid_grad(v.grad, v.a.tensor())}; }
};

/// Returns g x where x is not positive, else 0: the gradient of a slope.
Tensor slope_grad(const Tensor& g, const Tensor& x) { return where(gt(x, 0), 0.0, g * x); }

struct LeakyRelu : functors::LeakyRelu, Activation {
  static constexpr auto name = "leaky_relu", onnx = "LeakyRelu";
  static constexpr auto summary = "x where x > 0, else slope x; gradient slope at 0";
  static Tensors reference(Inputs in) { return {where(gt(in[0], 0), in[0], in[1] * in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return leaky_relu_grad(v.grad, v.a.tensor(), v.b); },
                    [&] { return slope_grad(v.grad, v.a.tensor()); });
  }
};
Tensor sloped(const Tensor& x, const Operand& slope) { return pointwise_call<LeakyRelu>(x, slope); }

struct Elu : functors::Elu, Activation {
  static constexpr auto name = "elu", onnx = "Elu", summary = "x where x > 0, else alpha (e^x - 1)";
  static Tensors reference(Inputs in) { return {where(le(in[0], 0), in[1] * expm1(not_positive(in[0])), in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return v.wanted([&] { return elu_grad(v.grad, x, v.b); }, [&] { return v.grad * expm1(not_positive(x)); });
  }
};

struct Celu : functors::Celu, Activation {
  static constexpr auto name = "celu", onnx = "Celu", summary = "x where x > 0, else alpha (e^(x / alpha) - 1)";
  static Tensors reference(Inputs in) {
    return {where(le(in[0], 0), in[1] * expm1(not_positive(in[0]) / in[1]), in[0])};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return v.wanted([&] { return celu_grad(v.grad, x, v.b); },
                    [&] {
                      const Tensor ratio = not_positive(x) / v.b;
                      return v.grad * (expm1(ratio) - ratio * exp(ratio));
                    });
  }
};

struct Selu : functors::Selu, Activation {
  static constexpr auto name = "selu", onnx = "Selu";
  static constexpr auto summary = "1.0507 times (x where x > 0, else 1.6733 (e^x - 1)) (arXiv 1706.02515)";
  static constexpr double kAlpha = functors::kSeluAlpha, kScale = functors::kSeluScale;
  static Tensors reference(Inputs in) {
    return {kScale * where(le(in[0], 0), kAlpha * expm1(not_positive(in[0])), in[0])};
  }
  static Tensors vjp(const PointwiseVjp& v) { return {selu_grad(v.grad, v.a.tensor())}; }
};

struct Prelu {
  static constexpr auto name = "prelu", onnx = "PRelu";
  static constexpr auto summary = "x where x > 0, else weight x, one weight or one for each channel (axis 1)";

  /// Returns the shape of the weights that broadcasts to x's.
  static Shape along_channels(const Shape& x, std::int64_t weights) {
    Shape s = Shape::filled(x.rank(), 1);
    if (weights != 1) s[x.rank() > 1 ? 1 : 0] = weights;
    return s;
  }
  static Tensor parts(Inputs in, const NoAttrs&) {
    return sloped(in[0], reshape(in[1], along_channels(in[0].shape(), in[1].numel())));
  }
};

struct BoundsAttrs {
  double low = -1, high = 1;
  static constexpr auto fields = attr_list(attr("low", &BoundsAttrs::low), attr("high", &BoundsAttrs::high));
};

struct Rrelu {
  using Attributes = BoundsAttrs;
  static constexpr auto name = "rrelu", onnx = "", summary = "x where x > 0, else (low + high) / 2 x: in evaluation";

  static double slope(const Attributes& a) { return (a.low + a.high) / 2; }
  static Tensor parts(Inputs in, const Attributes& a) { return sloped(in[0], slope(a)); }
};

struct Hardtanh : functors::Hardtanh, Activation {
  static constexpr auto name = "hardtanh", onnx = "", summary = "min(max(x, low), high); gradient 0 at the bounds";
  static Tensors reference(Inputs in) {
    return {where(le(in[0], in[1]), in[1], where(ge(in[0], in[2]), in[2], in[0]))};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    const auto outside = [&](const Tensor& where_bound) { return where(where_bound, v.grad, 0.0); };
    return v.wanted([&] { return pass_below(pass_above(v.grad, x, v.b), x, v.c); }, [&] { return outside(le(x, v.b)); },
                    [&] { return outside(gt(x, v.b) && ge(x, v.c)); });
  }
};

struct Relu6 {
  static constexpr auto name = "relu6", onnx = "", summary = "min(max(x, 0), 6); gradient 0 at both ends";

  static Tensor parts(Inputs in, const NoAttrs&) { return hardtanh(in[0], 0, 6); }
};

struct Hardsigmoid : functors::Hardsigmoid, Activation {
  static constexpr auto name = "hardsigmoid", onnx = "", summary = "relu6(x + 3) / 6";
  static Tensors reference(Inputs in) {
    const Tensor above = in[0] + 3.0;
    return {where(le(above, 0), 0.0, where(ge(above, 6), 6.0, above)) / 6.0};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return {pass_below(pass_above(v.grad / 6.0, x, -3), x, 3)};
  }
};

struct Hardswish : functors::Hardswish, Activation {
  static constexpr auto name = "hardswish", onnx = "HardSwish", summary = "x relu6(x + 3) / 6";
  static Tensors reference(Inputs in) {
    const Tensor& x = in[0];
    return {where(le(x, -3), 0.0, where(lt(x, 3), x * (x + 3) / 6.0, x))};
  }
  static Tensors vjp(const PointwiseVjp& v) { return {hardswish_grad(v.grad, v.a.tensor())}; }
};

struct Mish : functors::Mish, Activation {
  static constexpr auto name = "mish", onnx = "Mish", summary = "x tanh(softplus(x)) (arXiv 1908.08681)";
  static Tensors reference(Inputs in) { return {in[0] * tanh(softplus(in[0]))}; }
  static Tensors vjp(const PointwiseVjp& v) { return {mish_grad(v.grad, v.a.tensor())}; }
};

/// Returns 0 as the cotangent of constants that only bend a function.
Tensor none(const PointwiseVjp& v) { return zeros_like(v.grad); }

struct Softshrink : functors::Softshrink, Activation {
  static constexpr auto name = "softshrink", onnx = "Shrink";
  static constexpr auto summary = "x - lambda above lambda, x + lambda below -lambda, else 0";
  static Tensors reference(Inputs in) {
    const Tensor &x = in[0], &lambda = in[1];
    return {where(ge(x, -lambda) && le(x, lambda), 0.0, where(gt(x, 0), x - lambda, x + lambda))};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return v.wanted([&] { return shrink_grad(v.grad, x, v.b); },
                    [&] { return shrink_grad(where(gt(x, 0), -v.grad, v.grad), x, v.b); });
  }
};

struct Hardshrink : functors::Hardshrink, Activation {
  static constexpr auto name = "hardshrink", onnx = "Shrink", summary = "x outside of -lambda..lambda, else 0";
  static Tensors reference(Inputs in) { return {where(ge(in[0], -in[1]) && le(in[0], in[1]), 0.0, in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return shrink_grad(v.grad, v.a.tensor(), v.b); }, [&] { return none(v); });
  }
};

struct Tanhshrink : functors::Tanhshrink, Activation {
  static constexpr auto name = "tanhshrink", onnx = "", summary = "x - tanh(x)";
  static Tensors reference(Inputs in) { return {in[0] - tanh(in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) { return {tanhshrink_grad(v.grad, v.a.tensor())}; }
};

struct Threshold : functors::Threshold, Activation {
  static constexpr auto name = "threshold", onnx = "", summary = "x where x > bound, else value; a NaN stays";
  static Tensors reference(Inputs in) { return {where(le(in[0], in[1]), in[2], in[0])}; }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return v.wanted([&] { return pass_above(v.grad, x, v.b); }, [&] { return none(v); },
                    [&] { return where(le(x, v.b), v.grad, 0.0); });
  }
};

/// The product that implements `glu`.
struct Gated : functors::Gated, Activation {
  static constexpr auto name = "gated", onnx = "", summary = "a sigmoid(b)";
  static Tensors reference(Inputs in) { return {in[0] * sigmoid(in[1])}; }
  static Tensors vjp(const PointwiseVjp& v);
};
Tensor gated(const Tensor& a, const Tensor& b) { return call(pointwise<Gated>, {{&a, &b}}); }
Tensors Gated::vjp(const PointwiseVjp& v) {
  const Tensor &a = v.a.tensor(), &b = v.b.tensor();
  return v.wanted([&] { return gated(v.grad, b); }, [&] { return gated(gated(v.grad * a, b), -b); });
}

struct Glu {
  using Attributes = AxisAttrs;
  static constexpr auto name = "glu", onnx = "", summary = "a sigmoid(b), a and b the halves along an axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    const std::int64_t half = in[0].shape()[a.axis] / 2;
    return gated(slice(in[0], a.axis, 0, half), slice(in[0], a.axis, half));
  }
};

void check_value(bool valid, std::string_view where, std::string_view what, double found) {
  if (!valid) throw ValueError(std::string(where) + ": " + std::string(what) + ", got " + Scalar(found).str());
}

template <class... O>
Tensor call_literals(const Primitive& op, const O&... operands) {
  return call_pointwise(op, {&operands...});
}
/// Applies an activation to x and its constants, which are literals.
template <class Op, class... C>
Tensor activation(const Tensor& x, C... constants) {
  check_float(x, Op::name);
  if constexpr (sizeof...(C) == 0) {
    return call(pointwise<Op>, {{&x}});
  } else {
    return call_literals(pointwise<Op>, Operand(x), Operand(constants)...);
  }
}

}  // namespace

Family activation_family() {
  static constexpr const Primitive* list[] = {
      &pointwise<GeluTanh>,    &pointwise<Silu>,      &pointwise<LogSigmoid>, &pointwise<LeakyRelu>,
      &pointwise<Elu>,         &pointwise<Celu>,      &pointwise<Selu>,       &pointwise<Hardtanh>,
      &pointwise<Hardsigmoid>, &pointwise<Hardswish>, &pointwise<Mish>,       &pointwise<Softshrink>,
      &pointwise<Hardshrink>,  &pointwise<Threshold>, &pointwise<Tanhshrink>, &pointwise<Gated>};
  return list;
}
Family composite_activation_family() {
  static constexpr const Primitive* list[] = {&composite<Prelu>, &composite<Rrelu>, &composite<Relu6>, &composite<Glu>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor gelu(const Tensor& x, GeluForm form) {
  return form == GeluForm::exact ? gelu_exact(x) : activation<GeluTanh>(x);
}
Tensor silu(const Tensor& x) { return activation<Silu>(x); }
Tensor log_sigmoid(const Tensor& x) { return activation<LogSigmoid>(x); }
constinit const Primitive* const detail::ops::leaky_relu = &pointwise<LeakyRelu>;
Tensor leaky_relu(const Tensor& x, double slope) { return activation<LeakyRelu>(x, slope); }
Tensor elu(const Tensor& x, double alpha) { return activation<Elu>(x, alpha); }
Tensor selu(const Tensor& x) { return activation<Selu>(x); }
Tensor celu(const Tensor& x, double alpha) {
  check_value(alpha != 0, "celu", "alpha must not be 0", alpha);
  return activation<Celu>(x, alpha);
}
Tensor prelu(const Tensor& x, const Tensor& weight) {
  check_float(x, "prelu");
  if (weight.dtype() != x.dtype())
    throw_dtype("prelu", "dtypes differ: " + x.spec().str() + " and " + weight.spec().str() + "; cast one of them");
  const std::int64_t channels = x.rank() == 0 ? 1 : x.shape()[x.rank() > 1 ? 1 : 0];
  if (weight.rank() > 1 || (weight.numel() != 1 && weight.numel() != channels))
    throw_shape("prelu", "the weight must hold one element or one for each of " + std::to_string(channels) +
                             " channels, got " + weight.shape().str());
  return composed<Prelu>({{&x, &weight}});
}
Tensor rrelu(const Tensor& x, double lower, double upper) {
  check_value(std::isfinite(lower), "rrelu", "the lower bound must be finite", lower);
  check_value(std::isfinite(upper), "rrelu", "the upper bound must be finite", upper);
  check_value(lower <= upper, "rrelu", "the lower bound must not exceed the upper " + Scalar(upper).str(), lower);
  check_float(x, "rrelu");
  return composed<Rrelu>({{&x}}, {lower, upper});
}
Tensor hardtanh(const Tensor& x, double low, double high) {
  check_value(low <= high, "hardtanh", "low must not exceed high " + Scalar(high).str(), low);
  return activation<Hardtanh>(x, low, high);
}
Tensor relu6(const Tensor& x) {
  check_float(x, "relu6");
  return composed<Relu6>({{&x}});
}
Tensor hardsigmoid(const Tensor& x) { return activation<Hardsigmoid>(x); }
Tensor hardswish(const Tensor& x) { return activation<Hardswish>(x); }
Tensor mish(const Tensor& x) { return activation<Mish>(x); }
Tensor softshrink(const Tensor& x, double lambda) {
  check_value(lambda >= 0, "softshrink", "lambda must not be negative", lambda);
  return activation<Softshrink>(x, lambda);
}
Tensor hardshrink(const Tensor& x, double lambda) {
  check_value(!std::isnan(lambda), "hardshrink", "lambda must be a number", lambda);
  return activation<Hardshrink>(x, lambda);
}
Tensor tanhshrink(const Tensor& x) { return activation<Tanhshrink>(x); }
Tensor threshold(const Tensor& x, double bound, double value) { return activation<Threshold>(x, bound, value); }
Tensor glu(const Tensor& x, std::int64_t axis) {
  check_float(x, "glu");
  const int at = axis_of(axis, x.rank(), "glu");
  if (x.shape()[at] % 2 != 0)
    throw_shape("glu", "axis " + std::to_string(axis) + " of " + x.shape().str() + " has no two halves");
  return composed<Glu>({{&x}}, {at});
}

}  // namespace ferrite
