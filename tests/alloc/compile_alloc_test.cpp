// The run of a plan allocates nothing, nor does a compiled training step from the third call on.
#include <boost/test/unit_test.hpp>

#include "counted.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/windows.h"

using namespace ferrite;

namespace {

/// Returns the allocations of two calls of f that follow two others.
template <class F>
std::uint64_t from_the_third_call_on(F&& f) {
  f();
  f();
  return counted::during([&] {
    f();
    f();
  });
}

Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {7, stream, 0}, -1, 1); }

struct Classifier : nn::Module {
  Classifier(std::int64_t inputs, std::int64_t hidden)
      : first(inputs, hidden, {.seed = 1, .prefix = "first"}), second(hidden, 10, {.seed = 2, .prefix = "second"}) {
    adopt("first", first);
    adopt("second", second);
  }
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  nn::Linear first, second;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(alloc)

BOOST_AUTO_TEST_CASE(a_plan_runs_without_the_heap) {
  const std::vector<Spec> specs = {{{64, 48}, Dtype::f32}, {{48, 32}, Dtype::f32}};
  const Plan plan(trace(
      [](const Tensors& x) {
        const Tensor y = softmax(matmul(x[0], x[1]));
        return Tensors{sum(tanh(y) * 2, {0}), layer_norm(y), concat({y, exp(y)}, 0)};
      },
      specs));
  const Tensor in[] = {sample({64, 48}, 1), sample({48, 32}, 2)};
  BOOST_TEST(from_the_third_call_on([&] { (void)plan.run(in); }) == 0U);
}

/// The convolutions are forward and transposed, strided, with one channel and many, zero-padded and mirrored.
BOOST_AUTO_TEST_CASE(a_plan_of_convolutions_runs_without_the_heap) {
  const std::vector<Spec> specs = {{{2, 4, 40}, Dtype::f32}, {{6, 4, 5}, Dtype::f32}, {{4, 1, 3}, Dtype::f32}};
  const Plan plan(trace(
      [](const Tensors& x) {
        const Tensor y = conv1d(x[0], x[1], {}, {.stride = {2}, .padding = {1}});
        const Tensor mirrored = conv1d(pad(x[0], {0, 0, 0}, {0, 0, 7}, PaddingMode::reflect), x[1]);
        return Tensors{conv_transpose1d(y, x[1], {}, {.stride = {2}}), mirrored, conv1d(x[0], x[2], {}, {.groups = 4})};
      },
      specs));
  const Tensor in[] = {sample({2, 4, 40}, 1), sample({6, 4, 5}, 2), sample({4, 1, 3}, 3)};
  BOOST_TEST(from_the_third_call_on([&] { (void)plan.run(in); }) == 0U);
}

BOOST_AUTO_TEST_CASE(a_compiled_training_step_runs_without_the_heap) {
  for (const std::int64_t hidden : {16, 128, 512}) {
    const Classifier net(40, hidden);
    nn::Adam adam(net.parameters());
    const auto step = compile([&](const Tensor& x, const Tensor& y) {
      Tape tape;
      const Tensor loss = nn::cross_entropy(net(x), y);
      adam.step(tape.grad(loss, net.parameters()));
      return loss;
    });
    const Tensor x = sample({32, 40}, 1);
    const Tensor y = cast(uniform({32}, {3, 3, 3}, 0, 10), Dtype::i64);
    BOOST_TEST(from_the_third_call_on([&] { (void)step(x, y); }) == 0U, "hidden size " << hidden);
  }
}

BOOST_AUTO_TEST_CASE(a_compiled_step_of_an_unrolled_gru_runs_without_the_heap) {
  for (const std::int64_t hidden : {8, 64}) {
    nn::GruOptions options;
    options.form = nn::Form::unrolled;
    const nn::Gru gru(12, hidden, options, {.seed = 1, .prefix = "gru"});
    nn::Adam adam(gru.parameters());
    const auto step = compile([&](const Tensor& x) {
      Tape tape;
      const Tensor loss = mean(square(gru(x)));
      adam.step(tape.grad(loss, gru.parameters()));
      return loss;
    });
    const Tensor x = sample({4, 9, 12}, 1);
    BOOST_TEST(from_the_third_call_on([&] { (void)step(x); }) == 0U, "hidden size " << hidden);
  }
}

BOOST_AUTO_TEST_SUITE_END()
