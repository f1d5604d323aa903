// Joint norms at the ends of the range: finite gradients stay finite and keep their directions.
#include <cmath>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/optim/optimizer.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

struct Case {
  Dtype dtype;
  double magnitude;
};
/// Cases in which squares overflow, the norm itself overflows, squares are denormal or 0, and others in between.
const Case kCases[] = {{Dtype::f32, 1e20},  {Dtype::f32, 2e38},  {Dtype::f32, 1e-25}, {Dtype::f32, 1e-38},
                       {Dtype::f32, 3e15},  {Dtype::f32, 1e-13}, {Dtype::f32, 0.5},   {Dtype::f64, 1e200},
                       {Dtype::f64, 1e308}, {Dtype::f64, 1e-200}};

Tensors gradients(const Case& c) {
  return {full({3}, c.magnitude, c.dtype), Tensor(), cast(Tensor::from({-0.5 * c.magnitude}, {1}), c.dtype)};
}

/// Returns (3 + 0.5^p)^(1/p) times the magnitude, in long doubles.
long double norm_of(const Case& c, double order) {
  const long double m = static_cast<long double>(c.magnitude);
  if (std::isinf(order)) return m;
  return m * std::pow(3 + std::pow(0.5L, static_cast<long double>(order)), 1 / static_cast<long double>(order));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clipping)

BOOST_AUTO_TEST_CASE(finite_gradients_of_any_magnitude_are_clipped_to_the_norm) {
  for (const Case& c : kCases)
    for (const double order : {2.0, 1.0, 3.0, 0.5, nn::kInfinityNorm}) {
      const long double norm = norm_of(c, order);
      const double most = norm > 1e-6L ? static_cast<double>(std::min(norm / 4, 1.0L)) : 1;  // else 1e-6 rules
      const nn::ClippedGradients got = nn::clip_grad_norm(gradients(c), most, order);
      const long double scale = std::min(1.0L, static_cast<long double>(most) / (norm + 1e-6L));
      const double wanted = static_cast<double>(scale * static_cast<long double>(c.magnitude));
      const double tolerance = (c.dtype == Dtype::f32 ? 2e-6 : 1e-14) * wanted;
      for (const double g : cast(got.grads[0], Dtype::f64).to_vector<double>())
        BOOST_TEST(std::fabs(g - wanted) <= tolerance, c.magnitude << " order " << order << ": " << g << " " << wanted);
      BOOST_TEST(std::fabs(cast(got.grads[2], Dtype::f64).item<double>() + wanted / 2) <= tolerance);
      BOOST_TEST(!got.grads[1].defined());
      const double limit = c.dtype == Dtype::f32 ? 3.4028235e38 : 1.7976931348623157e308;
      const double told = cast(got.norm, Dtype::f64).item<double>();
      if (norm > static_cast<long double>(limit)) {
        BOOST_TEST(std::isinf(told));
      } else {
        BOOST_TEST(std::fabs(told - static_cast<double>(norm)) <= 2e-6 * static_cast<double>(norm),
                   c.magnitude << " order " << order << ": norm " << told);
      }
    }
}

BOOST_AUTO_TEST_CASE(gradients_below_the_norm_keep_their_bits_at_any_magnitude) {
  for (const Case& c : kCases) {
    const Tensors g = gradients(c);
    const Tensors got = nn::clip_grad_norm(g, c.dtype == Dtype::f32 ? 3e38 : 1e308).grads;
    if (c.magnitude == 2e38 || c.magnitude == 1e308) continue;  // the norm is larger
    BOOST_TEST(identical(got[0], g[0]), c.magnitude);
    BOOST_TEST(identical(got[2], g[2]), c.magnitude);
  }
}

BOOST_AUTO_TEST_CASE(compiled_clipping_has_the_bits_of_eager_clipping) {
  for (const Case& c : kCases)
    for (const double order : {2.0, 1.0, 3.0, nn::kInfinityNorm}) {
      const auto clipped = [&](const Tensor& a, const Tensor& b) {
        const nn::ClippedGradients out = nn::clip_grad_norm({a, b}, 0.75, order);
        return Tensors{out.grads[0], out.grads[1], out.norm};
      };
      const Tensor a = gradients(c)[0] * cast(uniform({3}, {1, 2, 3}), c.dtype), b = gradients(c)[2];
      const Tensors eager = clipped(a, b), compiled = compile(clipped)(a, b);
      for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(identical(eager[k], compiled[k]), c.magnitude << " " << order);
    }
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_stays_visible) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const nn::ClippedGradients got = nn::clip_grad_norm({Tensor::from({1.0, bad}, {2})}, 1);
    BOOST_TEST(!std::isfinite(got.norm.item<double>()));
    BOOST_TEST(std::isnan(got.grads[0].to_vector<double>()[1]));
  }
  const nn::ClippedGradients none = nn::clip_grad_norm({zeros({4})}, 1);
  BOOST_TEST(none.norm.item<float>() == 0.0F);
  BOOST_TEST(identical(none.grads[0], zeros({4})));
}

BOOST_AUTO_TEST_SUITE_END()
