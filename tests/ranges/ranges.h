#pragma once
/// Arguments of every exponent, errors in units of the last place, and exact values for the tests of this folder, which
/// are compiled for one instruction set and without the library.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_math.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"

namespace range_tests {

using ferrite::detail::FERRITE_LEVEL::kLanes;
using ferrite::detail::FERRITE_LEVEL::kRoundsOnce;
using ferrite::detail::FERRITE_LEVEL::Packet;

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int digits = 23, exponents = 256, mantissas = 400;
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int digits = 52, exponents = 2048, mantissas = 40;
};

/// Returns every exponent, including denormals, infinity and NaN, with its first and last mantissas, powers of two, and
/// more from a sequence that fills the interval evenly; both signs.
template <class T>
std::vector<T> all_exponents() {
  using Bits = typename Format<T>::Bits;
  constexpr Bits one = 1;
  constexpr Bits most = (one << Format<T>::digits) - 1;
  std::vector<Bits> mantissas = {0, 1, 2, 3, most, most - 1, most - 2, most / 2, most / 2 + 1};
  for (int d = 0; d < Format<T>::digits; ++d) mantissas.push_back(one << d);
  Bits at = 0;
  for (int i = 0; i < Format<T>::mantissas; ++i) {
    at += static_cast<Bits>(0.6180339887498949 * static_cast<double>(most));
    mantissas.push_back(at & most);
  }
  std::vector<T> values;
  for (int e = 0; e < Format<T>::exponents; ++e)
    for (const Bits m : mantissas) {
      const T x = std::bit_cast<T>(static_cast<Bits>(e) << Format<T>::digits | m);
      values.push_back(x);
      values.push_back(-x);
    }
  while (values.size() % 64 != 0) values.push_back(0);
  return values;
}

template <class T>
std::vector<T> applied(Packet<T> (*f)(Packet<T>), const std::vector<T>& x) {
  std::vector<T> y(x.size());
  for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(kLanes<T>))
    f(Packet<T>::load(&x[i])).store(&y[i]);
  return y;
}

/// Returns |computed - exact| in units of the last place of the exact value in T; below the least normal number, in
/// units of that number.
template <class T>
long double units(T computed, long double exact) {
  if (std::isnan(computed) || std::isnan(exact)) return std::isnan(computed) && std::isnan(exact) ? 0 : INFINITY;
  if (std::isinf(static_cast<T>(exact))) exact = std::copysign(static_cast<long double>(INFINITY), exact);
  if (computed == exact) return 0;
  if (std::isinf(computed) || std::isinf(exact)) return INFINITY;
  const auto least = static_cast<long double>(std::numeric_limits<T>::min());
  const int exponent = std::ilogb(std::fmax(std::fabs(exact), least));
  return std::fabs(computed - exact) / std::ldexp(1.0L, exponent - Format<T>::digits);
}

/// Checks that every value is within its bound in units, which may depend on x; prints the worst one.
template <class T, class Exact, class Bound>
void check_each(const char* name, Packet<T> (*f)(Packet<T>), Exact exact, Bound bound) {
  static const std::vector<T> x = all_exponents<T>();
  const std::vector<T> y = applied(f, x);
  long double worst = 0, share = 0;
  T at = 0;
  int failures = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double e = exact(static_cast<long double>(x[i])), off = units(y[i], e), most = bound(x[i]);
    if (off > worst) worst = off;
    if (off / most > share) share = off / most, at = x[i];
    const bool signs_fit = std::isnan(e) || std::signbit(y[i]) == std::signbit(e);
    if (off <= most && signs_fit) continue;
    if (++failures > 5) continue;
    BOOST_ERROR(name << " of " << std::hexfloat << x[i] << " (" << std::defaultfloat << x[i] << ") is " << y[i]
                     << ", exact " << static_cast<double>(e) << ": " << off << " units, at most " << most);
  }
  BOOST_TEST_MESSAGE(name << (sizeof(T) == 4 ? " f32" : " f64") << ", " << kLanes<T> << " lanes, " << x.size()
                          << " values: worst " << worst << " units, " << share << " of its bound at " << at);
}

template <class T, class Exact>
void check(const char* name, Packet<T> (*f)(Packet<T>), Exact exact, double most) {
  check_each(name, f, exact, [most](T) { return most; });
}

inline long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
inline long double exact_gelu(long double x) {
  if (x == -INFINITY) return -0.0L;
  return 0.5L * x * std::erfc(-x * std::sqrt(0.5L));
}

inline long double exact_softplus(long double x) {
  return std::isnan(x) ? x : std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x)));
}
/// Computes by the distance to the nearest whole number, which is exact.
inline long double exact_sinc(long double x) {
  if (x == 0) return 1;
  const long double n = std::nearbyint(x), sine = std::sin(std::numbers::pi_v<long double> * (x - n));
  return (std::fmod(n, 2.0L) == 0 ? sine : -sine) / (std::numbers::pi_v<long double> * x);
}
/// Computes with a step of Newton's method in long double.
inline long double exact_erfinv(long double y) {
  const long double x = ferrite::detail::erfinv_of(static_cast<double>(y), 3), size = std::fabs(x);
  if (!std::isfinite(x) || y == 0) return x;
  const long double error = size < 0.5L ? std::erf(size) - std::fabs(y) : 1 - std::fabs(y) - std::erfc(size);
  return std::copysign(size - error * std::exp(size * size) * std::sqrt(std::numbers::pi_v<long double>) / 2, y);
}

}  // namespace range_tests
