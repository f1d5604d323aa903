// Generalised advantage estimation, computed by hand and by a loop over doubles.
#include "ferrite/train/advantages.h"

#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;
using support::within;

BOOST_AUTO_TEST_SUITE(advantage)

// delta = 1 + 0.5 * 0.25 - 0.5 = 0.625 and 2 - 0.25 = 1.75 (the episode ended, so the last value does not count); the
// first is 0.625 + 0.5 * 0.5 * 1.75.
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensor a = advantages(Tensor::from<double>({1, 2}), Tensor::from<double>({0.5, 0.25, 4}),
                              Tensor::from<double>({1, 0}), {.discount = 0.5, .trace = 0.5});
  BOOST_TEST(within(a, Tensor::from<double>({1.0625, 1.75}), 1e-15));
}

BOOST_AUTO_TEST_CASE(as_a_loop_over_scalars) {
  constexpr std::int64_t T = 7, B = 3;
  const Tensor rewards = uniform({T, B}, {.seed = 1}, -1, 1, Dtype::f64);
  const Tensor values = uniform({T + 1, B}, {.seed = 2}, -1, 1, Dtype::f64);
  const Tensor on = cast(gt(uniform({T, B}, {.seed = 3}), 0.3), Dtype::f64);
  const auto at = [](const Tensor& x, std::int64_t t, std::int64_t b) { return x[t][b].item<double>(); };
  std::vector<double> wanted(T * B);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t t = T - 1; t >= 0; --t) {
      const double later = t + 1 < T ? wanted[static_cast<std::size_t>((t + 1) * B + b)] : 0;
      wanted[static_cast<std::size_t>(t * B + b)] = at(rewards, t, b) + 0.99 * at(on, t, b) * at(values, t + 1, b) -
                                                    at(values, t, b) + 0.99 * 0.95 * at(on, t, b) * later;
    }
  BOOST_TEST(within(advantages(rewards, values, on), Tensor::from(wanted, {T, B}), 1e-14));
}

BOOST_AUTO_TEST_CASE(refusals) {
  const Tensor r = zeros({2, 3}), v = zeros({3, 3});
  BOOST_CHECK_EXCEPTION((void)advantages(r, r, r), ShapeError, says("values [T + 1, ...], got f32[2, 3]"));
  BOOST_CHECK_THROW((void)advantages(r, v, zeros({2})), ShapeError);
  BOOST_CHECK_THROW((void)advantages(zeros({}), v, r), ShapeError);
  BOOST_CHECK_THROW((void)advantages(zeros({0, 3}), zeros({1, 3}), zeros({0, 3})), ShapeError);
  BOOST_CHECK_THROW((void)advantages(r, zeros({3, 3}, Dtype::f64), r), DtypeError);
  BOOST_CHECK_THROW((void)advantages(r, v, zeros({2, 3}, Dtype::i64)), DtypeError);
  BOOST_CHECK_EXCEPTION((void)advantages(r, v, r, {.discount = 1.5}), ValueError, says("in 0..1, got 1.5"));
  BOOST_CHECK_THROW((void)advantages(r, v, r, {.trace = -0.1}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
