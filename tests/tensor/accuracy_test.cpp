// Digits where a formula loses them: near an end, far out, beside a large mean. Expected numbers by mpmath with 50
// digits, from the expressions that the cases say; variances by a loop in doubles.
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

/// Every element within a share of the expected one.
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

/// erfinv(y).
BOOST_AUTO_TEST_CASE(erfinv_keeps_its_digits_near_1) {
  const Tensor y = numbers({0.5, 1 - 1e-9, 1 - 1e-12, 1 - 1e-15, 1 - 0x1p-53, -(1 - 1e-15)});
  check_digits("erfinv", erfinv(y),
               {0.47693627620446987338, 4.3200053881053620459, 5.0420318985726961301, 5.6759157397447131788,
                5.8635847487551679272, -5.6759157397447131788},
               5e-16);
}

/// x / 2 erfc(-x / sqrt(2)).
BOOST_AUTO_TEST_CASE(gelu_keeps_its_digits_far_out) {
  check_digits("gelu", gelu(numbers({-1.5, -5, -13, -20, -27, -37.5})),
               {-0.10021080190328709901, -1.4332578593959695584e-6, -7.952313719414843587e-38,
                -5.5072482372124673902e-88, -1.9951598718589549295e-159, -1.7270073785932330664e-306},
               2e-15);
}

/// The mean of numbers about 1e6 is a multiple of 1/16 in f32; how far it is off must not add to the variance.
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
      // Along the first axis, by the operations that it is composed of; and compiled.
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

/// PyTorch's gradient is 0 at (0, 0), and NaN or 0 where squares leave the floats.
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

/// An infinite neighbour is the quantile; between both infinities there is none. numpy.quantile and torch.quantile:
/// NaN.
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
  // Of the finite ones: all of 1 at 0.5 and half at 0.625; the other half of 2 and all at 0.75.
  BOOST_TEST(within(slice(g, 0, 2, 4), numbers({1.5, 1.5}), 0));
}

BOOST_AUTO_TEST_SUITE_END()
