// The bounds in the headers of packets for exponentials, logarithms, angles and powers, for every exponent of f32 and
// f64, both signs, and mantissas between and at their ends.
#include "ranges.h"

using namespace range_tests;

BOOST_AUTO_TEST_SUITE(ranges)

BOOST_AUTO_TEST_CASE(tanh_over_all_exponents) {
  const auto exact = [](long double x) { return std::tanh(x); };
  check<float>(
      "tanh", [](Packet<float> x) { return tanh(x); }, exact, 2.5);
  check<double>(
      "tanh", [](Packet<double> x) { return tanh(x); }, exact, 1.3);
}

BOOST_AUTO_TEST_CASE(silu_over_all_exponents) {
  const auto exact = [](long double x) { return x == -INFINITY ? NAN : x * exact_sigmoid(x); };
  check<float>(
      "silu", [](Packet<float> x) { return silu(x); }, exact, 4);
  check<double>(
      "silu", [](Packet<double> x) { return silu(x); }, exact, 3);
}
/// Where the exact f32 is denormal, 0 is accepted. Near 1 the value is the nearest one except for ties: the gate of a
/// slowly decaying state must not be off in the same direction for thousands of steps.
BOOST_AUTO_TEST_CASE(sigmoid_over_all_exponents) {
  check_each<float>(
      "sigmoid", [](Packet<float> x) { return sigmoid(x); }, exact_sigmoid,
      [](float x) {
        if (exact_sigmoid(x) < std::numeric_limits<float>::min()) return 0x1p60;
        return x > 4 ? 0.6 : 2.5;
      });
  check_each<double>(
      "sigmoid", [](Packet<double> x) { return sigmoid(x); }, exact_sigmoid,
      [](double x) { return x > 4 ? 0.6 : 1.0; });
}

BOOST_AUTO_TEST_CASE(gelu_over_all_exponents) {
  const auto bound = [](double most, double growth, auto zero) {
    using T = decltype(zero);
    return [=](T x) { return x < 0 ? most + growth * static_cast<double>(x) * static_cast<double>(x) : most; };
  };
  check_each<float>(
      "gelu", [](Packet<float> x) { return gelu(x); }, exact_gelu, bound(6, 1.3, 0.0F));
  check_each<double>(
      "gelu", [](Packet<double> x) { return gelu(x); }, exact_gelu,
      [](double x) { return x < 0 ? std::min(6.0, 3 + 2 * x * x) : 3.0; });
}

BOOST_AUTO_TEST_CASE(erf_over_all_exponents) {
  check<float>(
      "erf", [](Packet<float> x) { return erf(x); }, [](long double x) { return std::erf(x); }, 4);
}

BOOST_AUTO_TEST_CASE(exponentials_over_all_exponents) {
  check<float>(
      "exp", [](Packet<float> x) { return exp(x); }, [](long double x) { return std::exp(x); }, 1);
  check<float>(
      "exp2", [](Packet<float> x) { return exp2(x); }, [](long double x) { return std::exp2(x); },
      kRoundsOnce ? 1 : 1.1);
  check<float>(
      "expm1", [](Packet<float> x) { return expm1(x); }, [](long double x) { return std::expm1(x); },
      kRoundsOnce ? 1 : 1.2);
}

/// The arguments are all floats where 1 is about half of the last digit of e^x.
BOOST_AUTO_TEST_CASE(one_is_taken_from_large_exponentials) {
  std::vector<float> x;
  for (float v = 17.0F; v < 17.35F; v = std::nextafter(v, 18.0F)) x.push_back(v);
  x.resize(x.size() / 64 * 64);
  const std::vector<float> y = applied<float>([](Packet<float> v) { return expm1(v); }, x);
  long double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::fmax(worst, units(y[i], std::expm1(static_cast<long double>(x[i]))));
  BOOST_TEST(worst < 1);
}

