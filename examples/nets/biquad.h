#pragma once
/// Filters of second order.
#include <array>
#include <cmath>

namespace nets {

/// A filter of second order, y = b0 x + b1 x' + b2 x'' - a1 y' - a2 y''.
class Biquad {
 public:
  enum class Kind { low_pass, high_pass, peak };
  /// The formulas are those of R. Bristow-Johnson's "Cookbook formulae for audio EQ biquad filter coefficients".
  Biquad(Kind kind, double hertz, double q, double rate, double decibel = 0) {
    const double w = 2 * 3.14159265358979323846 * hertz / rate, c = std::cos(w), alpha = std::sin(w) / (2 * q);
    double a0 = 1 + alpha;
    a_ = {-2 * c, 1 - alpha};
    if (kind == Kind::low_pass) b_ = {(1 - c) / 2, 1 - c, (1 - c) / 2};
    if (kind == Kind::high_pass) b_ = {(1 + c) / 2, -(1 + c), (1 + c) / 2};
    if (kind == Kind::peak) {
      const double a = std::pow(10, decibel / 40);
      b_ = {1 + alpha * a, -2 * c, 1 - alpha * a}, a0 = 1 + alpha / a, a_[1] = 1 - alpha / a;
    }
    for (double& v : b_) v /= a0;
    for (double& v : a_) v /= a0;
  }
  double operator()(double x) {  // transposed direct form II
    const double y = b_[0] * x + s_[0];
    s_ = {b_[1] * x - a_[0] * y + s_[1], b_[2] * x - a_[1] * y};
    return y;
  }

 private:
  std::array<double, 3> b_{};
  std::array<double, 2> a_{}, s_{};
};

}  // namespace nets
