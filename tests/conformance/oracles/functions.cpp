// Oracles and samples of tensor/ops/functions.cpp.
#include <cmath>
#include <numbers>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/cheap.h"

namespace oracles::functions {
namespace {

struct Sqrt {
  static constexpr auto name = "sqrt";
  static constexpr Range domain{0, 1000};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return std::sqrt(x); }
};

struct Rsqrt {
  static constexpr auto name = "rsqrt";
  static constexpr Range domain{0.01, 1000};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return 1 / std::sqrt(x); }
};

struct Reciprocal {
  static constexpr auto name = "reciprocal";
  static constexpr Range domain{0.1, 100};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return 1 / x; }
};

struct Exp {
  static constexpr auto name = "exp";
  static constexpr Range domain{-87, 88};
  static double scalar(double x) { return std::exp(x); }
};

struct Exp2 {
  static constexpr auto name = "exp2";
  static constexpr Range domain{-125, 127};
  static double scalar(double x) { return std::exp2(x); }
};

struct Expm1 {
  static constexpr auto name = "expm1";
  static constexpr Range domain{-20, 88};
  static double scalar(double x) { return std::expm1(x); }
};

struct Log {
  static constexpr auto name = "log";
  static constexpr Range domain{0.001, 1000};
  static double scalar(double x) { return std::log(x); }
};

struct Log1p {
  static constexpr auto name = "log1p";
  static constexpr Range domain{-0.99, 1000};
  static double scalar(double x) { return std::log1p(x); }
};

struct Log2 {
  static constexpr auto name = "log2";
  static constexpr Range domain{0.001, 1000};
  static double scalar(double x) { return std::log2(x); }
};

struct Sin {
  static constexpr auto name = "sin";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return std::sin(x); }
};

struct Cos {
  static constexpr auto name = "cos";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return std::cos(x); }
};

/// The gradient of tanh as one operation: as a composition it costs three times as much on small tensors.
struct TanhGrad {
  static constexpr auto name = "tanh_grad";
  static constexpr Range domain{-1, 1};
  static double scalar(double g, double y) { return g * (1 - y * y); }
};

/// The gradient of sigmoid as one operation.
struct SigmoidGrad {
  static constexpr auto name = "sigmoid_grad";
  static constexpr Range domain{-1, 1};
  static double scalar(double g, double y) { return g * (y * (1 - y)); }
};

struct Tanh {
  static constexpr auto name = "tanh";
  static constexpr Range domain{-20, 20};
  static double scalar(double x) { return std::tanh(x); }
};

/// 1 / (1 + e^-x), which saturates at both ends without overflow.
struct Sigmoid {
  static constexpr auto name = "sigmoid";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return 1 / (1 + std::exp(-x)); }
};

struct Erf {
  static constexpr auto name = "erf";
  static constexpr Range domain{-5, 5};
  static double scalar(double x) { return std::erf(x); }
};

/// x Phi(x) = x erfc(-x / sqrt 2) / 2, without cancellation on the negative side.
struct Gelu {
  static constexpr auto name = "gelu";
  static constexpr Range domain{-6, 6};
  static double scalar(double x) { return x < -40 ? -0.0 : 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
};

/// max(x, 0) + log1p(e^-|x|).
struct Softplus {
  static constexpr auto name = "softplus";
  static constexpr Range domain{-80, 100};
  static double scalar(double x) {
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0);
  }
};

struct Softsign {
  static constexpr auto name = "softsign";
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return x / (1 + std::fabs(x)); }
};

const Added added = add<Sqrt, Rsqrt, Reciprocal, Exp, Exp2, Expm1, Log, Log1p, Log2, Sin, Cos, Tanh, TanhGrad,
                        SigmoidGrad, Sigmoid, Erf, Gelu, Softplus, Softsign>();

}  // namespace
}  // namespace oracles::functions
