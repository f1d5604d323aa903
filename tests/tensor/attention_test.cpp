// Attention by its own kernel has the bits of its parts, for any layout and number of threads.
#include "ferrite/tensor/attention.h"

#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

struct Case {
  Shape q, k, v;
  AttentionOptions options;
};

/// Fewer queries than a block, more than two, and not a whole number; more and fewer keys than queries; heads that
/// share keys; more keys than a block of a product.
const std::vector<Case> kCases = {{{5, 3}, {7, 3}, {7, 2}, {}},
                                  {{2, 3, 70, 8}, {2, 3, 70, 8}, {2, 3, 70, 5}, {.causal = true}},
                                  {{1, 130, 16}, {1, 300, 16}, {1, 300, 16}, {.causal = true, .scale = -2.0}},
                                  {{2, 150, 4}, {2, 40, 4}, {2, 40, 9}, {.causal = true}},
                                  {{2, 4, 65, 8}, {2, 2, 65, 8}, {2, 2, 65, 3}, {.causal = true, .enable_gqa = true}},
                                  {{3, 6, 17, 4}, {3, 1, 1100, 4}, {3, 1, 1100, 4}, {.enable_gqa = true}},
                                  {{4, 1, 1}, {4, 1, 1}, {4, 1, 1}, {.causal = true}}};

Tensor numbers(const Shape& shape, std::uint64_t stream, Dtype dtype) {
  return uniform(shape, {.seed = 8, .stream = stream}, -2, 2, dtype);
}
/// The same values, every axis but the first two strided otherwise.
Tensor strided(const Tensor& x) { return transpose(contiguous(transpose(x))); }

}  // namespace

BOOST_AUTO_TEST_SUITE(attention)

BOOST_AUTO_TEST_CASE(by_its_kernel_it_has_the_bits_of_its_parts) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Case& c : kCases) {
      const Tensor q = numbers(c.q, 1, dtype), k = numbers(c.k, 2, dtype), v = numbers(c.v, 3, dtype);
      const auto run = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
        return scaled_dot_product_attention(x, y, z, c.options);
      };
      Tape tape;
      const Tensor parts = run(tape.watch(q), k, v);
      BOOST_TEST(support::identical(run(q, k, v), parts), c.q.str() << " " << c.k.str());
      BOOST_TEST(support::identical(run(strided(q), strided(k), strided(v)), parts), c.q.str() << " strided");
      set_threads(3);
      BOOST_TEST(support::identical(run(q, k, v), parts), c.q.str() << " by threads");
      set_threads(1);
    }
}

/// What the kernel does not take goes by the parts: leading axes that broadcast.
BOOST_AUTO_TEST_CASE(leading_axes_broadcast) {
  const Tensor q = numbers({2, 1, 5, 3}, 1, Dtype::f64), k = numbers({4, 6, 3}, 2, Dtype::f64),
               v = numbers({1, 6, 2}, 3, Dtype::f64);
  const Tensor y = scaled_dot_product_attention(q, k, v);
  BOOST_REQUIRE(y.shape() == (Shape{2, 4, 5, 2}));
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 4; ++h)
      BOOST_TEST(support::identical(
          select(select(y, 0, b), 0, h),
          scaled_dot_product_attention(select(select(q, 0, b), 0, 0), select(k, 0, h), select(v, 0, 0))));
}

BOOST_AUTO_TEST_SUITE_END()
