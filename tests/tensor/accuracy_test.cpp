// Digits where a formula loses them: near an end, far out, next to a large mean. Expected numbers are computed by
// mpmath with 50 digits from the expressions in the cases, or by tests/data/make_accuracy_values.py; variances by a
// loop in doubles.
#include <limits>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/signal.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor numbers(const std::vector<double>& v) { return Tensor::from(v, {std::ssize(v)}); }
Tensor floats(const std::vector<double>& v) { return cast(numbers(v), Dtype::f32); }

/// Checks that every element is within a relative error of the expected one.
void check_digits(const char* name, const Tensor& got, const std::vector<double>& expected, double share) {
  const std::vector<double> values = support::doubles(got);
  BOOST_TEST_REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(std::fabs(values[i] - expected[i]) <= share * std::fabs(expected[i]),
               name << " " << i << ": " << values[i] << " for " << expected[i]);
}
Tensor slope(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  Tape tape;
  const Tensor y = tape.watch(x);
  return tape.grad({{sum(f(y))}}, {y})[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(accuracy)

/// The function is erfinv(y).
BOOST_AUTO_TEST_CASE(erfinv_keeps_its_digits_near_1) {
  const Tensor y = numbers({0.5, 1 - 1e-9, 1 - 1e-12, 1 - 1e-15, 1 - 0x1p-53, -(1 - 1e-15)});
  check_digits("erfinv", erfinv(y),
               {0.47693627620446987338, 4.3200053881053620459, 5.0420318985726961301, 5.6759157397447131788,
                5.8635847487551679272, -5.6759157397447131788},
               5e-16);
}

/// The function is x / 2 erfc(-x / sqrt(2)).
BOOST_AUTO_TEST_CASE(gelu_keeps_its_digits_far_out) {
  check_digits("gelu", gelu(numbers({-1.5, -5, -13, -20, -27, -37.5})),
               {-0.10021080190328709901, -1.4332578593959695584e-6, -7.952313719414843587e-38,
                -5.5072482372124673902e-88, -1.9951598718589549295e-159, -1.7270073785932330664e-306},
               2e-15);
}

/// Expected values: make_accuracy_values.py. A reflection has the digits of a power of a cotangent: 40 units in the
/// last place, and none near halves, where the two terms of even n cancel.
BOOST_AUTO_TEST_CASE(polygamma_keeps_its_digits_below_0_and_far_out) {
  struct Value {
    int n;
    double x, expected;
  };
  const Value values[] = {{1, -2.5000000001, 9.5392466449999441609}, {2, -3.4999, -0.042078032912843002034},
                          {2, -0.001, 1999999997.5893796659},        {2, -77.25, 124.02494130377838147},
                          {3, -0.3, 766.61989041916858035},          {5, -4.1, 120000297.89790146015},
                          {5, -1e-05, 1.199999999999999411e+32},     {10, -2.5, -4.0266930412329947594},
                          {10, -7.75, -15220204740668.341334},       {20, -1.5, -10709198259.124132459},
                          {20, -6.9, -2.4329020081768215115e+39},    {20, -40.25, 1.0700016187896297695e+31},
                          {1, -1000000.5, 9.8696034010903586179},    {1, 1e+200, 1.0000000000000000303e-200},
                          {2, 30.0, -0.001148765203728599844},       {20, 3e15, -3.4887474078966549066e-293}};
  for (const Value& v : values)
    check_digits(("polygamma " + std::to_string(v.n)).c_str(), polygamma(v.n, numbers({v.x})), {v.expected}, 1e-15);
}

/// Expected values near the zero, which is not a double: make_accuracy_values.py.
BOOST_AUTO_TEST_CASE(digamma_keeps_its_digits_near_its_zero) {
  check_digits("digamma", digamma(numbers({1.4616321449683622, 1.4616321449683624, 1.46, 1.5, 1, 2, 1.25})),
               {-9.2412655217294275168e-17, 1.2245374622004069031e-16, -0.0015805619870834521062,
                0.036489973978576520559, -0.57721566490153286061, 0.42278433509846713939, -0.22745353337626540809},
               1e-15);
}

/// Expected values: make_accuracy_values.py. 1 + tanh(u) has no digits left at -5.
BOOST_AUTO_TEST_CASE(gelu_in_its_form_by_tanh_keeps_its_digits_below_0) {
  const std::vector<double> x = {-0.5, -2, -3, -4, -5, -8};
  const std::vector<double> expected = {-0.15428599017485607796,   -0.045402305912224981219,
                                        -0.0036373920817730188378, -0.000070245948192372689818,
                                        -2.2917961966295060456e-7, -3.107782937501111218e-21};
  check_digits("f64", gelu(numbers(x), GeluForm::tanh), expected, 2e-14);
  check_digits("f32", gelu(floats(x), GeluForm::tanh), expected, 1e-5);
}

/// Expected values: make_accuracy_values.py. The sine of a rounded pi x is off by more than 1 from 2^52 on, and NaN at
/// the end.
BOOST_AUTO_TEST_CASE(sinc_keeps_its_digits_far_out) {
  check_digits("sinc", sinc(numbers({2.5, -7.25, 1000.5, 123456.125, 0x1p50 + 0.25, 1e-3})),
               {0.12732395447351626862, -0.031045390212314002398, 0.0003181508107784014708, 9.8668186613304184494e-7,
                1.9991038072866415424e-16, 0.99999835506674489401},
               1e-15);
  BOOST_TEST(support::doubles(abs(sinc(numbers({3, -1e15, 1e308})))) == std::vector<double>(3, 0.0));
}

/// The mean of numbers near 1e6 is a multiple of 1/16 in f32; its error must not add to the variance.
BOOST_AUTO_TEST_CASE(variances_beside_a_large_mean) {
  for (const double centre : {1e6, -3e5, 0.0})
    for (const std::int64_t n : {7, 1000, 100003}) {
      const Tensor x = cast(normal({n}, {.seed = 3}, 0, 1, Dtype::f64) + centre, Dtype::f32);
      const std::vector<double> v = support::doubles(x);
      double mean = 0, squares = 0;
      for (const double t : v) mean += t / static_cast<double>(n);
      for (const double t : v) squares += (t - mean) * (t - mean);
      const double expected = squares / static_cast<double>(n - 1);
      check_digits("var", reshape(var(x), {1}), {expected}, 1e-6);
      check_digits("stddev", reshape(stddev(x), {1}), {std::sqrt(expected)}, 1e-6);
      // Along the first axis, by the operations of the composition; and compiled.
      const Tensor column = reshape(x, {n, 1});
      check_digits("var of a column", var(column, {0}), {expected}, 1e-6);
      const auto compiled = compile([](const Tensor& t) { return var(t, {0}); });
      BOOST_TEST(identical(compiled(x), var(x, {0})));
      // The derivative is 2 (x - mean) / (n - 1).
      const std::vector<double> g = support::doubles(slope([](const Tensor& t) { return var(t); }, x));
      double worst = 0;
      for (std::size_t i = 0; i < v.size(); ++i)
        worst = std::max(worst, std::fabs(g[i] * static_cast<double>(n - 1) / 2 - (v[i] - mean)));
      BOOST_TEST(worst < 1e-5);
    }
  BOOST_TEST(var(full({1000}, 0.1)).item<float>() < 1e-20F);
  BOOST_TEST(std::isfinite(stddev(full({1000}, 0.1)).item<float>()));
}

/// At (0, 0) the gradient is 0, as PyTorch's; where squares leave the floats PyTorch's is NaN or 0.
BOOST_AUTO_TEST_CASE(angles_of_nothing_have_no_gradient) {
  const auto gradients = [](const Tensor& y, const Tensor& x) {
    Tape tape;
    const Tensor a = tape.watch(y), b = tape.watch(x);
    return tape.grad({{sum(atan2(a, b))}}, {a, b});
  };
  const Tensor y = floats({0, -0.0, 3, 3e-30, 3e30, kInfinity, 1}), x = floats({0, 0, 4, 4e-30, 4e30, 1, -kInfinity});
  const Tensors g = gradients(y, x);
  check_digits("of y", g[0], {0, 0, 4.0 / 25, 4e30 / 25, 4e-30 / 25, 0, 0}, 3e-7);
  check_digits("of x", g[1], {0, 0, -3.0 / 25, -3e30 / 25, -3e-30 / 25, 0, 0}, 3e-7);
}

BOOST_AUTO_TEST_CASE(phases_of_silence_have_no_gradient) {
  Tape tape;
  const Tensor x = tape.watch(zeros({64}));
  const Tensor s = stft(x, 16, hann_window(16), {.hop_length = 4});
  const Tensor phase = atan2(select(s, -1, 1), select(s, -1, 0));
  const Tensor g = tape.grad({{sum(square(phase) + phase)}}, {x})[0];
  BOOST_TEST(identical(g, zeros({64})));
}

/// An infinite neighbour is the quantile; between both infinities there is none. numpy.quantile and torch.quantile
/// return NaN.
BOOST_AUTO_TEST_CASE(quantiles_beside_infinity) {
  const Tensor x = numbers({-kInfinity, -kInfinity, 1, 2, kInfinity});
  const Tensor q = numbers({0, 0.125, 0.375, 0.5, 0.625, 0.75, 0.875, 1});
  BOOST_TEST(within(quantile(x, q), numbers({-kInfinity, -kInfinity, -kInfinity, 1, 1.5, 2, kInfinity, kInfinity}), 0));
  BOOST_TEST(within(quantile(x, q, {.interpolation = QuantileInterpolation::midpoint}),
                    numbers({-kInfinity, -kInfinity, -kInfinity, 1, 1.5, 2, kInfinity, kInfinity}), 0));
  BOOST_TEST(std::isnan(quantile(numbers({-kInfinity, kInfinity}), 0.5).item<double>()));
  BOOST_TEST(within(quantile(numbers({kInfinity, kInfinity}), 0.5), full({}, kInfinity, Dtype::f64), 0));
  const Tensor g = slope([&](const Tensor& t) { return quantile(t, q); }, x);
  for (const double v : support::doubles(g)) BOOST_TEST(std::isfinite(v));
  // Shares of the finite ones: all of 1 at 0.5 and half at 0.625; the other half of 2 and all at 0.75.
  BOOST_TEST(within(slice(g, 0, 2, 4), numbers({1.5, 1.5}), 0));
}

BOOST_AUTO_TEST_SUITE_END()
