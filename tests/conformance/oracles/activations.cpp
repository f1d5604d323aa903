// Oracles and samples of tensor/ops/activations.cpp.
#include <cmath>
#include <numbers>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace oracles::activations {
namespace {

/// The base of activation functions.
struct Activation {
  static constexpr Range domain{-8, 8};
};

/// x Phi(x), approximated with tanh.
struct GeluTanh : Activation {
  static constexpr auto name = "gelu_tanh";
  static constexpr Range domain{-2, 8};
  static constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCube = 0.044715;
  static double scalar(double x) { return x / 2 * (1 + std::tanh(kScale * (x + kCube * x * x * x))); }
};

struct Silu : Activation {
  static constexpr auto name = "silu";
  static double scalar(double x) { return x / (1 + std::exp(-x)); }
};

struct LogSigmoid : Activation {
  static constexpr auto name = "log_sigmoid";
  static double scalar(double x) { return -softplus_number(-x); }
};

struct LeakyRelu : Activation {
  static constexpr auto name = "leaky_relu";
  static constexpr double kinks[] = {0};
  static double scalar(double x, double slope) { return x > 0 ? x : slope * x; }
};

struct Elu : Activation {
  static constexpr auto name = "elu";
  static constexpr double kinks[] = {0};
  static double scalar(double x, double alpha) { return x <= 0 ? alpha * std::expm1(x) : x; }
};

struct Celu : Activation {
  static constexpr auto name = "celu";
  static constexpr Range domain{0.5, 8};
  static constexpr double kinks[] = {0};
  static double scalar(double x, double alpha) { return x <= 0 ? alpha * std::expm1(x / alpha) : x; }
};

struct Selu : Activation {
  static constexpr auto name = "selu";
  static constexpr double kinks[] = {0};
  static constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
  static double scalar(double x) { return kScale * (x <= 0 ? kAlpha * std::expm1(x) : x); }
};

struct Prelu {
  static constexpr auto name = "prelu";
  /// Returns the shape with which weights broadcast to x's channels.
  static Shape along_channels(const Shape& x, std::int64_t weights) {
    Shape s = Shape::filled(x.rank(), 1);
    if (weights != 1) s[x.rank() > 1 ? 1 : 0] = weights;
    return s;
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
  static constexpr auto fields = attr_list(attr("low", &BoundsAttrs::low), attr("high", &BoundsAttrs::high));
};

struct Rrelu {
  using Attributes = BoundsAttrs;
  static constexpr auto name = "rrelu";
  static double slope(const Attributes& a) { return (a.low + a.high) / 2; }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) { return x > 0 ? x : slope(a) * x; });
  }
  static std::vector<Sample> samples() { return numbers(BoundsAttrs{0.125, 0.5}, {}, false); }
};

/// Returns min(max(x, low), high); NaN for NaN.
double bounded_number(double x, double low, double high) { return x <= low ? low : x >= high ? high : x; }

struct Hardtanh : Activation {
  static constexpr auto name = "hardtanh";
  static double scalar(double x, double low, double high) { return bounded_number(x, low, high); }
};

struct Relu6 {
  static constexpr auto name = "relu6";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return bounded_number(x, 0, 6); });
  }
  static std::vector<Sample> samples() { return numbers({}, {-8, 8}, false); }
};

struct Hardsigmoid : Activation {
  static constexpr auto name = "hardsigmoid";
  static constexpr double kinks[] = {-3, 3};
  static double scalar(double x) { return bounded_number(x + 3, 0, 6) / 6; }
};

struct Hardswish : Activation {
  static constexpr auto name = "hardswish";
  static constexpr double kinks[] = {-3, 3};
  static double scalar(double x) { return x <= -3 ? 0 : x < 3 ? x * (x + 3) / 6 : x; }
};

struct Mish : Activation {
  static constexpr auto name = "mish";
  static double scalar(double x) { return x * std::tanh(softplus_number(x)); }
};

struct Softshrink : Activation {
  static constexpr auto name = "softshrink";
  static double scalar(double x, double lambda) {
    return x >= -lambda && x <= lambda ? 0 : x > 0 ? x - lambda : x + lambda;
  }
};

struct Hardshrink : Activation {
  static constexpr auto name = "hardshrink";
  static double scalar(double x, double lambda) { return x >= -lambda && x <= lambda ? 0 : x; }
};

struct Tanhshrink : Activation {
  static constexpr auto name = "tanhshrink";
  static double scalar(double x) { return x - std::tanh(x); }
};

struct Threshold : Activation {
  static constexpr auto name = "threshold";
  static double scalar(double x, double bound, double value) { return x <= bound ? value : x; }
};

/// The product of which `glu` consists.
struct Gated : Activation {
  static constexpr auto name = "gated";
  static double scalar(double a, double b) { return a / (1 + std::exp(-b)); }
};

struct Glu {
  using Attributes = AxisAttrs;
  static constexpr auto name = "glu";
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

const Added added = add<GeluTanh, Silu, LogSigmoid, LeakyRelu, Elu, Celu, Selu, Hardtanh, Hardsigmoid, Hardswish, Mish,
                        Softshrink, Hardshrink, Threshold, Tanhshrink, Gated, Prelu, Rrelu, Relu6, Glu>();

}  // namespace
}  // namespace oracles::activations
