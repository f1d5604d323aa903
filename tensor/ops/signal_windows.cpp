/// Windows of short-time spectra: numbers made once, in f64, and rounded.
#include <cmath>
#include <numbers>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/signal.h"

namespace ferrite {
namespace {

/// f(i / N) for the elements of a window.
template <class F>
Tensor window(std::string_view where, std::int64_t n, const WindowOptions& o, F f) {
  if (n < 0)
    throw ValueError(std::string(where) + ": the number of elements must not be negative, got " + std::to_string(n));
  if (!is_float(o.dtype)) detail::throw_dtype(where, std::string(name_of(o.dtype)) + " is no float");
  const double steps = static_cast<double>(o.periodic ? n : n - 1);
  const Tensor w = Tensor::build<double>({n}, [&](std::span<double> out) {
    for (std::int64_t i = 0; i < n; ++i)
      out[static_cast<std::size_t>(i)] = n == 1 ? 1 : f(static_cast<double>(i) / steps);
  });
  return cast(w, o.dtype);
}

/// I_0(x), by its series of positive terms.
double bessel_i0(double x) {
  double term = 1, total = 1;
  for (int k = 1; term > total * 1e-17; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    total += term;
  }
  return total;
}

constexpr double kTurn = 2 * std::numbers::pi;

}  // namespace

Tensor hann_window(std::int64_t n, const WindowOptions& options) {
  return window("hann_window", n, options, [](double t) { return 0.5 - 0.5 * std::cos(kTurn * t); });
}

Tensor hamming_window(std::int64_t n, const WindowOptions& options, double alpha, double beta) {
  return window("hamming_window", n, options, [&](double t) { return alpha - beta * std::cos(kTurn * t); });
}

Tensor blackman_window(std::int64_t n, const WindowOptions& options) {
  return window("blackman_window", n, options,
                [](double t) { return 0.42 - 0.5 * std::cos(kTurn * t) + 0.08 * std::cos(2 * kTurn * t); });
}

Tensor bartlett_window(std::int64_t n, const WindowOptions& options) {
  return window("bartlett_window", n, options, [](double t) { return 1 - std::fabs(2 * t - 1); });
}

Tensor kaiser_window(std::int64_t n, const WindowOptions& options, double beta) {
  if (!(std::fabs(beta) <= 700))
    throw ValueError("kaiser_window: beta must lie in -700..700, got " + Scalar(beta).str());
  return window("kaiser_window", n, options, [&](double t) {
    return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / bessel_i0(beta);
  });
}

}  // namespace ferrite
