// Products in plans: summed in place, transposed operands copied once, variables updated in their own buffers.
#include "ferrite/tensor/accumulate.h"

#include <algorithm>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {67, stream, 0}, -1, 1, dtype);
}

/// A recurrence whose weight is read in every step.
struct Chain {
  Tensors operator()(const Tensor& x) const {
    Tape tape;
    Tensor h = select(x, 0, 0);
    for (std::int64_t t = 1; t < x.shape()[0]; ++t) h = tanh(matmul(h, w.value()) + select(x, 0, t));
    return tape.grad(sum(h), std::vector<Parameter>{w});
  }
  Parameter w;
};

struct Training {
  Training() : adam(net.parameters()) {}
  Tensor step(const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), y);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  }
  nn::Linear net{6, 4, {.seed = 1}};
  nn::Adam adam;
};

Tensor labels(std::initializer_list<std::int64_t> list) {
  return Tensor::from(std::vector<std::int64_t>(list), {static_cast<std::int64_t>(list.size())});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_products)

BOOST_AUTO_TEST_CASE(a_product_is_added_with_the_bits_of_a_sum) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t K : {1, 2, 33, 256})
      for (const Shape& s : {Shape{1, 1}, Shape{3, 5}, Shape{12, 96}, Shape{70, 130}, Shape{33, 17}}) {
        const Tensor a = draw({K, s[0]}, 1, dtype), b = draw({K, s[1]}, 2, dtype), c = draw(s, 3, dtype);
        for (const Tensor& left : {transpose(a), contiguous(transpose(a))})
          for (const Tensor& right : {b, transpose(contiguous(transpose(b)))}) {
            Tensor total = c + 0;
            detail::add_product(left, right, total);
            BOOST_TEST(identical(total, c + matmul(left, right)), s.str() << " with K = " << K);
          }
      }
}

BOOST_AUTO_TEST_CASE(gradients_of_a_weight_that_every_step_reads_are_summed_up_in_place) {
  for (const std::int64_t B : {1, 3, 70}) {
    const Chain f{Parameter("w", draw({16, 16}, 1))};
    const Tensor x = draw({30, B, 16}, 2);
    const auto compiled = compile(f);
    BOOST_TEST(identical(compiled(x)[0], f(x)[0]));
    const PlanReport r = compiled.report();
    BOOST_TEST(r.products == 29U + 28U + 29U, r.str());
    BOOST_TEST(r.arena_bytes < 30 * B * 16 * 4 * 2 + 4 * 16 * 16 * 4, r.str());  // states, not products
  }
}

BOOST_AUTO_TEST_CASE(sums_of_products_keep_their_bits_whoever_reads_them) {
  const auto f = [](const Tensors& in) {
    const Tensor p = matmul(in[0], in[1]), q = matmul(in[1], in[0]), s = p + q;
    const Tensor twice = matmul(in[0], in[0]) + matmul(in[0], in[0]);
    const Tensor wide = matmul(in[2], transpose(in[2])) + matmul(in[0], in[1]);               // 300 terms and 12
    const Tensor few = matmul(in[0], in[1] * 3), many = matmul(in[2] * 2, transpose(in[2]));  // 300 terms, after 12
    const Tensor last = few + many;
    return Tensors{s, q, relu(s + matmul(in[1], in[1])) + twice, wide, last, (s - p) + matmul(in[0], in[1])};
  };
  const Tensors in{draw({12, 12}, 1), draw({12, 12}, 2), draw({12, 300}, 3)};
  const Tensors got = compile(f)(in), wanted = f(in);
  for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(identical(got[k], wanted[k]), "result " << k);
}

BOOST_AUTO_TEST_CASE(variables_are_updated_where_they_are_unless_somebody_holds_them) {
  Training eager, planned;
  const auto step = compile([&](const Tensor& x, const Tensor& y) { return planned.step(x, y); });
  const Tensor x = draw({3, 6}, 1), y = labels({0, 3, 1});
  (void)step(x, y);
  (void)eager.step(x, y);
  const void* const before = planned.net.weight.peek().raw();
  BOOST_TEST(identical(step(x, y), eager.step(x, y)));
  BOOST_TEST(planned.net.weight.peek().raw() == before);
  const Tensor held = planned.net.weight.peek();
  const Tensor copy = held + 0;
  BOOST_TEST(identical(step(x, y), eager.step(x, y)));
  BOOST_TEST(planned.net.weight.peek().raw() != before);
  BOOST_TEST(identical(held, copy));
  BOOST_TEST(identical(planned.net.weight.peek(), eager.net.weight.peek()));
}

namespace {

/// Returns every value that a training step may change.
std::vector<Tensor> values_of(const Training& t) {
  std::vector<Tensor> values;
  for (const Parameter& p : t.net.parameters()) values.push_back(p.peek() + 0);
  for (const auto& s : t.adam.states()) values.push_back(s.variable.peek() + 0);
  return values;
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return bool(identical(x, y)); });
}

}  // namespace

/// The operation that throws comes before the update in one function, and after it, reading its result, in the other.
BOOST_AUTO_TEST_CASE(a_step_that_throws_leaves_parameters_moments_and_counts_alone) {
  for (const bool behind : {false, true}) {
    Training planned;
    const auto step = compile([&](const Tensor& x, const Tensor& y, const Tensor& index) {
      if (!behind) return planned.step(x, y) + gather(x, 0, index);
      (void)planned.step(x, y);
      return gather(planned.net.weight.value(), 0, index);
    });
    const Tensor x = draw({3, 6}, 1), y = labels({0, 3, 1});
    const Tensor good = zeros({1, 1}, Dtype::i64), bad = full({1, 1}, 99, Dtype::i64);
    (void)step(x, y, good);
    (void)step(x, y, good);
    const std::vector<Tensor> before = values_of(planned);
    BOOST_CHECK_THROW((void)step(x, y, bad), Error);
    BOOST_TEST(same(values_of(planned), before), "behind: " << behind);
    (void)step(x, y, good);
    BOOST_TEST(!same(values_of(planned), before));
  }
}

/// A value that an update replaces may be a result of the same call.
BOOST_AUTO_TEST_CASE(old_values_may_be_results) {
  Training planned;
  const auto step = compile([&](const Tensor& x, const Tensor& y) {
    const Tensor old = planned.net.weight.value() * 1;
    (void)planned.step(x, y);
    return std::pair(old, planned.net.weight.value());
  });
  Tensor last = planned.net.weight.peek() + 0;
  for (int k = 0; k < 3; ++k) {
    const auto [old, now] = step(draw({3, 6}, 1), labels({0, 3, 1}));
    BOOST_TEST(identical(old, last));
    BOOST_TEST(identical(now, planned.net.weight.peek()));
    last = now + 0;
  }
}

BOOST_AUTO_TEST_SUITE_END()
