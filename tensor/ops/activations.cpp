/// Activation functions that are composed of operations.
#include "ferrite/tensor/activations.h"

#include <cmath>

#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/ops/detail/groups.h"

namespace ferrite {
namespace detail {
namespace {

struct SlopeAttrs {
  double slope = 0.01;
  static constexpr auto fields = std::tuple(attr("slope", &SlopeAttrs::slope));
};

struct LeakyRelu {
  using Attributes = SlopeAttrs;
  static constexpr auto name = "leaky_relu", onnx = "LeakyRelu";
  static constexpr auto summary = "x where x > 0, else slope x; gradient slope at 0";

  static Tensor parts(Inputs in, const Attributes& a) { return where(gt(in[0], 0), in[0], a.slope * in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > 0 ? x : a.slope * x; });
  }
  static std::vector<Sample> samples() { return numbers(SlopeAttrs{0.25}, {}, false); }
};

struct AlphaAttrs {
  double alpha = 1;
  static constexpr auto fields = std::tuple(attr("alpha", &AlphaAttrs::alpha));
};

/// alpha (e^(x / divisor) - 1) up to 0, x above. Large x are replaced first: infinity times 0 would be the gradient.
Tensor exponential_below(const Tensor& x, double alpha, double divisor) {
  const Tensor below = le(x, 0);
  const Tensor power = where(below, x, 0.0);
  return where(below, alpha * expm1(divisor == 1 ? power : power / divisor), x);
}

struct Elu {
  using Attributes = AlphaAttrs;
  static constexpr auto name = "elu", onnx = "Elu", summary = "x where x > 0, else alpha (e^x - 1)";

  static Tensor parts(Inputs in, const Attributes& a) { return exponential_below(in[0], a.alpha, 1); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > 0 ? x : a.alpha * std::expm1(x); });
  }
  static std::vector<Sample> samples() { return numbers(AlphaAttrs{1.5}, {-8, 200}, false); }
};

struct Selu {
  static constexpr auto name = "selu", onnx = "Selu";
  static constexpr auto summary = "1.0507 times (x where x > 0, else 1.6733 (e^x - 1)) (arXiv 1706.02515)";
  static constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;

  static Tensor parts(Inputs in, const NoAttrs&) { return kScale * exponential_below(in[0], kAlpha, 1); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return kScale * (x > 0 ? x : kAlpha * std::expm1(x)); });
  }
  static std::vector<Sample> samples() { return numbers({}, {-8, 200}, false); }
};

struct Celu {
  using Attributes = AlphaAttrs;
  static constexpr auto name = "celu", onnx = "Celu", summary = "x where x > 0, else alpha (e^(x / alpha) - 1)";

  static Tensor parts(Inputs in, const Attributes& a) { return exponential_below(in[0], a.alpha, a.alpha); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > 0 ? x : a.alpha * std::expm1(x / a.alpha); });
  }
  static std::vector<Sample> samples() { return numbers(AlphaAttrs{0.5}, {-8, 200}, false); }
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
    const Tensor w = reshape(in[1], along_channels(in[0].shape(), in[1].numel()));
    return where(gt(in[0], 0), in[0], w * in[0]);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    Dense w = in[1];
    w.shape = along_channels(in[0].shape, in[1].shape.numel());
    for_each_index(out[0].shape, [&](const Shape& i) {
      const double x = in[0].at(i);
      out[0].at(i) = x > 0 ? x : w.broadcast_at(i) * x;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}, {{3}}}, .smooth_at_ties = false},
            {.inputs = {{{5}}, {{1}}}, .smooth_at_ties = false},
            {.inputs = {{{5}}, {{5}}}, .smooth_at_ties = false},
            {.inputs = {{{}}, {{}}}, .smooth_at_ties = false}};
  }
};

struct BoundsAttrs {
  double low = -1, high = 1;
  static constexpr auto fields = std::tuple(attr("low", &BoundsAttrs::low), attr("high", &BoundsAttrs::high));
};

struct Rrelu {
  using Attributes = BoundsAttrs;
  static constexpr auto name = "rrelu", onnx = "", summary = "x where x > 0, else (low + high) / 2 x: in evaluation";

  static double slope(const Attributes& a) { return (a.low + a.high) / 2; }
  static Tensor parts(Inputs in, const Attributes& a) { return where(gt(in[0], 0), in[0], slope(a) * in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > 0 ? x : slope(a) * x; });
  }
  static std::vector<Sample> samples() { return numbers(BoundsAttrs{0.125, 0.5}, {}, false); }
};

