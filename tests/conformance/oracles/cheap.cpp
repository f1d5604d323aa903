// Oracles and samples of tensor/ops/detail/cheap.h.
#include <cmath>

#include "conformance/oracles/oracle.h"

namespace oracles::cheap {
namespace {

struct Add {
  static constexpr auto name = "add";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return a + b; }
};

struct Sub {
  static constexpr auto name = "sub";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return a - b; }
};

struct Mul {
  static constexpr auto name = "mul";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return a * b; }
};

struct Neg {
  static constexpr auto name = "neg";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return -x; }
};

struct Square {
  static constexpr auto name = "square";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return x * x; }
};

struct Relu {
  static constexpr auto name = "relu";
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return x > 0 ? x : std::isnan(x) ? x : 0; }
};

const Added added = add<Add, Sub, Mul, Neg, Square, Relu>();

}  // namespace
}  // namespace oracles::cheap
