// Norms of numbers whose powers leave the range of the dtype, and sums of exponentials over nothing. Expected values
// are closed forms; PyTorch 2.13 returns infinity, 0 and NaN in these cases.
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/tensor/norms.h"
#include "support/compare.h"

using namespace ferrite;
using support::doubles;
using support::identical;

namespace {

Tensor scaled(double scale, Dtype dtype) {
  return cast(Tensor::from<double>({3 * scale, -4 * scale, 0, 12 * scale}, {2, 2}), dtype);
}
Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  Tape tape;
  const Tensor y = tape.watch(x);
  return tape.grad(sum(f(y)), {y})[0];
}
bool near(double a, double b) { return std::fabs(a - b) <= 2e-6 * std::fabs(b); }

}  // namespace

BOOST_AUTO_TEST_SUITE(norm_ranges)

/// (3, -4, 0, 12) has length 13; the gradient is x / 13.
BOOST_AUTO_TEST_CASE(squares_that_overflow_or_vanish) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const double scale : {1e-30, 1e-25, 1.0, 1e15, 1e20, 1e30, dtype == Dtype::f32 ? 1e37 : 1e300,
                               dtype == Dtype::f32 ? 1e-38 : 1e-300}) {
      const Tensor x = scaled(scale, dtype);
      const auto f = [](const Tensor& t) { return norm(t); };
      const Tensor y = norm(x), g = gradient(f, x), compiled = compile(f)(x);
      BOOST_TEST_CONTEXT("scale " << scale << " of " << x.spec().str()) {
        BOOST_TEST(near(doubles(y)[0], 13 * scale), doubles(y)[0]);
        BOOST_TEST(identical(compiled, y));
        const double wanted[] = {3 / 13.0, -4 / 13.0, 0, 12 / 13.0};
        for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(std::fabs(doubles(g)[i] - wanted[i]) <= 1e-6, doubles(g)[i]);
        const Tensor traced = compile([&](const Tensor& t) { return gradient(f, t); })(x);
        BOOST_TEST(identical(traced, g));
      }
    }
}

BOOST_AUTO_TEST_CASE(rows_are_scaled_apart_and_what_is_not_finite_stays) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x =
      cast(Tensor::from<double>({3e25, 4e25, 3e-25, 4e-25, 3, 4, 0, 0, inf, 1, nan, 1}, {6, 2}), Dtype::f32);
  for (const bool keepdim : {false, true}) {
    const std::vector<double> y = doubles(norm(x, {.axes = {1}, .keepdim = keepdim}));
    BOOST_TEST((near(y[0], 5e25) && near(y[1], 5e-25)));
    BOOST_TEST(y[2] == 5);
    BOOST_TEST(y[3] == 0);
    BOOST_TEST(y[4] == inf);
    BOOST_TEST(std::isnan(y[5]));
  }
  // A row that needs no scale has the bits that it has alone.
  const Tensor row = uniform({1, 40}, {.seed = 1}), both = concat({row, row * 1e30}, 0);
  BOOST_TEST(identical(slice(norm(both, {.axes = {1}}), 0, 0, 1), norm(row, {.axes = {1}})));
  BOOST_TEST(identical(gradient([](const Tensor& t) { return norm(t, {.axes = {1}}); }, zeros({2, 3})), zeros({2, 3})));
}

BOOST_AUTO_TEST_CASE(other_powers) {
  for (const double p : {3.0, 1.5, 4.0, 0.5})
    for (const double scale : {1e-30, 1.0, 1e25}) {
      double wanted = 0;
      for (const double v : {3.0, 4.0, 12.0}) wanted += std::pow(v, p);
      wanted = std::pow(wanted, 1 / p) * scale;
      const Tensor x = scaled(scale, Dtype::f32);
      const auto f = [p](const Tensor& t) { return norm(t, {.p = p}); };
      BOOST_TEST(near(doubles(f(x))[0], wanted), p << " at " << scale);
      BOOST_TEST(support::within(gradient(f, x), gradient(f, scaled(1, Dtype::f32)), 1e-5), p << " at " << scale);
    }
}

BOOST_AUTO_TEST_CASE(what_is_made_of_norms) {
  const Tensor x = scaled(1e25, Dtype::f32), y = scaled(1, Dtype::f32);
  BOOST_TEST(support::within(normalize(x), normalize(y), 1e-6));
  BOOST_TEST(support::within(cosine_similarity(x, y), ones({2}), 1e-6));
  BOOST_TEST(near(doubles(pairwise_distance(x, -x))[0], 1e26));
  // w = g v / |v| of a v near 1e20.
  auto linear = std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 1});
  linear->weight.assign(scaled(1e20, Dtype::f32));
  const nn::WeightNorm layer(std::move(linear));
  const Tensor out = layer(ones({1, 2}));
  BOOST_TEST(std::isfinite(sum(out).item<float>()));
  BOOST_TEST(std::isfinite(sum(layer.length.value()).item<float>()));
}

BOOST_AUTO_TEST_CASE(no_exponential_has_no_gradient) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from<double>({-inf, -inf, 0, -inf}, {2, 2});
  const auto f = [](const Tensor& t) { return logsumexp(t, {1}); };
  BOOST_TEST(identical(f(x), Tensor::from<double>({-inf, 0})));
  BOOST_TEST(identical(gradient(f, x), Tensor::from<double>({0, 0, 1, 0}, {2, 2})));
}

BOOST_AUTO_TEST_SUITE_END()