/// min(max(x, low), high) with gradient 0 at the bounds.
Tensor bounded(const Tensor& x, double low, double high) {
  return where(le(x, low) || ge(x, high), clamp(detach(x), low, high), x);
}
double bounded_number(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

struct Hardtanh {
  using Attributes = BoundsAttrs;
  static constexpr auto name = "hardtanh", onnx = "", summary = "min(max(x, low), high); gradient 0 at the bounds";

  static Tensor parts(Inputs in, const Attributes& a) { return bounded(in[0], a.low, a.high); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return bounded_number(x, a.low, a.high); });
  }
  static std::vector<Sample> samples() { return numbers(BoundsAttrs{}, {}, false); }
};

struct Relu6 {
  static constexpr auto name = "relu6", onnx = "", summary = "min(max(x, 0), 6); gradient 0 at both ends";

  static Tensor parts(Inputs in, const NoAttrs&) { return bounded(in[0], 0, 6); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return bounded_number(x, 0, 6); });
  }
  static std::vector<Sample> samples() { return numbers({}, {-8, 8}, false); }
};

struct Hardsigmoid {
  static constexpr auto name = "hardsigmoid", onnx = "", summary = "relu6(x + 3) / 6";

  static Tensor parts(Inputs in, const NoAttrs&) { return bounded(in[0] + 3.0, 0, 6) / 6.0; }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return bounded_number(x + 3, 0, 6) / 6; });
  }
  static std::vector<Sample> samples() { return numbers(); }
};

struct Hardswish {
  static constexpr auto name = "hardswish", onnx = "HardSwish", summary = "x relu6(x + 3) / 6";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor& x = in[0];
    const Tensor bent = gt(x, -3) && lt(x, 3);
    const Tensor middle = where(bent, x, 0.0);
    return where(bent, middle * (middle + 3.0) / 6.0, where(le(x, -3), 0.0, x));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return x * bounded_number(x + 3, 0, 6) / 6; });
  }
  static std::vector<Sample> samples() { return numbers(); }
};

struct Mish {
  static constexpr auto name = "mish", onnx = "Mish", summary = "x tanh(softplus(x)) (arXiv 1908.08681)";

  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] * tanh(softplus(in[0])); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  }
  static std::vector<Sample> samples() { return numbers({}, {-20, 20}); }
};

struct LambdaAttrs {
  double lambda = 0.5;
  static constexpr auto fields = std::tuple(attr("lambda", &LambdaAttrs::lambda));
};

struct Softshrink {
  using Attributes = LambdaAttrs;
  static constexpr auto name = "softshrink", onnx = "Shrink";
  static constexpr auto summary = "x - lambda above lambda, x + lambda below -lambda, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const Tensor middle = ge(x, -a.lambda) && le(x, a.lambda);
    return where(middle, 0.0, where(gt(x, 0), x - a.lambda, x + a.lambda));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > a.lambda ? x - a.lambda : x < -a.lambda ? x + a.lambda : 0; });
  }
  static std::vector<Sample> samples() { return numbers(LambdaAttrs{0.75}); }
};

struct Hardshrink {
  using Attributes = LambdaAttrs;
  static constexpr auto name = "hardshrink", onnx = "Shrink", summary = "x outside of -lambda..lambda, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    return where(ge(in[0], -a.lambda) && le(in[0], a.lambda), 0.0, in[0]);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x >= -a.lambda && x <= a.lambda ? 0 : x; });
  }
  static std::vector<Sample> samples() { return numbers(LambdaAttrs{0.75}); }
};

struct Tanhshrink {
  static constexpr auto name = "tanhshrink", onnx = "", summary = "x - tanh(x)";

  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] - tanh(in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return x - std::tanh(x); });
  }
  static std::vector<Sample> samples() { return numbers(); }
};

struct ThresholdAttrs {
  double bound = 0, value = 0;
  static constexpr auto fields =
      std::tuple(attr("bound", &ThresholdAttrs::bound), attr("value", &ThresholdAttrs::value));
};

struct Threshold {
  using Attributes = ThresholdAttrs;
  static constexpr auto name = "threshold", onnx = "", summary = "x where x > bound, else value; a NaN stays";

  static Tensor parts(Inputs in, const Attributes& a) { return where(le(in[0], a.bound), a.value, in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x <= a.bound ? a.value : x; });
  }
  static std::vector<Sample> samples() { return numbers(ThresholdAttrs{0.625, -2}); }
};

