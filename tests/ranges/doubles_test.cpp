// The error bounds of functions of f64 that are computed in packets: at every exponent, both signs and mantissas
// between and at their ends, and at random arguments where they are neither their argument nor at their ends.
// References are the C library's long double, which has 64 digits on x86, and numbers of mpmath with 400 digits.
#include <random>

#include "ranges.h"

using namespace range_tests;

namespace {

using D = Packet<double>;
using Exact = long double (*)(long double);

struct Function {
  const char* name;
  D (*f)(D);
  Exact exact;
  double most;       ///< bound in units, where a multiply-add rounds once
  double most_else;  ///< bound in units elsewhere
  double low, high;  ///< range of random arguments
};
#define FERRITE_FUNCTION(name, most, most_else, low, high)                                                          \
  {                                                                                                                 \
#name, [](D v) { return name(v); }, [](long double v) -> long double { return std::name(v); }, most, most_else, \
                                                                                                low, high           \
  }

void check_at(const Function& function, const std::vector<double>& x) {
  const std::vector<double> y = applied(function.f, x);
  int failures = 0;
  long double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = function.exact(static_cast<long double>(x[i])), off = units(y[i], exact);
    worst = std::fmax(worst, off);
    if (off > (kRoundsOnce ? function.most : function.most_else) && ++failures < 6)
      BOOST_ERROR(function.name << " of " << std::hexfloat << x[i] << " is " << y[i] << ", exact "
                                << static_cast<double>(exact) << std::defaultfloat << ": " << off << " units");
  }
  BOOST_TEST_MESSAGE(function.name << " f64, " << x.size() << " values: worst " << worst << " units");
}
/// Returns random numbers, half of them uniform, half with random exponents.
std::vector<double> random_numbers(double low, double high) {
  std::mt19937_64 bits(5);
  std::vector<double> x(400'000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::ldexp(static_cast<double>(bits() >> 11), -53);
    const int exponent = static_cast<int>(bits() % 14) - 9;
    x[i] = i % 2 == 0 ? low + (high - low) * u
                      : std::ldexp(low < 0 && bits() % 2 == 0 ? -0.5 - u / 2 : 0.5 + u / 2, exponent);
    if (x[i] < low || x[i] > high) x[i] = low + (high - low) * u;
  }
  return x;
}
void check_all(const Function& function) {
  check_each<double>(function.name, function.f, function.exact,
                     [&](double) { return kRoundsOnce ? function.most : function.most_else; });
  check_at(function, random_numbers(function.low, function.high));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ranges)

BOOST_AUTO_TEST_CASE(exponentials_of_doubles) {
  for (const Function& function :
       {Function FERRITE_FUNCTION(exp, 1, 1, -750.0, 715.0),  //
        Function FERRITE_FUNCTION(exp2, 1, 1.1, -1080.0, 1030.0), Function FERRITE_FUNCTION(expm1, 1, 1, -40.0, 40.0),
        Function FERRITE_FUNCTION(tanh, 1.3, 1.3, -20.0, 20.0)})
    check_all(function);
  check_all({"sigmoid", [](D x) { return sigmoid(x); }, exact_sigmoid, 1, 1, -750, 40});
  check_all({"softplus", [](D x) { return softplus(x); }, exact_softplus, 1.3, 1.3, -750, 40});
}
BOOST_AUTO_TEST_CASE(logarithms_of_doubles) {
  for (const Function& function :
       {Function FERRITE_FUNCTION(log, 1, 1, 0.0, 4.0), Function FERRITE_FUNCTION(log2, 1, 1.2, 0.0, 4.0),
        Function FERRITE_FUNCTION(log10, 1, 1.1, 0.0, 4.0), Function FERRITE_FUNCTION(log1p, 1, 1, -1.0, 4.0)})
    check_all(function);
}
/// Logarithms of powers of two to the base 2, and of powers of ten to the base 10, are whole numbers.
BOOST_AUTO_TEST_CASE(logarithms_of_powers_of_doubles_are_whole) {
  const auto at = [](D (*f)(D), double x) { return applied(f, std::vector<double>(64, x))[5]; };
  for (int n = -1074; n < 1024; ++n)
    BOOST_TEST(at([](D x) { return log2(x); }, std::ldexp(1.0, n)) == static_cast<double>(n));
  double power = 1;
  for (int n = 0; n <= 22; ++n, power *= 10)
    BOOST_TEST(at([](D x) { return log10(x); }, power) == static_cast<double>(n));
}