BOOST_AUTO_TEST_CASE(logarithms_over_all_exponents) {
  check<float>(
      "log", [](Packet<float> x) { return log(x); }, [](long double x) { return std::log(x); }, 1);
  check<float>(
      "log1p", [](Packet<float> x) { return log1p(x); }, [](long double x) { return std::log1p(x); }, 1);
  check<float>(
      "log2", [](Packet<float> x) { return log2(x); }, [](long double x) { return std::log2(x); },
      kRoundsOnce ? 1 : 1.2);
  check<float>(
      "log10", [](Packet<float> x) { return log10(x); }, [](long double x) { return std::log10(x); }, 1);
}
/// The arguments are all floats in a part of the series' range where its terms are largest relative to the result, and
/// in one where the sum in log1p is rounded: few arguments come near the bounds, and the sample of exponents holds
/// none.
BOOST_AUTO_TEST_CASE(logarithms_where_they_lose_most) {
  std::vector<float> x;
  for (float v = 1.405F; v < 1.4143F; v = std::nextafter(v, 2.0F)) x.push_back(v);
  x.resize(x.size() / 64 * 64);
  const std::vector<float> y = applied<float>([](Packet<float> v) { return log2(v); }, x);
  const std::vector<float> z = applied<float>([](Packet<float> v) { return log10(v); }, x);
  long double two = 0, ten = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    two = std::fmax(two, units(y[i], std::log2(static_cast<long double>(x[i]))));
    ten = std::fmax(ten, units(z[i], std::log10(static_cast<long double>(x[i]))));
  }
  std::vector<float> less;
  for (float v = 0.4205F; v < 0.4225F; v = std::nextafter(v, 1.0F)) less.push_back(v);
  less.resize(less.size() / 64 * 64);
  const std::vector<float> one = applied<float>([](Packet<float> v) { return log1p(v); }, less);
  long double near = 0;
  for (std::size_t i = 0; i < less.size(); ++i)
    near = std::fmax(near, units(one[i], std::log1p(static_cast<long double>(less[i]))));
  BOOST_TEST(near < 1);
  BOOST_TEST(two < (kRoundsOnce ? 1 : 1.2L));
  BOOST_TEST(ten < 1);
}
/// Logarithms of powers of two to the base 2, and of powers of ten to the base 10, are whole numbers.
BOOST_AUTO_TEST_CASE(logarithms_of_powers_are_whole) {
  const auto at = [](Packet<float> (*f)(Packet<float>), float x) { return applied(f, std::vector<float>(64, x))[5]; };
  for (int n = -149; n < 128; ++n)
    BOOST_TEST(at([](Packet<float> x) { return log2(x); }, std::ldexp(1.0F, n)) == static_cast<float>(n));
  float power = 1;
  for (int n = 0; n <= 10; ++n, power *= 10)
    BOOST_TEST(at([](Packet<float> x) { return log10(x); }, power) == static_cast<float>(n));
}

BOOST_AUTO_TEST_CASE(angles_over_all_exponents) {
  check<float>(
      "sin", [](Packet<float> x) { return sin(x); }, [](long double x) { return std::sin(x); }, 1.6);
  check<float>(
      "cos", [](Packet<float> x) { return cos(x); }, [](long double x) { return std::cos(x); }, 1.6);
  check<float>(
      "tan", [](Packet<float> x) { return tan(x); }, [](long double x) { return std::tan(x); },
      kRoundsOnce ? 1.3 : 2.1);
  check<float>(
      "asin", [](Packet<float> x) { return asin(x); }, [](long double x) { return std::asin(x); }, 2.5);
  check<float>(
      "acos", [](Packet<float> x) { return acos(x); }, [](long double x) { return std::acos(x); }, 2);
  check<float>(
      "atan", [](Packet<float> x) { return atan(x); }, [](long double x) { return std::atan(x); }, 2);
  check_each<float>(
      "sinc", [](Packet<float> x) { return sinc(x); }, exact_sinc, [](float) { return 2.5; });
}

