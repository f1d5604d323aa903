// Compiled functions: whole training steps, gradients through compiled calls, plans by shape, threads.
#include "ferrite/compile/compile.h"

#include <thread>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/gru.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor sample(const Shape& shape, std::uint64_t stream, double low = -1, double high = 1) {
  return uniform(shape, {7, stream, 0}, low, high);
}

/// A small net with everything that a training step may hold.
struct Net : nn::Module {
  explicit Net(double dropout = 0) : drop(dropout, {.seed = 3, .prefix = "drop"}) {
    adopt("first", first);
    adopt("norm", norm);
    adopt("drop", drop);
    adopt("second", second);
  }
  Tensor operator()(const Tensor& x) const { return second(drop(norm(gelu(first(x))))); }

  nn::Linear first{6, 16, {.seed = 1, .prefix = "first"}};
  nn::LayerNorm norm{16, {.seed = 1, .prefix = "norm"}};
  nn::Dropout drop;
  nn::Linear second{16, 4, {.seed = 2, .prefix = "second"}};
};

struct Training {
  explicit Training(double dropout) : net(dropout), adam(net.parameters(), {.learning_rate = 1e-2}), cosine(adam, 50) {}
  Tensor step(const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), y);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  }
  Net net;
  nn::Adam adam;
  nn::CosineSchedule cosine;
};

Tensor labels(std::int64_t n, std::uint64_t stream) { return cast(uniform({n}, {9, stream, 0}, 0, 4), Dtype::i64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(compiled_functions)

BOOST_AUTO_TEST_CASE(a_function_gives_its_own_bits) {
  const auto f = [](const Tensor& a, const Tensor& b) { return relu(exp2(a) - sin(b)) + 2.123 / (1 + square(b)); };
  const auto g = compile(f);
  const Tensor a = sample({33, 17}, 1);
  const Tensor b = sample({33, 17}, 2);
  for (int i = 0; i < 3; ++i) BOOST_TEST(identical(g(a, b), f(a, b)));
  BOOST_TEST(g.plans() == 1U);
  BOOST_TEST(g.report().kernels == 1U);
  BOOST_TEST(identical(g(transpose(a), transpose(b)), f(transpose(a), transpose(b))));
  BOOST_TEST(g.plans() == 2U);  // another shape
}

BOOST_AUTO_TEST_CASE(results_may_be_several_or_none) {
  const auto two = compile([](const Tensor& x) { return std::pair(x + 1, x * x); });
  const auto [next, squared] = two(full({3}, 2.0));
  BOOST_TEST(identical(next, full({3}, 3.0)));
  BOOST_TEST(identical(squared, full({3}, 4.0)));
  const auto list = compile([](const Tensors& x) { return Tensors{x[1], x[0] - x[1]}; });
  const Tensors out = list(Tensors{full({2}, 5.0), full({2}, 3.0)});
  BOOST_TEST(identical(out[0], full({2}, 3.0)));
  BOOST_TEST(identical(out[1], full({2}, 2.0)));
  State count("count", full({}, std::int64_t{0}, Dtype::i64));
  const auto nothing = compile([&] { count.assign(count.value() + 1); });
  nothing();
  nothing();
  BOOST_TEST(count.peek().item<std::int64_t>() == 2);
}

BOOST_AUTO_TEST_CASE(fifty_training_steps_with_adam_and_a_schedule_equal_eager_ones) {
  for (const double dropout : {0.0, 0.3}) {
    Training eager(dropout);
    Training planned(dropout);
    const auto step = compile([&](const Tensor& x, const Tensor& y) { return planned.step(x, y); });
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Tensor x = sample({8, 6}, 100 + i);
      const Tensor y = labels(8, i);
      BOOST_TEST_REQUIRE(identical(step(x, y), eager.step(x, y)));
      eager.cosine.advance();
      planned.cosine.advance();
    }
    BOOST_TEST(step.plans() == 1U);
    for (std::size_t i = 0; i < eager.net.parameters().size(); ++i)
      BOOST_TEST(identical(planned.net.parameters()[i].peek(), eager.net.parameters()[i].peek()));
    for (std::size_t i = 0; i < eager.adam.states().size(); ++i)
      BOOST_TEST(identical(planned.adam.states()[i].variable.peek(), eager.adam.states()[i].variable.peek()));
  }
}

BOOST_AUTO_TEST_CASE(a_training_step_of_a_recurrence_equals_the_eager_one_in_every_form) {
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::fused}) {
    const auto make = [&] {
      nn::GruOptions options;
      options.form = form;
      return nn::Gru(5, 7, options, {.seed = 4, .prefix = "gru"});
    };
    const nn::Gru eager = make();
    const nn::Gru planned = make();
    nn::Sgd eager_sgd(eager.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
    nn::Sgd planned_sgd(planned.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
    const auto train = [](const nn::Gru& gru, nn::Sgd& sgd, const Tensor& x) {
      Tape tape;
      const Tensor loss = mean(square(gru(x)));
      sgd.step(tape.grad(loss, gru.parameters()));
      return loss;
    };
    const auto step = compile([&](const Tensor& x) { return train(planned, planned_sgd, x); });
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Tensor x = sample({3, 6, 5}, 50 + i);
      BOOST_TEST_REQUIRE(identical(step(x), train(eager, eager_sgd, x)));
    }
    for (std::size_t i = 0; i < eager.parameters().size(); ++i)
      BOOST_TEST(identical(planned.parameters()[i].peek(), eager.parameters()[i].peek()));
  }
}

