// Oracles and samples of tensor/ops/math.cpp.
#include <cmath>
#include <numbers>

#include "conformance/oracles/oracle.h"

namespace oracles::trigonometry {
namespace {

struct Tan {
  static constexpr auto name = "tan";
  static constexpr Range domain{-1.5, 1.5};
  static double scalar(double x) { return std::tan(x); }
};

struct Asin {
  static constexpr auto name = "asin";
  static constexpr Range domain{-1, 1};
  static constexpr double kinks[] = {-1, 1};
  static double scalar(double x) { return std::asin(x); }
};

struct Acos {
  static constexpr auto name = "acos";
  static constexpr Range domain{-1, 1};
  static constexpr double kinks[] = {-1, 1};
  static double scalar(double x) { return std::acos(x); }
};

struct Atan {
  static constexpr auto name = "atan";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return std::atan(x); }
};

struct Sinh {
  static constexpr auto name = "sinh";
  static constexpr Range domain{-88, 88};
  static double scalar(double x) { return std::sinh(x); }
};

struct Cosh {
  static constexpr auto name = "cosh";
  static constexpr Range domain{-88, 88};
  static double scalar(double x) { return std::cosh(x); }
};

struct Asinh {
  static constexpr auto name = "asinh";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return std::asinh(x); }
};

struct Acosh {
  static constexpr auto name = "acosh";
  static constexpr Range domain{1, 100};
  static constexpr double kinks[] = {1};
  static double scalar(double x) { return std::acosh(x); }
};

struct Atanh {
  static constexpr auto name = "atanh";
  static constexpr Range domain{-0.99, 0.99};
  static double scalar(double x) { return std::atanh(x); }
};

struct Atan2 {
  static constexpr auto name = "atan2";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static double scalar(double y, double x) { return std::atan2(y, x); }
};

struct Hypot {
  static constexpr auto name = "hypot";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static double scalar(double a, double b) { return std::hypot(a, b); }
};

struct Sinc {
  static constexpr auto name = "sinc";
  static constexpr Range domain{-8, 8};
  static constexpr double kinks[] = {0};
  static double scalar(double x) {
    const double angle = x * std::numbers::pi;
    return x == 0 ? 1 : std::sin(angle) / angle;
  }
};

const Added added = add<Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Atan2, Hypot, Sinc>();

}  // namespace
}  // namespace oracles::trigonometry
