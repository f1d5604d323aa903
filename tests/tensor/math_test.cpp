// Elementwise functions: wrong calls with their full messages, integers, and points that no fixture has.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <numbers>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/math.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::check_refused;

namespace {

const Tensor kVector = ones({3}), kDoubles = ones({3}, Dtype::f64), kIntegers = ones({3}, Dtype::i64);
const Tensor kTruth = Tensor::from({true, true, true}), kZeros = Tensor::from({std::int64_t{1}, std::int64_t{0}});

}  // namespace

BOOST_AUTO_TEST_SUITE(math_functions)

BOOST_AUTO_TEST_CASE(dtypes) {
  check_refused<DtypeError>({
      {[] { tan(kIntegers); }, "tan: dtype i64 is not supported; it takes f32 or f64; cast it first"},
      {[] { atan2(kVector, kDoubles); }, "atan2: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { fmod(kTruth, kTruth); }, "fmod: dtype bool is not supported; it takes a number"},
      {[] { sinc(kIntegers); }, "sinc: dtype i64 is not supported; cast it to a float first"},
      {[] { round(kIntegers, 1); }, "round: dtype i64 is not supported; cast it to a float first"},
      {[] { frac(kIntegers); }, "frac: dtype i64 is not supported; cast it to a float first"},
      {[] { polygamma(1, kIntegers); }, "polygamma: dtype i64 is not supported; cast it to a float first"},
      {[] { logit(kIntegers); }, "logit: dtype i64 is not supported; cast it to a float first"},
      {[] { logaddexp(kVector, kDoubles); }, "logaddexp: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { logaddexp2(kIntegers, kIntegers); }, "logaddexp2: dtype i64 is not supported; cast it to a float first"},
      {[] { xlogy(kVector, kDoubles); }, "xlogy: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { lerp(kVector, kDoubles, 0.5); }, "lerp: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { lerp(kVector, kVector, kDoubles); }, "lerp: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { lerp(kIntegers, kIntegers, 0.5); }, "lerp: dtype i64 is not supported; cast it to a float first"},
      {[] { nan_to_num(kIntegers); }, "nan_to_num: dtype i64 is not supported; cast it to a float first"},
      {[] { heaviside(kVector, kDoubles); }, "heaviside: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { heaviside(kTruth, kTruth); }, "heaviside: bool is not supported; it takes numbers"},
      {[] { isclose(kVector, kDoubles); }, "isclose: dtypes differ: f32[3] and f64[3]; cast one of them"},
      {[] { bitwise_and(kVector, kVector); }, "bitwise_and: f32 is not supported; it takes integers and bool"},
      {[] { bitwise_or(kIntegers, kTruth); }, "bitwise_or: dtypes differ: i64[3] and bool[3]; cast one of them"},
      {[] { bitwise_not(kVector); }, "bitwise_not: f32 is not supported; it takes integers"},
      {[] { bitwise_left_shift(kTruth, kTruth); }, "bitwise_left_shift: bool is not supported; it takes integers"},
      {[] { bitwise_right_shift(kVector, 1); }, "bitwise_right_shift: f32 is not supported; it takes integers"},
  });
}

BOOST_AUTO_TEST_CASE(values) {
  check_refused<ValueError>({
      {[] { round(kVector, 301); }, "round: decimals must lie in -300..300, got 301"},
      {[] { polygamma(21, kVector); }, "polygamma: n must lie in 0..20, got 21"},
      {[] { polygamma(-1, kVector); }, "polygamma: n must lie in 0..20, got -1"},
      {[] { logit(kVector, 0.75); }, "logit: epsilon must lie in 0..0.5, got 0.75"},
      {[] { isclose(kVector, kVector, {.atol = -1}); }, "isclose: tolerances must not be negative, got -1.0"},
      {[] { fmod(kIntegers, 0); }, "fmod: the divisor of integers must not be 0"},
      {[] { remainder(kIntegers, 0); }, "remainder: the divisor of integers must not be 0"},
      {[] { floor_divide(kIntegers, 0); }, "floor_divide: the divisor of integers must not be 0"},
      {[] { fmod(7, kZeros); }, "fmod: the divisor of integers must not be 0"},
      {[] { remainder(7, kZeros); }, "remainder: the divisor of integers must not be 0"},
      {[] { floor_divide(7, kZeros); }, "floor_divide: the divisor of integers must not be 0"},
  });
  check_refused<ShapeError>({
      {[] { logaddexp(kVector, ones({2})); }, "logaddexp: shapes do not broadcast: [3] with [2]; extent 3 meets 2"},
      {[] { atan2(kVector, ones({2})); }, "atan2: shapes do not broadcast: [3] with [2]; extent 3 meets 2"},
  });
}

/// The check in a program runs in every call.
BOOST_AUTO_TEST_CASE(compiled_functions_refuse_divisors_0_of_integers) {
  const auto f = compile([](const Tensor& a, const Tensor& b) { return remainder(a, b); });
  const Tensor a = Tensor::from({std::int64_t{-7}, std::int64_t{7}});
  BOOST_TEST(f(a, Tensor::from({std::int64_t{3}, std::int64_t{-3}})).to_vector<std::int64_t>() ==
                 (std::vector<std::int64_t>{2, -2}),
             boost::test_tools::per_element());
  check_refused<ValueError>({{[&] { f(a, kZeros); }, "remainder: the divisor of integers must not be 0"}});
}

/// C++ does not define this value.
BOOST_AUTO_TEST_CASE(the_least_integer_by_minus_1_wraps) {
  const Tensor least = Tensor::from({std::numeric_limits<std::int64_t>::min()});
  BOOST_TEST(floor_divide(least, -1).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  BOOST_TEST(remainder(least, -1).item<std::int64_t>() == 0);
  BOOST_TEST(fmod(least, -1).item<std::int64_t>() == 0);
}

/// Tests zeta(2) at 1, poles at whole numbers up to 0, and the limit at infinity.
BOOST_AUTO_TEST_CASE(polygamma_at_its_ends) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from({1.0, 0.0, -3.0, infinity}, {4});
  const double zeta2 = std::numbers::pi * std::numbers::pi / 6;
  BOOST_TEST(polygamma(1, x).to_vector<double>() == (std::vector<double>{zeta2, infinity, infinity, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(polygamma(2, slice(x, 0, 1)).to_vector<double>() == (std::vector<double>{-infinity, -infinity, 0}),
             boost::test_tools::per_element());
}

/// PyTorch has NaN here.
BOOST_AUTO_TEST_CASE(subgradients_are_0) {
  const auto slope = [](const auto& f, double at) {
    return grad([&](const Tensor& x) { return sum(f(x)); })(full({1}, at, Dtype::f64)).template item<double>();
  };
  BOOST_TEST(slope([](const Tensor& x) { return hypot(x, 0 * x); }, 0) == 0);
  BOOST_TEST(slope([](const Tensor& y) { return xlogy(zeros({1}, Dtype::f64), y); }, 0) == 0);
  BOOST_TEST(slope([](const Tensor& x) { return logaddexp(x, x); }, -std::numeric_limits<double>::infinity()) == 1);
}

BOOST_AUTO_TEST_CASE(a_power_of_2_is_the_square) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const Tensor x = uniform({1000}, {.seed = 4}, -50, 50, dtype);
    const std::vector<double> y = cast(square(x), Dtype::f64).to_vector<double>();
    BOOST_TEST((cast(pow(x, 2), Dtype::f64).to_vector<double>() == y));
    BOOST_TEST((cast(pow(x, full({1000}, 2, dtype)), Dtype::f64).to_vector<double>() == y));
  }
}

BOOST_AUTO_TEST_CASE(round_to_decimals) {
  const Tensor x = Tensor::from({1.25, -1.35, 149.0, 150.0}, {4});
  BOOST_TEST(round(x, 1).to_vector<double>() == (std::vector<double>{1.2, -1.4, 149, 150}),
             boost::test_tools::per_element());
  BOOST_TEST(round(x, -2).to_vector<double>() == (std::vector<double>{0, -0.0, 100, 200}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
