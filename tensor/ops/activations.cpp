/// Activation functions, one operation each where they are no more than a function of elements.
#include "ferrite/tensor/activations.h"

#include <cmath>

#include "ferrite/tensor/ops/detail/activation_gradients.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

/// What activation functions share.
struct Activation {
  static constexpr auto stablehlo = "";
  static constexpr Reads reads = reads_inputs;
};

/// x Phi(x) in the form by tanh.
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
  /// Far below 0, where the sigmoid has no digits left, x e^x (tensor/kernel/packet_exp.h).
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

/// g x where x is not positive, else 0: what a cotangent g becomes behind a slope.
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

  /// The weights in a shape that broadcasts to x's.
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

/// 0 to the cotangents of constants that only bend a function.
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

/// The product behind `glu`.
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
/// An activation of x and its constants, as literals.
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