struct Glu {
  using Attributes = AxisAttrs;
  static constexpr auto name = "glu", onnx = "", summary = "a sigmoid(b), a and b the halves along an axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    const std::int64_t half = in[0].shape()[a.axis] / 2;
    return slice(in[0], a.axis, 0, half) * sigmoid(slice(in[0], a.axis, half));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape gate = i;
      gate[a.axis] += out[0].shape[a.axis];
      out[0].at(i) = in[0].at(i) / (1 + std::exp(-in[0].at(gate)));
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}}, .attrs = AxisAttrs{1}},
            {.inputs = {{{4, 2, 3}}}, .attrs = AxisAttrs{0}},
            {.inputs = {{{2, 0}}}, .attrs = AxisAttrs{1}}};
  }
};

struct Softmin {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmin", onnx = "", summary = "softmax(-x) along an axis";

  static Tensor parts(Inputs in, const Attributes& a) { return softmax(-in[0], a.axis); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], {a.axis}, out[0], [](std::vector<double>& v) {
      const double least = *std::min_element(v.begin(), v.end());
      double total = 0;
      for (double& x : v) total += x = std::exp(least - x);
      for (double& x : v) x /= total;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = AxisAttrs{1}}, {.inputs = {{{3, 5}}}, .attrs = AxisAttrs{0}}};
  }
};

void check_value(bool valid, std::string_view where, std::string_view what, double found) {
  if (!valid) throw ValueError(std::string(where) + ": " + std::string(what) + ", got " + Scalar(found).str());
}

template <class Op>
Tensor activation(const Tensor& x, const AttributesOf<Op>& attrs = {}) {
  check_float(x, Op::name);
  return composed<Op>({{&x}}, attrs);
}

}  // namespace

Family activation_family() {
  static constexpr const Primitive* list[] = {&composite<LeakyRelu>,  &composite<Elu>,       &composite<Selu>,
                                              &composite<Celu>,       &composite<Prelu>,     &composite<Rrelu>,
                                              &composite<Hardtanh>,   &composite<Relu6>,     &composite<Hardsigmoid>,
                                              &composite<Hardswish>,  &composite<Mish>,      &composite<Softshrink>,
                                              &composite<Hardshrink>, &composite<Threshold>, &composite<Tanhshrink>,
                                              &composite<Glu>,        &composite<Softmin>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor leaky_relu(const Tensor& x, double slope) { return activation<LeakyRelu>(x, {slope}); }
Tensor elu(const Tensor& x, double alpha) { return activation<Elu>(x, {alpha}); }
Tensor selu(const Tensor& x) { return activation<Selu>(x); }
Tensor celu(const Tensor& x, double alpha) {
  check_value(alpha != 0, "celu", "alpha must not be 0", alpha);
  return activation<Celu>(x, {alpha});
}
Tensor prelu(const Tensor& x, const Tensor& weight) {
  check_float(x, "prelu");
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
  return activation<Rrelu>(x, {lower, upper});
}
Tensor hardtanh(const Tensor& x, double low, double high) {
  check_value(low <= high, "hardtanh", "low must not exceed high " + Scalar(high).str(), low);
  return activation<Hardtanh>(x, {low, high});
}
Tensor relu6(const Tensor& x) { return activation<Relu6>(x); }
Tensor hardsigmoid(const Tensor& x) { return activation<Hardsigmoid>(x); }
Tensor hardswish(const Tensor& x) { return activation<Hardswish>(x); }
Tensor mish(const Tensor& x) { return activation<Mish>(x); }
Tensor softshrink(const Tensor& x, double lambda) {
  check_value(lambda >= 0, "softshrink", "lambda must not be negative", lambda);
  return activation<Softshrink>(x, {lambda});
}
Tensor hardshrink(const Tensor& x, double lambda) {
  check_value(!std::isnan(lambda), "hardshrink", "lambda must be a number", lambda);
  return activation<Hardshrink>(x, {lambda});
}
Tensor tanhshrink(const Tensor& x) { return activation<Tanhshrink>(x); }
Tensor threshold(const Tensor& x, double bound, double value) { return activation<Threshold>(x, {bound, value}); }
Tensor glu(const Tensor& x, std::int64_t axis) {
  check_float(x, "glu");
  const int at = axis_of(axis, x.rank(), "glu");
  if (x.shape()[at] % 2 != 0)
    throw_shape("glu", "axis " + std::to_string(axis) + " of " + x.shape().str() + " has no two halves");
  return composed<Glu>({{&x}}, {at});
}
Tensor softmin(const Tensor& x, std::int64_t axis) {
  check_float(x, "softmin");
  return composed<Softmin>({{&x}}, {axis_of(axis, x.rank(), "softmin")});
}

}  // namespace ferrite
