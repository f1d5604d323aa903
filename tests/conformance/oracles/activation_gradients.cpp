// Oracles and samples of tensor/ops/activations.cpp.
#include <cmath>
#include <numbers>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace oracles::activation_gradients {
namespace {

/// The base of gradients of activations: operands g, x and for some a constant. Their own gradient is that of
/// `reference`.
struct OfCotangent {
  static constexpr Range domain{-6, 6};
};

double sigmoid_number(double x) { return 1 / (1 + std::exp(-x)); }

struct ReluGrad : OfCotangent {
  static constexpr auto name = "relu_grad";
  static double scalar(double g, double y) { return y > 0 ? g : 0; }
};

struct SiluGrad : OfCotangent {
  static constexpr auto name = "silu_grad";
  static double scalar(double g, double x) {
    const double s = sigmoid_number(x);
    return g * s * (1 + x * (1 - s));
  }
};

struct LogSigmoidGrad : OfCotangent {
  static constexpr auto name = "log_sigmoid_grad";
  static double scalar(double g, double x) { return g * sigmoid_number(-x); }
};

struct SoftplusGrad : OfCotangent {
  static constexpr auto name = "softplus_grad";
  static double scalar(double g, double x) { return g * sigmoid_number(x); }
};

struct SoftsignGrad : OfCotangent {
  static constexpr auto name = "softsign_grad";
  static double scalar(double g, double x) { return g / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }
};

/// The gradient of gelu, without a reference: exponential and distribution function have a part in common.
struct GeluGrad {
  static constexpr auto name = "gelu_grad";
  static constexpr Range domain{-6, 6};
  static constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  static double scalar(double g, double x) {
    x = x < -40 ? -40 : x > 40 ? 40 : x;
    return g * (0.5 * std::erfc(-x / std::numbers::sqrt2) + x * kDensity * std::exp(-0.5 * x * x));
  }
};

struct GeluTanhGrad : OfCotangent {
  static constexpr auto name = "gelu_tanh_grad";
  static constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCube = 0.044715;
  static double scalar(double g, double x) {
    const double t = std::tanh(kScale * (x + kCube * x * x * x));
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCube * x * x));
  }
};

struct LeakyReluGrad : OfCotangent {
  static constexpr auto name = "leaky_relu_grad";
  static double scalar(double g, double x, double slope) { return x > 0 ? g : slope * g; }
};

struct EluGrad : OfCotangent {
  static constexpr auto name = "elu_grad";
  static double scalar(double g, double x, double alpha) { return x <= 0 ? g * alpha * std::exp(x) : g; }
};

struct CeluGrad : OfCotangent {
  static constexpr auto name = "celu_grad";
  static double scalar(double g, double x, double alpha) { return x <= 0 ? g * std::exp(x / alpha) : g; }
};

struct SeluGrad : OfCotangent {
  static constexpr auto name = "selu_grad";
  static constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
  static double scalar(double g, double x) { return g * kScale * (x <= 0 ? kAlpha * std::exp(x) : 1); }
};

struct HardswishGrad : OfCotangent {
  static constexpr auto name = "hardswish_grad";
  static double scalar(double g, double x) { return x <= -3 ? 0 : x < 3 ? g * (2 * x + 3) / 6 : g; }
};

struct MishGrad : OfCotangent {
  static constexpr auto name = "mish_grad";
  static double scalar(double g, double x) {
    const double t = std::tanh(softplus_number(x));
    return g * (t + x * sigmoid_number(x) * (1 - t * t));
  }
};

struct TanhshrinkGrad : OfCotangent {
  static constexpr auto name = "tanhshrink_grad";
  static double scalar(double g, double x) { return g * std::tanh(x) * std::tanh(x); }
};

struct PassAbove : OfCotangent {
  static constexpr auto name = "pass_above";
  static double scalar(double g, double x, double bound) { return x <= bound ? 0 : g; }
};

struct PassBelow : OfCotangent {
  static constexpr auto name = "pass_below";
  static double scalar(double g, double x, double bound) { return x >= bound ? 0 : g; }
};

struct ShrinkGrad : OfCotangent {
  static constexpr auto name = "shrink_grad";
  static double scalar(double g, double x, double lambda) { return x >= -lambda && x <= lambda ? 0 : g; }
};

const Added added =
    add<ReluGrad, SiluGrad, LogSigmoidGrad, SoftplusGrad, SoftsignGrad, GeluGrad, GeluTanhGrad, LeakyReluGrad, EluGrad,
        CeluGrad, SeluGrad, HardswishGrad, MishGrad, TanhshrinkGrad, PassAbove, PassBelow, ShrinkGrad>();

}  // namespace
}  // namespace oracles::activation_gradients
