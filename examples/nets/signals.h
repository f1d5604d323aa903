#pragma once
/// The distance between two signals, and the best linear filter, with which the amplifier net is compared.
#include <cstddef>
#include <vector>

namespace nets {

/// Returns the filter of n taps that comes nearest to y from x, by least squares (Levinson's recursion).
inline std::vector<double> least_squares_filter(const std::vector<float>& x, const std::vector<float>& y,
                                                std::size_t n) {
  std::vector<double> r(n, 0.0), c(n, 0.0);  // of x with itself, and with y
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t t = k; t < x.size(); ++t) {
      r[k] += static_cast<double>(x[t]) * x[t - k];
      c[k] += static_cast<double>(y[t]) * x[t - k];
    }
  r[0] *= 1 + 1e-9;
  std::vector<double> h{c[0] / r[0]}, a{1.0};
  double power = r[0];
  for (std::size_t m = 1; m < n; ++m) {
    double reflection = 0, missing = c[m];
    for (std::size_t i = 0; i < m; ++i) reflection -= a[i] * r[m - i], missing -= h[i] * r[m - i];
    reflection /= power;
    a.push_back(0);
    const std::vector<double> before = a;
    for (std::size_t i = 1; i <= m; ++i) a[i] += reflection * before[m - i];
    power *= 1 - reflection * reflection;
    h.push_back(0);
    for (std::size_t i = 0; i <= m; ++i) h[i] += missing / power * a[m - i];
  }
  return h;
}

/// Returns a filter's output for x.
inline std::vector<float> filtered(const std::vector<double>& h, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (std::size_t t = 0; t < x.size(); ++t) {
    double sum = 0;
    for (std::size_t k = 0; k < h.size() && k <= t; ++k) sum += h[k] * x[t - k];
    y[t] = static_cast<float>(sum);
  }
  return y;
}

/// Returns the energy of the error over that of the target.
inline double error_to_signal(const std::vector<float>& y, const std::vector<float>& target) {
  double error = 0, signal = 0;
  for (std::size_t t = 0; t < y.size(); ++t) {
    const double expected = target[t], difference = y[t] - expected;
    error += difference * difference, signal += expected * expected;
  }
  return error / signal;
}

}  // namespace nets
