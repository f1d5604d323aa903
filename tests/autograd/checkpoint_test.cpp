// Checkpoints: the same bits with less memory; the recomputation sees the random numbers and variables of the first
// run.
#include "ferrite/autograd/checkpoint.h"

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/tensor/generator.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {58, stream, 0}, -1, 1, dtype);
}

/// A layer with a parameter, noise and a running sum.
struct Block {
  Parameter weight{"weight", draw({4, 4}, 1)};
  Generator noise{5, "noise"};
  State sum_of{"sum_of", zeros({}, Dtype::f64)};
  mutable int runs = 0;

  Tensor operator()(const Tensor& x) const {
    ++runs;
    const Tensor y = tanh(matmul(x, weight)) * noise.bernoulli({4}, 0.5, Dtype::f64) + sum_of;
    sum_of.assign(sum_of.value() + detach(sum(y)));
    return y * sum_of;
  }
};

/// Returns the gradients of two blocks, the first of which runs twice, by x and the weights, then their states.
Tensors run(bool checkpointed, bool compiled, int order = 1) {
  const Block a, b;
  const auto apply = [&](const Block& block, const Tensor& x) {
    return checkpointed ? checkpoint([&](const Tensor& t) { return block(t); }, x) : block(x);
  };
  const auto f = [&](const Tensor& in) {
    Tape tape;
    const Tensor x = tape.watch(in);
    const Tensor loss = sum(apply(b, apply(a, apply(a, x))));
    Tensors g = {x, a.weight.value(), b.weight.value()};
    Tensors found = tape.grad(loss, g, {.retain = true, .create_graph = order == 2});
    if (order == 2) found = tape.grad(sum(found[0] * found[0]) + sum(found[1] * found[1]), g);
    found.push_back(loss);
    return found;
  };
  const Tensor x = draw({3, 4}, 2);
  Tensors found = compiled ? compile(f)(x) : f(x);
  for (const Block* block : {&a, &b}) {
    found.push_back(block->sum_of.value());
    found.push_back(block->noise.calls.value());
    if (order == 1) BOOST_TEST(block->runs == (checkpointed ? 2 : 1) * (block == &a ? 2 : 1));
  }
  return found;
}

void same(const Tensors& a, const Tensors& b) {
  BOOST_TEST(a.size() == b.size());
  for (std::size_t i = 0; i < b.size(); ++i) BOOST_TEST(identical(a[i], b[i]), "tensor " << i);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoints)

BOOST_AUTO_TEST_CASE(the_bits_are_those_without) {
  same(run(true, false), run(false, false));
  same(run(true, true), run(false, true));
}

BOOST_AUTO_TEST_CASE(second_derivatives) {
  const Tensor w = draw({3}, 3);
  const auto f = [&](const Tensors& x) {
    return checkpoint([&](const Tensors& in) { return Tensors{sin(in[0]) * in[1] * w, exp(in[1])}; }, x);
  };
  const Tensors in = {draw({3}, 4), draw({3}, 5)};
  BOOST_TEST(gradcheck([&](const Tensors& x) { return f(x)[0] * f(x)[1]; }, in, {.order = 2}).ok);
  BOOST_TEST(gradcheck([&](const Tensors& x) { return f(x)[1]; }, in, {.order = 2}).ok);
  // Nested checkpoints.
  const auto inner = [&](const Tensors& x) {
    return checkpoint([&](const Tensors& t) { return Tensors{f(f(t))[0]}; }, x)[0];
  };
  BOOST_TEST(gradcheck(inner, in, {.order = 2}).ok);
}

BOOST_AUTO_TEST_CASE(parameters_in_second_order) {
  const auto once = run(true, false, 2), plain = run(false, false, 2);
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(support::within(once[i], plain[i], 1e-13), "tensor " << i);
}

/// A parameter that is read in the function and outside gets the gradients of both. If it is assigned before the
/// gradient is computed, the value that was read counts.
BOOST_AUTO_TEST_CASE(a_parameter_is_differentiated_as_it_was_read) {
  const Parameter p("p", full({2}, 3));
  const std::vector<Parameter> all{p};
  Tape tape;
  const Tensor x = tape.watch(ones({2}));
  const Tensor y = checkpoint([&](const Tensor& t) { return t * p * p; }, x);
  const Tensor loss = sum(y + p.value());
  p.assign(full({2}, 100));
  BOOST_TEST(identical(tape.grad(loss, all)[0], full({2}, 7)));
  BOOST_TEST(identical(p.peek(), full({2}, 100)));
}

/// The tape holds one entry for a block, whatever its operations.
BOOST_AUTO_TEST_CASE(intermediate_values_are_not_recorded) {
  const auto block = [](const Tensor& t) {
    const Tensor h = tanh(exp(t));
    return h * h * h;
  };
  Tape tape;
  const Tensor x = tape.watch(draw({64}, 6));
  const std::size_t before = tape.size();
  const Tensor y = checkpoint(block, x);
  BOOST_TEST(tape.size() == before + 1);
  const Tensor g = tape.grad(sum(y), {x})[0];
  BOOST_TEST(identical(g, grad([&](const Tensor& t) { return sum(block(t)); })(x)));
}

