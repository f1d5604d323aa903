// Values that may change between the steps or the calls of a scan are read again: weights, captured tensors, switches.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {37, stream, 0}, -1, 1); }

/// A cell that halves its state in training.
struct Halving final : nn::CustomCell {
  Parameter w;
  Halving(std::int64_t D, std::int64_t H, const nn::Init& init) {
    w = parameter("w", {D, H}, nn::init::uniform(-1, 1), init);
  }
  std::string kind() const override { return "halving"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensor h = tanh(matmul(x, w) + s.h);
    return {training() ? h * 0.5 : h};
  }
};

nn::Custom halving(nn::Form form) {
  return nn::custom<Halving>(3, 4, {.form = form}, nn::Init{.seed = 1, .prefix = "halving"});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scan_weights)

/// Copies of weights in the order of a kernel must not outlive a step: in every step the weights are others, carried,
/// made from the step's x, or made in the step.
BOOST_AUTO_TEST_CASE(weights_that_every_step_changes) {
  const Tensor frames = draw({2, 6, 3}, 1), h0 = zeros({2, 4});
  const auto outputs = [&](const Tensor& w_ih, const Tensor& w_hh) {
    return rnn_sequence(frames, {w_ih, w_hh}, h0, false, {.batch_first = true})[0];
  };
  struct Case {
    const char* name;
    ScanBodyFunction body;
  };
  const Tensor w_ih = draw({3, 4}, 2);
  const std::vector<Case> cases = {{"carried",
                                    [&](const Tensors& c, const Tensors& x) -> ScanStep {
                                      return {{sin(c[0] * 1.5 + x[0])}, {outputs(w_ih, c[0])}};
                                    }},
                                   {"of the step's x",
                                    [&](const Tensors& c, const Tensors& x) -> ScanStep {
                                      return {{c[0] + 1}, {outputs(w_ih, exp(x[0]))}};
                                    }},
                                   {"made in the step", [&](const Tensors& c, const Tensors& x) -> ScanStep {
                                      return {{cos(c[0])}, {outputs(w_ih * 2, tanh(c[0] - x[0]))}};
                                    }}};
  const Tensor first = draw({4, 4}, 3), xs = draw({9, 4, 4}, 4);
  for (const Case& c : cases) {
    const ScanResult r = scan(c.body, {first}, {xs});
    Tensors carry = {first};
    for (std::int64_t t = 0; t < 9; ++t) {
      const ScanStep step = c.body(carry, {contiguous(select(xs, 0, t))});
      carry = step.carry;
      BOOST_TEST(identical(select(r.y[0], 0, t), step.y[0]), c.name << ", step " << t);
    }
    BOOST_TEST(identical(r.carry[0], carry[0]), c.name);
  }
}

BOOST_AUTO_TEST_CASE(a_captured_tensor_that_is_another_one_now) {
  Tensor factor = full({}, 2);
  const Scan doubling([&](const Tensors& c, const Tensors&) -> ScanStep { return {{c[0] * factor}}; });
  const ScanOptions three{.steps = 3};
  const Tensor one = ones({2});
  BOOST_TEST(identical(doubling({one}, {}, three).carry[0], full({2}, 8)));
  factor = full({}, 3);
  BOOST_TEST(identical(doubling({one}, {}, three).carry[0], full({2}, 27)));
  BOOST_TEST(identical(doubling({one}, {}, three).carry[0], full({2}, 27)));
}

/// A scan that was traced in one mode is not used in the other, nor is a program around it.
BOOST_AUTO_TEST_CASE(the_mode_is_followed) {
  const nn::Custom layer = halving(nn::Form::scan), definition = halving(nn::Form::unrolled);
  const Tensor x = draw({2, 5, 3}, 5);
  (void)layer(x);  // traced before any program
  const auto program = layer.compiled();
  const auto gradient = [&](const auto& f) {
    Tape tape;
    const Tensor in = tape.watch(x);
    return tape.grad(sum(square(f(in))), {in})[0];
  };
  for (const bool on : {true, false, true, false}) {
    layer.train(on);
    definition.train(on);
    const Tensor wanted = definition(x);
    BOOST_TEST(identical(layer(x), wanted), (on ? "training" : "not training"));
    BOOST_TEST(identical(program(x), wanted), "compiled, " << (on ? "training" : "not training"));
    BOOST_TEST(identical(gradient(program), gradient(layer)), "its gradient");
  }
}

BOOST_AUTO_TEST_SUITE_END()