BOOST_AUTO_TEST_CASE(angles_of_doubles) {
  for (const Function& function :
       {Function FERRITE_FUNCTION(sin, 1, 1, -1e3, 1e3), Function FERRITE_FUNCTION(cos, 1, 1, -1e3, 1e3),
        Function FERRITE_FUNCTION(tan, 1.4, 1.7, -1e3, 1e3)})
    check_all(function);
}
/// The arguments are the doubles near multiples of pi / 2, where either sine or cosine is small, each as the only such
/// one of its packet, so that numbers of every size meet small ones there.
BOOST_AUTO_TEST_CASE(angles_of_doubles_near_quarter_turns) {
  std::vector<double> numbers = {0x1p20, 0x1p30, std::nextafter(0x1p20, 0.0), std::nextafter(0x1p30, 0.0)};
  for (long double turns = 1; turns < 1e300L; turns = std::ceil(turns * 1.01L)) {
    const auto near = static_cast<double>(turns * (std::numbers::pi_v<long double> / 2));
    for (const double x : {near, std::nextafter(near, 0.0), -near}) numbers.push_back(x);
  }
  constexpr auto width = static_cast<std::size_t>(kLanes<double>);
  std::vector<double> x(numbers.size() * width, 0.25);
  for (std::size_t i = 0; i < numbers.size(); ++i) x[i * width + i % width] = numbers[i];
  for (const Function& function :
       {Function FERRITE_FUNCTION(sin, 1, 1, 0, 0), Function FERRITE_FUNCTION(cos, 1, 1, 0, 0),
        Function FERRITE_FUNCTION(tan, 1.4, 1.7, 0, 0)})
    check_at(function, x);
}
/// The references are numbers of mpmath with 400 digits; 6381956970095103 2^797 is the double nearest to a multiple of
/// pi / 2.
BOOST_AUTO_TEST_CASE(angles_of_huge_doubles) {
  struct Known {
    double x;
    long double sin, cos, tan;
  };
  constexpr Known known[] = {
      {0x1.6ac5b262ca1ffp+849, 1.0L, -4.687165924254627611123e-19L, -2133485385753703843.675L},
      {1e300, -0.8178819121159085970459L, -0.5753861119575490466882L, 1.421448823874724412367L},
      {0x1.fffffffffffffp+1023, 0.004961954789184061790503L, -0.9999876894265599374649L, -0.004962015874444894900501L},
      {0x1.00000002p+30, -0.1645874106988631573947L, 0.9863625014361828148419L, -0.166863004685617486099L},
      {0x1.000004p+20, 0.5537208420860510770012L, 0.8327023652179177558364L, 0.664968499208168616108L},
      {123456789012345.0, -0.5986572942477425463542L, 0.8010052709214664082493L, -0.7473824654849707921339L},
  };
  for (const Known& k : known)
    for (const double sign : {1.0, -1.0}) {
      const std::vector<double> x(64, sign * k.x);
      BOOST_TEST(units(applied<double>([](D v) { return sin(v); }, x)[3], sign * k.sin) < 1, k.x);
      BOOST_TEST(units(applied<double>([](D v) { return cos(v); }, x)[3], k.cos) < 1, k.x);
      BOOST_TEST(units(applied<double>([](D v) { return tan(v); }, x)[3], sign * k.tan) < 1.7L, k.x);
    }
}

/// The arguments are every exponent of x with some mantissas, both signs, with exponents of every size, whole ones and
/// halves, and those that lead to the ends of doubles, including C99's special values (F.9.4.4). The reference is powl.
BOOST_AUTO_TEST_CASE(powers_of_doubles) {
  std::vector<double> bases, exponents = {0,
                                          1,
                                          2,
                                          3,
                                          0.5,
                                          1.5,
                                          2.5,
                                          7,
                                          20,
                                          33,
                                          1e-10,
                                          1e-3,
                                          1e9,
                                          1e300,
                                          1.0 / 3,
                                          1023.5,
                                          9007199254740991,
                                          1e16,
                                          0.1,
                                          1.0001,
                                          1e-300,
                                          4503599627370495.5,
                                          INFINITY,
                                          NAN};
  for (std::size_t i = exponents.size(); i-- > 0;) exponents.push_back(-exponents[i]);
  for (std::uint64_t e = 0; e < 2048; ++e)
    for (std::uint64_t m = 0; m < 4; ++m)
      for (const std::uint64_t sign : {0U, 1U})
        bases.push_back(
            std::bit_cast<double>(sign << 63 | e << 52 | (m == 3 ? 0xfffffffffffffU : m * 0x5a827999fcef3U)));
  long double worst = 0;
  int failures = 0;
  constexpr auto width = static_cast<std::size_t>(kLanes<double>);
  const auto check_pairs = [&](const std::vector<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); i += width) {
      double z[width];
      pow(D::load(&x[i]), D::load(&y[i])).store(z);
      for (std::size_t k = 0; k < width; ++k) {
        const long double exact = std::pow(static_cast<long double>(x[i + k]), static_cast<long double>(y[i + k]));
        const long double off = units(z[k], exact);
        worst = std::fmax(worst, off);
        const bool signs_fit = std::isnan(exact) || std::signbit(z[k]) == std::signbit(exact);
        if ((off > (kRoundsOnce ? 1.2L : 1.3L) || !signs_fit) && ++failures < 6)
          BOOST_ERROR(x[i + k] << " to the power " << y[i + k] << " is " << z[k] << ", exact " << exact << ": " << off);
      }
    }
  };
  for (const double y : exponents) check_pairs(bases, std::vector<double>(bases.size(), y));
  std::mt19937_64 bits(3);
  std::vector<double> x, y;
  for (int i = 0; i < 400'000; ++i) {
    const double u = std::ldexp(static_cast<double>(bits() >> 11), -53),
                 v = std::ldexp(static_cast<double>(bits() >> 11), -53);
    x.push_back(std::exp2((u - 0.5) * std::ldexp(1.0, static_cast<int>(i % 12))));
    const double log = std::log2(x.back());
    y.push_back(log == 0 ? 1 : (v * 2110 - 1080) / log);
  }
  check_pairs(x, y);
  BOOST_TEST(failures == 0);
  BOOST_TEST_MESSAGE("pow f64, " << kLanes<double> << " lanes: worst " << worst << " units");
}

BOOST_AUTO_TEST_SUITE_END()