BOOST_AUTO_TEST_CASE(switches_choose_the_plan) {
  const Net net(0.5);
  const auto f = compile([&](const Tensor& x) { return net(x); });
  const Tensor x = sample({4, 6}, 5);
  const Tensor training = f(x);
  net.eval();
  const Tensor evaluating = f(x);
  BOOST_TEST(f.plans() == 2U);
  BOOST_TEST(identical(evaluating, net(x)));
  BOOST_TEST(!identical(training, evaluating));
  net.train();
  BOOST_TEST(!identical(f(x), training));  // another draw: the counter is a variable
  BOOST_TEST(f.plans() == 2U);
}

BOOST_AUTO_TEST_CASE(gradients_flow_through_compiled_calls) {
  const Net net;
  const auto f = compile([&](const Tensor& x) { return tanh(net(x)); });
  const Tensor x = sample({4, 6}, 6);
  const auto gradients = [&](const auto& function) {
    Tape tape;
    const Tensor v = tape.watch(x);
    const Tensor loss = mean(square(function(v)));
    std::vector<Tensor> all;
    GradOptions keep;
    keep.retain = true;
    for (const Tensor& g : tape.grad(loss, {v}, keep)) all.push_back(g);
    for (const Tensor& g : tape.grad(loss, net.parameters())) all.push_back(g);
    return all;
  };
  const auto eager = gradients([&](const Tensor& t) { return tanh(net(t)); });
  const auto planned = gradients(f);
  for (std::size_t i = 0; i < eager.size(); ++i) BOOST_TEST(identical(planned[i], eager[i]));
  Tape tape;
  const Tensor v = tape.watch(x);
  (void)f(v);
  BOOST_TEST(tape.size() == 1U);  // one entry
}

