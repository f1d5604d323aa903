// States between calls: a compiled function sees reset, restore and another carry; a model may be moved.
#include "ferrite/nn/carry.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {31, stream, 0}, -1, 1); }

/// An LSTM after a GRU, and a head.
struct Net : nn::Module {
  nn::Lstm first{2, 4, {.layers = 2}, {.seed = 1, .prefix = "first"}};
  nn::Gru second{4, 3, {}, {.seed = 1, .prefix = "second"}};
  nn::Linear head{3, 2, {.seed = 1, .prefix = "head"}};
  Net() { adopt("first", first), adopt("second", second), adopt("head", head); }
  Tensor operator()(const Tensor& x, const nn::Carry& carry) const {
    return head(second(first(x, {.carry = &carry}), {.carry = &carry}));
  }
};

/// One way of training on pieces, with the losses of all of them.
struct Twin {
  Net net;
  nn::Adam adam{net.parameters(), {.learning_rate = 0.05}};
  nn::Carry carry{net, 3};
  Tensor step(const Tensor& x, const Tensor& y, const nn::Carry& with) {
    Tape tape;
    const Tensor loss = nn::mse_loss(net(x, with), y);
    adam.step(tape.grad(loss, net.parameters()));
    return loss.unmarked();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(carries)

/// Truncated back-propagation runs over several epochs, with a reset between them, compiled and eager.
BOOST_AUTO_TEST_CASE(a_compiled_step_begins_every_epoch_from_zeros) {
  Twin eager, planned;
  const auto step = compile([&](const Tensor& x, const Tensor& y) { return planned.step(x, y, planned.carry); });
  const auto xs = nn::pieces(draw({3, 12, 2}, 1), 4), ys = nn::pieces(draw({3, 12, 2}, 2), 4);
  for (int epoch = 0; epoch < 3; ++epoch) {
    eager.carry.reset();
    planned.carry.reset();
    for (std::size_t i = 0; i < xs.size(); ++i)
      BOOST_TEST(identical(step(xs[i], ys[i]), eager.step(xs[i], ys[i], eager.carry)));
    for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(identical(planned.carry.save()[k], eager.carry.save()[k]));
  }
}

/// One row restarts, the others continue; a compiled function that reads the states does the same.
BOOST_AUTO_TEST_CASE(one_row_begins_anew) {
  const Net net;
  const nn::Carry carry(net, 3), fresh(net, 3), whole(net, 3);
  const auto f = compile([&](const Tensor& x) { return net(x, carry); });
  const Tensor head = draw({3, 4, 2}, 1), tail = draw({3, 5, 2}, 2);
  (void)f(head);
  (void)net(head, whole);
  carry.reset(2);
  const Tensor y = f(tail), goes_on = net(tail, whole), begins = net(tail, fresh);
  for (std::int64_t row = 0; row < 3; ++row)
    BOOST_TEST(identical(select(y, 0, row), select(row == 2 ? begins : goes_on, 0, row)), "row " << row);
  for (const std::int64_t row : {-1, 3}) BOOST_CHECK_EXCEPTION(carry.reset(row), ValueError, says("lies outside 0..2"));
}

BOOST_AUTO_TEST_CASE(a_compiled_function_follows_restored_states) {
  const Net net;
  const nn::Carry carry(net, 3), other(net, 3);
  const auto f = compile([&](const Tensor& x) { return net(x, carry); });
  const Tensor x = draw({3, 4, 2}, 1);
  (void)f(x);
  const std::vector<Tensor> kept = carry.save();
  const Tensor second = f(x);
  carry.restore(kept);
  BOOST_TEST(identical(f(x), second));
  other.restore(kept);
  BOOST_TEST(identical(net(x, other), second));
  BOOST_REQUIRE_EQUAL(kept.size(), 3U);
  BOOST_TEST(kept[0].shape() == Shape({2, 3, 4}));
  BOOST_TEST(carry.variables()[1].name() == "first.c");
  BOOST_TEST(carry.variables()[2].name() == "second.h");
}

/// Each call passes another carry as an argument of the compiled function.
BOOST_AUTO_TEST_CASE(another_carry_is_an_argument) {
  const Net net;
  const nn::Carry a(net, 3), b(net, 3), c(net, 3), d(net, 3);
  const auto f = compile([&](const Tensor& x, const nn::Carry& carry) { return net(x, carry); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = draw({3, 4, 2}, 10 + static_cast<std::uint64_t>(i)), z = draw({3, 2, 2}, 20);
    BOOST_TEST(identical(f(x, a), net(x, c)));
    BOOST_TEST(identical(f(z, b), net(z, d)));
    BOOST_TEST(identical(f(z, a), net(z, c)));
  }
  f.verify(draw({3, 4, 2}, 1), a);
  BOOST_TEST(f.plans() == 3U);
}

/// `verify` notices what a plan cannot see.
BOOST_AUTO_TEST_CASE(a_captured_pointer_to_another_carry_is_noticed) {
  const Net net;
  const nn::Carry a(net, 1), b(net, 1);
  const nn::Carry* which = &a;
  const auto f = compile([&](const Tensor& x) { return net(x, *which); });
  const Tensor x = draw({1, 4, 2}, 1);
  (void)f(x);
  f.verify(x);
  which = &b;
  BOOST_CHECK_EXCEPTION(f.verify(x), TraceError, says("another variable 'first.h'"));
}

/// A carry identifies layers independently of their addresses.
BOOST_AUTO_TEST_CASE(a_model_may_be_moved) {
  nn::Gru gru(2, 3, {}, {.seed = 1});
  const auto like = gru.clone();
  const nn::Carry carry(gru, 1), other(*like, 1);
  const Tensor x = draw({1, 4, 2}, 1);
  (void)gru(x, {.carry = &carry});
  (void)(*like)(x, {.carry = &other});
  const nn::Gru moved = std::move(gru);
  BOOST_TEST(identical(moved(x, {.carry = &carry}), (*like)(x, {.carry = &other})));
}

BOOST_AUTO_TEST_SUITE_END()
