// tanh, sigmoid and gelu over all exponents of f32 and f64, on the instruction set of this build: no overflow, no loss
// at the ends, within the errors that their declarations promise.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

/// Both signs of every exponent, subnormal numbers and the largest included, with mantissas from all over their range.
template <class T>
std::vector<T> all_exponents() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr Bits kExponents = Bits{1} << (8 * sizeof(T) - 1 - kMantissa);
  constexpr Bits kMantissas = Bits{1} << kMantissa;
  std::vector<T> all;
  for (Bits e = 0; e + 1 < kExponents; ++e)
    for (Bits k = 0; k < 24; ++k) {
      const Bits mantissa = k == 0 ? 0 : k == 1 ? kMantissas - 1 : (kMantissas / 23 * k ^ k * 2654435761U) % kMantissas;
      const T x = std::bit_cast<T>((e << kMantissa) | mantissa);
      all.push_back(x);
      all.push_back(-x);
    }
  return all;
}

/// An error that is within `absolute`, or within so many units in the last place of the result.
struct Bound {
  long double absolute, units;
};

template <class T>
void check(const char* name, Tensor (*f)(const Tensor&), long double (*oracle)(long double), const Bound& bound) {
  const std::vector<T> x = all_exponents<T>();
  const std::vector<T> y =
      f(Tensor::from(std::span<const T>(x), {static_cast<std::int64_t>(x.size())})).template to_vector<T>();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double wanted = oracle(static_cast<long double>(x[i]));
    const auto rounded = static_cast<T>(wanted);
    const long double unit = std::max<long double>(
        std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity()) - std::fabs(rounded),
        std::numeric_limits<T>::denorm_min());
    const long double error = std::fabs(static_cast<long double>(y[i]) - wanted);
    if (error <= bound.absolute || error <= bound.units * unit || y[i] == rounded) continue;
    if (++wrong <= 3)
      BOOST_ERROR(name << "(" << x[i] << ") = " << y[i] << ", wanted " << rounded << ": " << error / unit << " units");
  }
  BOOST_TEST(wrong == 0U, name << ": " << wrong << " of " << x.size());
  const Tensor ends = f(Tensor::from({-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity(), T(0),
                                      T(-0.0), std::numeric_limits<T>::quiet_NaN()}));
  const std::vector<T> e = ends.template to_vector<T>();
  BOOST_TEST(e[0] == static_cast<T>(oracle(-std::numeric_limits<long double>::max())));
  if (std::isfinite(e[1])) BOOST_TEST(e[1] == T(1));
  BOOST_TEST(e[2] == static_cast<T>(oracle(0)));
  BOOST_TEST(e[3] == static_cast<T>(oracle(0)));
  BOOST_TEST(std::isnan(e[4]));
}

long double tanh_of(long double x) { return std::tanh(x); }
long double sigmoid_of(long double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
long double gelu_of(long double x) {
  if (x < -200) return -0.0L;
  return x * (0.5L * std::erfc(-x / std::sqrt(2.0L)));
}

Tensor gelu_exact(const Tensor& x) { return gelu(x); }

}  // namespace

BOOST_AUTO_TEST_SUITE(ranges)

BOOST_AUTO_TEST_CASE(tanh_over_all_exponents) {
  check<float>("tanh f32", tanh, tanh_of, {0, 3});
  check<double>("tanh f64", tanh, tanh_of, {0, 3});
}

BOOST_AUTO_TEST_CASE(sigmoid_over_all_exponents) {
  check<float>("sigmoid f32", sigmoid, sigmoid_of, {std::numeric_limits<float>::min(), 6});
  check<double>("sigmoid f64", sigmoid, sigmoid_of, {std::numeric_limits<double>::min(), 6});
}

BOOST_AUTO_TEST_CASE(gelu_over_all_exponents) {
  check<float>("gelu f32", gelu_exact, gelu_of, {3e-7L, 40});
  check<double>("gelu f64", gelu_exact, gelu_of, {1e-15L, 40});
}

BOOST_AUTO_TEST_SUITE_END()