BOOST_AUTO_TEST_CASE(gradients_of_gradients_too) {
  const auto f = compile([](const Tensor& x, const Tensor& w) { return std::pair(sin(x * w), sum(exp(w))); });
  const auto report = gradcheck(
      [&](const Tensors& x) {
        const auto [a, b] = f(x[0], x[1]);
        return a * b;
      },
      {cast(sample({3}, 8), Dtype::f64), cast(sample({3}, 9), Dtype::f64)}, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_CASE(a_compiled_function_inside_another_becomes_part_of_it) {
  const auto inner = compile([](const Tensor& x) { return exp(x); });
  const auto outer = compile([&](const Tensor& x) { return inner(x) + 1; });
  const Tensor x = sample({5}, 1);
  BOOST_TEST(identical(outer(x), exp(x) + 1));
  BOOST_TEST(outer.report().kernels == 1U);
  BOOST_TEST(inner.plans() == 0U);
}

BOOST_AUTO_TEST_CASE(reading_values_inside_is_an_error) {
  const auto f = compile([](const Tensor& x) { return x.item() > 0 ? x : -x; });
  BOOST_CHECK_EXCEPTION(f(full({}, 1.0)), TraceError, says("traced"));
  Tensor kept;
  const auto g = compile([&](const Tensor& x) {
    kept = exp(x);
    return x + kept;
  });
  (void)g(full({2}, 1.0));
  BOOST_CHECK_THROW(kept + 1, TraceError);
}

BOOST_AUTO_TEST_CASE(a_gradient_outlives_its_function) {
  Tape tape;
  const Tensor x = tape.watch(full({2}, 1.0));
  Tensor y;
  {
    const auto f = compile([](const Tensor& t) { return exp(t); });
    y = sum(f(x));
  }
  BOOST_TEST(identical(tape.grad(y, {x})[0], exp(full({2}, 1.0))));
}

BOOST_AUTO_TEST_CASE(a_compiled_layer_follows_its_weights) {
  const nn::Linear layer(3, 2, {.seed = 1, .prefix = "l"});
  const auto fast = layer.compiled();
  const Tensor x = sample({4, 3}, 1);
  BOOST_TEST(identical(fast(x), layer(x)));
  layer.weight.assign(sample({3, 2}, 2));
  BOOST_TEST(identical(fast(x), layer(x)));
  BOOST_TEST(fast.plans() == 1U);
}

BOOST_AUTO_TEST_CASE(plans_refuse_other_arguments) {
  const std::vector<Spec> specs = {{{2, 3}, Dtype::f32}};
  const Plan plan(trace([](const Tensors& x) { return Tensors{exp(x[0])}; }, specs));
  BOOST_CHECK_EXCEPTION((void)plan.run({zeros({3, 2})}), ShapeError, says("must be f32[2, 3], got f32[3, 2]"));
  BOOST_CHECK_EXCEPTION((void)plan.run({zeros({2, 3}, Dtype::f64)}), DtypeError, says("got f64[2, 3]"));
  BOOST_CHECK_EXCEPTION((void)plan.run({}), ValueError, says("1 arguments are needed, got 0"));
  const auto f = compile([](const Tensor& x) { return x; });
  BOOST_CHECK_EXCEPTION((void)f.report(), Error, says("before the first call"));
}

/// The gradient of a compiled gradient is that of the function, even if the gradient of an operation cannot be
/// differentiated.
BOOST_AUTO_TEST_CASE(second_derivatives_through_a_compiled_function) {
  const nn::Gru gru(2, 3, {}, {.seed = 1, .dtype = Dtype::f64});
  const auto product = [](const Tensor& x) { return prod(x, {1}); };
  const auto states = [&](const Tensor& x) { return gru(x); };
  const auto second = [](const auto& f, const Tensor& at) {
    Tape tape;
    const Tensor x = tape.watch(at);
    const Tensor y = f(x);
    const Tensor g = tape.grad(y, {x}, {.create_graph = true}, uniform(y.shape(), {3, 1, 1}, -1, 1, Dtype::f64))[0];
    return tape.grad(g, {x}, {}, uniform(g.shape(), {3, 2, 1}, -1, 1, Dtype::f64))[0];
  };
  const Tensor zeros_inside = Tensor::from({2.0, 0.0, 3.0, 0.0, 0.0, 5.0}, {2, 3});
  BOOST_TEST(support::within(second(compile(product), zeros_inside), second(product, zeros_inside), 1e-13));
  BOOST_TEST(amax(abs(second(product, zeros_inside))).item<double>() > 0.1);
  const Tensor x = uniform({2, 4, 2}, {3, 3, 1}, -1, 1, Dtype::f64);
  BOOST_TEST(support::within(second(compile(states), x), second(states, x), 1e-13));
}

BOOST_AUTO_TEST_CASE(what_a_function_throws_comes_through_and_leaves_it_usable) {
  const Tensor table = sample({4, 2}, 1);
  const auto f = compile([&](const Tensor& index) { return index_select(table, 0, index) * 2; });
  const Tensor good = Tensor::from({std::int64_t{1}, std::int64_t{3}}, {2});
  const Tensor bad = Tensor::from({std::int64_t{1}, std::int64_t{4}}, {2});
  BOOST_TEST(identical(f(good), index_select(table, 0, good) * 2));
  BOOST_CHECK_EXCEPTION((void)f(bad), ShapeError, says("out of range"));
  BOOST_TEST(identical(f(good), index_select(table, 0, good) * 2));
  const auto wrong = compile([](const Tensor& x) { return matmul(x, x); });
  BOOST_CHECK_THROW((void)wrong(zeros({2, 3})), ShapeError);
  BOOST_TEST(wrong.plans() == 0U);
}

BOOST_AUTO_TEST_CASE(two_threads_run_one_function_at_once) {
  const nn::Linear layer(8, 8, {.seed = 1, .prefix = "l"});
  const auto f = layer.compiled();
  const auto work = [&](std::uint64_t stream, bool& good) {
    for (std::uint64_t i = 0; i < 200; ++i) {
      const Tensor x = sample({16, 8}, stream + i);
      good &= bool(identical(f(x), layer(x)));
    }
  };
  bool first = true;
  bool second = true;
  std::thread other([&] { work(1000, second); });
  work(5000, first);
  other.join();
  BOOST_TEST(first);
  BOOST_TEST(second);
}

BOOST_AUTO_TEST_SUITE_END()
