// The bounds in the headers of packets for hyperbolic and special functions, rounding and remainders, for every
// exponent of f32 and f64.
#include "ranges.h"

using namespace range_tests;

BOOST_AUTO_TEST_SUITE(ranges)

BOOST_AUTO_TEST_CASE(hyperbolic_functions_over_all_exponents) {
  check<float>(
      "sinh", [](Packet<float> x) { return sinh(x); }, [](long double x) { return std::sinh(x); }, 2);
  check<float>(
      "cosh", [](Packet<float> x) { return cosh(x); }, [](long double x) { return std::cosh(x); }, 2);
  check<float>(
      "asinh", [](Packet<float> x) { return asinh(x); }, [](long double x) { return std::asinh(x); }, 1);
  check<float>(
      "acosh", [](Packet<float> x) { return acosh(x); }, [](long double x) { return std::acosh(x); }, 1);
  check<float>(
      "atanh", [](Packet<float> x) { return atanh(x); }, [](long double x) { return std::atanh(x); }, 3);
  check<float>(
      "softplus", [](Packet<float> x) { return softplus(x); }, exact_softplus, 3);
}

BOOST_AUTO_TEST_CASE(special_functions_over_all_exponents) {
  check<float>(
      "erfc", [](Packet<float> x) { return erfc(x); }, [](long double x) { return std::erfc(x); }, 4);
  check<float>(
      "erfinv", [](Packet<float> x) { return erfinv(x); }, exact_erfinv, 3);
  check_each<float>(
      "lgamma", [](Packet<float> x) { return lgamma(x); },
      [](long double x) { return static_cast<long double>(ferrite::detail::log_gamma_of(static_cast<double>(x))); },
      [](float) { return 1.0; });
}

/// The arguments are positive, and for digamma away from its zeros; the scalar functions of tensor/kernel/special.h are
/// within 4 units of f64 (docs/numerics.md).
BOOST_AUTO_TEST_CASE(derivatives_of_lgamma_over_all_exponents) {
  check_each<float>(
      "digamma", [](Packet<float> x) { return digamma(x); },
      [](long double x) { return static_cast<long double>(ferrite::detail::digamma_of(static_cast<double>(x))); },
      [](float) { return 1.0; });
  check_each<float>(
      "trigamma", [](Packet<float> x) { return trigamma(x); },
      [](long double x) { return static_cast<long double>(ferrite::detail::polygamma_of(1, static_cast<double>(x))); },
      [](float) { return 1.0; });
}

BOOST_AUTO_TEST_CASE(special_functions_in_f64_over_all_exponents) {
  check<double>(
      "erfinv", [](Packet<double> x) { return erfinv(x); }, exact_erfinv, 2);
  check<double>(
      "sinc", [](Packet<double> x) { return sinc(x); }, exact_sinc, 3);
}

/// Checks every value in a packet with values of its size and far from it.
template <class T, class Exact>
void check_pairs(const char* name, Packet<T> (*f)(Packet<T>, Packet<T>), Exact exact, long double most) {
  static const std::vector<T> x = all_exponents<T>();
  constexpr auto width = static_cast<std::size_t>(kLanes<T>);
  long double worst = 0;
  int failures = 0;
  for (const std::size_t apart : {std::size_t{2}, std::size_t{37}, std::size_t{1001}, std::size_t{40013}})
    for (std::size_t i = 0; i < x.size(); i += width) {
      T b[width], y[width];
      for (std::size_t k = 0; k < width; ++k) b[k] = x[(i + k + apart) % x.size()];
      f(Packet<T>::load(&x[i]), Packet<T>::load(b)).store(y);
      for (std::size_t k = 0; k < width; ++k) {
        const long double e = exact(static_cast<long double>(x[i + k]), static_cast<long double>(b[k]));
        const long double off = units(y[k], e);
        worst = std::max(worst, off);
        if (off > most && ++failures < 6)
          BOOST_ERROR(name << " of " << x[i + k] << " and " << b[k] << " is " << y[k] << ": " << off << " units");
      }
    }
  BOOST_TEST_MESSAGE(name << ", " << kLanes<T> << " lanes: worst " << worst << " units");
  BOOST_TEST(failures == 0);
}
BOOST_AUTO_TEST_CASE(functions_of_two_over_all_exponents) {
  check_pairs<float>(
      "atan2", [](Packet<float> y, Packet<float> x) { return atan2(y, x); },
      [](long double y, long double x) { return std::atan2(y, x); }, 2);
  check_pairs<float>(
      "hypot", [](Packet<float> a, Packet<float> b) { return hypot(a, b); },
      [](long double a, long double b) { return std::hypot(a, b); }, 1.5);
}

template <class T>
void check_rounding() {
  check<T>(
      "floor", [](Packet<T> x) { return floor(x); }, [](long double x) { return std::floor(x); }, 0);
  check<T>(
      "ceil", [](Packet<T> x) { return ceil(x); }, [](long double x) { return std::ceil(x); }, 0);
  check<T>(
      "nearest", [](Packet<T> x) { return nearest(x); }, [](long double x) { return std::nearbyint(x); }, 0);
  check<T>(
      "trunc", [](Packet<T> x) { return trunc(x); }, [](long double x) { return std::trunc(x); }, 0);
}
BOOST_AUTO_TEST_CASE(rounding_is_exact_over_all_exponents) {
  check_rounding<float>();
  check_rounding<double>();
}

/// Checks the remainder of every value by a few others: it is std::fmod's, to the bit.
template <class T>
void check_remainders() {
  const std::vector<T> all = all_exponents<T>();
  constexpr auto width = static_cast<std::size_t>(kLanes<T>);
  int failures = 0;
  for (const double divisor : {1.0, -3.0, 0.1, 1e-3, 1e30, 7e-39, 1.0 * INFINITY, 0.0}) {
    const T b = static_cast<T>(divisor);
    for (std::size_t i = 0; i < all.size(); i += width) {
      T y[width];
      fmod(Packet<T>::load(&all[i]), Packet<T>(b)).store(y);
      for (std::size_t k = 0; k < width; ++k) {
        const T wanted = std::fmod(all[i + k], b);
        const bool same =
            std::isnan(wanted) ? std::isnan(y[k]) : y[k] == wanted && std::signbit(y[k]) == std::signbit(wanted);
        if (!same && ++failures < 6) BOOST_ERROR("fmod of " << all[i + k] << " by " << b << " is " << y[k]);
      }
    }
  }
  BOOST_TEST(failures == 0);
}
BOOST_AUTO_TEST_CASE(remainders_are_exact_over_all_exponents) {
  check_remainders<float>();
  check_remainders<double>();
}

BOOST_AUTO_TEST_SUITE_END()