/// The arguments are the floats near multiples of pi / 2, where either sine or cosine is small and the remainder of x
/// has few digits, each as the only such one of its packet, so that numbers of every size meet small ones there.
/// 16367173 2^72 is the float nearest to such a multiple.
BOOST_AUTO_TEST_CASE(angles_near_quarter_turns) {
  std::vector<float> numbers = {16367173 * 0x1p72F, -16367173 * 0x1p72F, 1e5F, 0x1p27F, std::nextafter(0x1p27F, 0.0F)};
  for (double turns = 1; turns < 1e30; turns = std::ceil(turns * 1.01)) {
    const auto near = static_cast<float>(turns * (std::numbers::pi / 2));
    for (const float x : {near, std::nextafter(near, 0.0F), -near}) numbers.push_back(x);
  }
  struct Function {
    const char* name;
    Packet<float> (*f)(Packet<float>);
    long double (*exact)(long double);
  };
  const Function functions[] = {
      {"sin", [](Packet<float> x) { return sin(x); }, [](long double x) { return std::sin(x); }},
      {"cos", [](Packet<float> x) { return cos(x); }, [](long double x) { return std::cos(x); }},
      {"tan", [](Packet<float> x) { return tan(x); }, [](long double x) { return std::tan(x); }}};
  constexpr auto width = static_cast<std::size_t>(kLanes<float>);
  for (const Function& function : functions) {
    int failures = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::vector<float> x(width, 0.25F);
      x[i % width] = numbers[i];
      const std::vector<float> y = applied(function.f, x);
      for (std::size_t k = 0; k < width; ++k) {
        const long double exact = function.exact(x[k]), off = units(y[k], exact);
        if (off > (kRoundsOnce ? 2 : 2.1L) && ++failures < 6)
          BOOST_ERROR(function.name << " of " << x[k] << " is " << y[k] << ", exact " << exact << ": " << off);
      }
    }
    BOOST_TEST(failures == 0, function.name);
  }
}

/// The arguments are every exponent of x with 32 mantissas, both signs, with exponents of every size, whole ones and
/// halves, and those that lead to the ends of floats, including C99's special values (F.9.4.4). The reference is powl,
/// which follows Annex F.
BOOST_AUTO_TEST_CASE(powers_over_all_exponents) {
  std::vector<float> bases,
      exponents = {0,    1,      2,     3,       0.5F,     1.5F,       2.5F,     7,       20,
                   33,   1e-10F, 1e-3F, 0.3333F, 127,      128,        149.5F,   8388609, 16777215,
                   1e9F, 1e38F,  0.1F,  1.0001F, 16777216, 8388607.5F, INFINITY, NAN};
  for (std::size_t i = exponents.size(); i-- > 0;) exponents.push_back(-exponents[i]);
  for (std::uint32_t e = 0; e < 256; ++e)
    for (std::uint32_t m = 0; m < 32; ++m)
      for (const std::uint32_t sign : {0U, 1U})
        bases.push_back(std::bit_cast<float>(sign << 31 | e << 23 | (m == 31 ? 0x7fffffU : m * 0x2a5b1U)));
  long double worst = 0;
  int failures = 0;
  constexpr auto width = static_cast<std::size_t>(kLanes<float>);
  const auto check_all = [&](const std::vector<float>& x, const std::vector<float>& y) {
    for (std::size_t i = 0; i < x.size(); i += width) {
      float z[width];
      pow(Packet<float>::load(&x[i]), Packet<float>::load(&y[i])).store(z);
      for (std::size_t k = 0; k < width; ++k) {
        const long double exact = std::pow(static_cast<long double>(x[i + k]), static_cast<long double>(y[i + k]));
        const long double off = units(z[k], exact);
        worst = std::fmax(worst, off);
        const bool signs_fit = std::isnan(exact) || std::signbit(z[k]) == std::signbit(exact);
        if ((off > 2 || !signs_fit) && ++failures < 6)
          BOOST_ERROR(x[i + k] << " to the power " << y[i + k] << " is " << z[k] << ", exact " << exact);
      }
    }
  };
  for (const float y : exponents) check_all(bases, std::vector<float>(bases.size(), y));
  for (const float end : {127.99F, 126.5F, -125.9F, -126.3F, -140.7F, -149.2F, 60.1F, 0.3F}) {
    std::vector<float> x, y;
    for (const float base : bases)
      if (base > 0 && base < INFINITY && base != 1) x.push_back(base), y.push_back(end / std::log2(base));
    while (x.size() % width != 0) x.push_back(2), y.push_back(3);
    check_all(x, y);
  }
  BOOST_TEST(failures == 0);
  BOOST_TEST_MESSAGE("pow f32, " << kLanes<float> << " lanes: worst " << worst << " units");
}

BOOST_AUTO_TEST_SUITE_END()
