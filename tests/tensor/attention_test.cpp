// Attention as one operation has the bits of its composition and of its gradients, for any layout and number of
// threads.
#include "ferrite/tensor/attention.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

struct Case {
  Shape q, k, v;
  AttentionOptions options;
};

/// Cases with fewer queries than a block, more than two blocks, and not a whole number; more and fewer keys than
/// queries; heads that share keys; more keys than a block of a product.
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
/// Returns the same values, with other strides on all axes but the first two.
Tensor strided(const Tensor& x) { return transpose(contiguous(transpose(x))); }

/// Returns the options of a case without a mask and with masks of either kind, for all scores and repeated, strided,
/// with hidden keys and a query that sees none.
std::vector<AttentionOptions> masked(const Case& c, Dtype dtype) {
  Shape scores = c.q;
  scores[-1] = c.k[-2];
  const std::int64_t L = scores[-2], S = scores[-1];
  const Tensor others = ne(unsqueeze(arange(L), 1), L / 2);
  const auto seen = [](const Shape& shape) { return lt(uniform(shape, {.seed = 9}, 0, 1), 0.7); };
  const Tensor hidden = full({}, -std::numeric_limits<double>::infinity(), dtype);
  std::vector<AttentionOptions> all(6, c.options);
  all[1].mask = seen(scores) && others;
  all[2].mask = seen({S});
  all[3].mask = where(seen({L, S}) && others, numbers({L, S}, 4, dtype), hidden);
  all[4].mask = where(others, numbers({L, 1}, 4, dtype), hidden);
  all[5].mask = transpose(seen({S, L}));
  return all;
}

/// Returns values whose heads are shared, once for each head of the queries.
Tensor of_all_heads(const Tensor& v, const Shape& q) {
  return v.rank() < 3 || v.shape()[-3] == q[-3] ? v : repeat_interleave(v, q[-3] / v.shape()[-3], -3);
}

/// Returns the gradients of the sum of squares of f.
template <class F>
Tensors gradients(const F& f, const Tensor& q, const Tensor& k, const Tensor& v) {
  Tape tape;
  const Tensor x = tape.watch(q), y = tape.watch(k), z = tape.watch(v);
  return tape.grad(mean(square(f(x, y, z))), {x, y, z});
}

/// Calls f(case, options, dtype) for all cases with all masks.
template <class F>
void for_each_case(const F& f) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Case& c : kCases)
      for (const AttentionOptions& options : masked(c, dtype)) f(c, options, dtype);
}

/// Sets a number of threads while it lives.
struct ThreadsInTest {
  explicit ThreadsInTest(int n) { set_threads(n); }
  ~ThreadsInTest() { set_threads(1); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(attention)

/// The weights are composed of operations one by one.
BOOST_AUTO_TEST_CASE(it_has_the_bits_of_the_weights_times_the_values) {
  for_each_case([](const Case& c, const AttentionOptions& options, Dtype dtype) {
    const Tensor q = numbers(c.q, 1, dtype), k = numbers(c.k, 2, dtype), v = numbers(c.v, 3, dtype);
    const auto run = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
      return scaled_dot_product_attention(x, y, z, options);
    };
    const Tensor wanted = matmul(attention_weights(q, k, options), of_all_heads(v, c.q));
    const Tensor y = run(q, k, v);
    BOOST_TEST(support::identical(y, wanted), c.q.str() << " " << c.k.str());
    BOOST_TEST(support::identical(run(strided(q), strided(k), strided(v)), wanted), c.q.str() << " strided");
    const Tensors g = gradients(run, q, k, v);
    const ThreadsInTest threads(3);
    BOOST_TEST(support::identical(run(q, k, v), wanted), c.q.str() << " by threads");
    const Tensors again = gradients(run, q, k, v);
    for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(support::identical(g[i], again[i]), c.q.str() << " gradient " << i);
  });
}

/// The gradients are compared with those of the composition, over more than a block of queries.
BOOST_AUTO_TEST_CASE(its_gradient_is_that_of_the_composition) {
  for_each_case([](const Case& c, const AttentionOptions& options, Dtype dtype) {
    const Tensor q = numbers(c.q, 1, dtype), k = numbers(c.k, 2, dtype), v = numbers(c.v, 3, dtype);
    const auto by_parts = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
      return matmul(attention_weights(x, y, options), of_all_heads(z, c.q));
    };
    const auto run = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
      return scaled_dot_product_attention(x, y, z, options);
    };
    const Tensors wanted = gradients(by_parts, q, k, v), g = gradients(run, q, k, v),
                  of_strided = gradients(run, strided(q), strided(k), strided(v));
    for (std::size_t i = 0; i < 3; ++i) {
      BOOST_TEST(support::within(g[i], wanted[i], dtype == Dtype::f32 ? 1e-6 : 1e-13), c.q.str() << " " << i);
      BOOST_TEST(support::identical(of_strided[i], g[i]), c.q.str() << " strided " << i);
    }
  });
}

/// Operands that the operation does not take are composed: leading axes that broadcast.
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