/// For four blocks of four products and nonlinearities, a plan that recomputes holds four results and one block's
/// values.
BOOST_AUTO_TEST_CASE(a_compiled_step_needs_less_memory) {
  const Tensor w = draw({16, 16}, 11, Dtype::f32), x = draw({256, 16}, 12, Dtype::f32);
  const auto block = [&](const Tensor& t) {
    Tensor h = t;
    for (int i = 0; i < 4; ++i) h = tanh(matmul(h, w));
    return h;
  };
  const auto step = [&](bool checkpointed) {
    return [&, checkpointed](const Tensor& in) {
      return grad([&](const Tensor& t) {
        Tensor h = t;
        for (int i = 0; i < 4; ++i) h = checkpointed ? checkpoint(block, h) : block(h);
        return sum(h);
      })(in);
    };
  };
  const auto plain = compile(step(false)), less = compile(step(true));
  BOOST_TEST(identical(less(x), plain(x)));
  BOOST_TEST(less.report().arena_bytes <= plain.report().arena_bytes * 11 / 16);
  BOOST_TEST(less.report().products ==
             plain.report().products + 12);  // nothing reads the loss, so the last block runs once
}

BOOST_AUTO_TEST_CASE(in_a_scan) {
  const Tensor x = draw({4, 3}, 7), h = draw({3}, 8);
  const Parameter w("w", draw({3}, 9));
  const auto gradient = [&](bool checkpointed) {
    const auto step = [&](const Tensor& t) { return tanh(t * w); };
    Tape tape;
    const Tensor v = tape.watch(x);
    const Tensor last = scan(
                            [&](const Tensors& carry, const Tensors& xs) -> ScanStep {
                              const Tensor in = carry[0] + xs[0];
                              return {{checkpointed ? checkpoint(step, in) : step(in)}, {}};
                            },
                            {h}, {v})
                            .carry[0];
    return tape.grad({{sum(last)}}, {v, w.value()});
  };
  const Tensors a = gradient(true), b = gradient(false);
  BOOST_TEST(support::within(a[0], b[0], 1e-14));
  BOOST_TEST(support::within(a[1], b[1], 1e-14));
}

BOOST_AUTO_TEST_CASE(without_a_tape_it_is_the_function) {
  const Block block;
  const Tensor x = draw({3, 4}, 10);
  (void)checkpoint([&](const Tensor& t) { return block(t); }, x);
  BOOST_TEST(block.runs == 1);
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  using One = std::function<Tensor(const Tensor&)>;
  using Many = std::function<Tensors(const Tensors&)>;
  BOOST_CHECK_EXCEPTION((void)checkpoint(One(), ones({2})), ValueError, says("checkpoint: the function is null"));
  BOOST_CHECK_EXCEPTION((void)checkpoint(Many(), Tensors{}), ValueError, says("checkpoint: the function is null"));
  const auto two = [](const Tensors& x) { return Tensors{x[0]}; };
  BOOST_CHECK_EXCEPTION((void)checkpoint(two, Tensors{ones({2}), Tensor()}), ValueError,
                        says("checkpoint: input 1 is undefined"));
  {
    Tape tape;
    const Tensor x = tape.watch(ones({2}));
    BOOST_CHECK_EXCEPTION((void)checkpoint([&](const Tensor& t) { return t * x; }, x), TapeError,
                          says("checkpoint: the function refers to a tensor that is recorded on a tape, and mul reads "
                               "it, but no gradient would reach it: f32[2]; make it an input, or detach it"));
    BOOST_CHECK_EXCEPTION((void)checkpoint([&](const Tensor&) { return Tensor(); }, x), ValueError,
                          says("checkpoint: result 0 of the function is undefined"));
  }
  Tape tape;
  const Tensor x = tape.watch(ones({2}));
  nn::Dropout dropout(0.5, {.seed = 3});
  const Tensor d = checkpoint([&](const Tensor& t) { return dropout(t); }, x);
  dropout.eval();
  BOOST_CHECK_EXCEPTION((void)tape.grad(sum(d), {x}, {.retain = true}), TapeError,
                        says("checkpoint: a module was switched between the two runs of the function: training was "
                             "true, is false; take the gradient before"));
  dropout.train();
  BOOST_TEST(identical(tape.grad(sum(d), {x}, {.retain = true})[0], d));  // the same draw: 0 or 2 times 1
  int runs = 0;
  const Tensor y = checkpoint([&](const Tensor& t) { return runs++ ? concat({t, t}, 0) : t * 2; }, x);
  BOOST_CHECK_EXCEPTION((void)tape.grad(sum(y), {x}), TapeError,
                        says("checkpoint: the second run of the function gave results of other types than the first: "
                             "f32[4] after f32[2]; what it depends on besides inputs must be variables or constant"));
}

BOOST_AUTO_TEST_SUITE_END()
