// Random draws in compiled functions: every run makes new draws, from variables that may be replaced.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/tensor/generator.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

BOOST_AUTO_TEST_SUITE(draws)

/// After values are loaded into a net its dropout continues the stream of those values, also when compiled.
BOOST_AUTO_TEST_CASE(dropout_draws_from_the_key_that_was_loaded) {
  const nn::Dropout first(0.5, {.seed = 1, .prefix = "a"}), second(0.5, {.seed = 2, .prefix = "b"});
  const auto compiled = first.compiled();
  const Tensor x = ones({64});
  (void)compiled(x);
  nn::copy_values(second, first);
  for (int i = 0; i < 3; ++i) BOOST_TEST(identical(compiled(x), second(x)));
}

BOOST_AUTO_TEST_CASE(a_generator_draws_anew_in_every_run) {
  const auto draw = [](const Generator& g) {
    return Tensors{g.normal({5}), g.uniform({5}, -1, 2, Dtype::f64), g.bernoulli({5}, 0.5), g.normal({3}, 1, 0.5)};
  };
  const Generator eager(7, "noise"), planned(7, "noise"), other(7, "sound"), third(8, "noise");
  const auto f = compile([&](const Tensors&) { return draw(planned); });
  Tensors before;
  for (int i = 0; i < 3; ++i) {
    const Tensors a = draw(eager), b = f(Tensors{});
    for (std::size_t k = 0; k < a.size(); ++k) BOOST_TEST(identical(a[k], b[k]));
    if (i > 0) BOOST_TEST(!identical(a[0], before[0]));
    before = a;
  }
  BOOST_TEST(planned.calls.value().item<std::int64_t>() == 12);
  BOOST_TEST(!identical(other.normal({5}), Generator(7, "noise").normal({5})));
  BOOST_TEST(!identical(third.normal({5}), Generator(7, "noise").normal({5})));
  planned.calls.assign(full({}, 0, Dtype::i64));
  BOOST_TEST(identical(f(Tensors{})[0], Generator(7, "noise").normal({5})));
}

/// A generator's numbers are those of the constant key with the number of the call.
BOOST_AUTO_TEST_CASE(a_key_that_is_a_value_draws_what_a_constant_key_draws) {
  const Tensor key = Tensor::from<std::int64_t>({5, 9}), three = full({}, 3, Dtype::i64);
  const RandomKey constant{5, 9, 3};
  BOOST_TEST(identical(uniform({7}, key, three, -1, 1), uniform({7}, constant, -1, 1)));
  BOOST_TEST(identical(normal({7}, key, three, 2, 3), normal({7}, constant, 2, 3)));
  BOOST_TEST(
      identical(normal({7}, RandomKey{5, 9, 1}, 0, 1, Dtype::f32, full({}, 2, Dtype::i64)), normal({7}, constant)));
  BOOST_TEST(identical(bernoulli({7}, key, three, 0.5), bernoulli({7}, constant, 0.5)));
  BOOST_CHECK_EXCEPTION((void)normal({7}, three, three), ShapeError, says("normal: the key must be i64[2]"));
  BOOST_CHECK_EXCEPTION((void)uniform({7}, key, key), ShapeError, says("uniform: the counter must be i64 of one"));
}

/// A variational step has equal losses and parameters eager and compiled, with noise that differs from step to step.
BOOST_AUTO_TEST_CASE(a_variational_step_is_compiled) {
  struct Twin {
    nn::Linear encoder{4, 4, {.seed = 1, .prefix = "encoder"}}, decoder{2, 4, {.seed = 1, .prefix = "decoder"}};
    Generator noise{3};
    nn::Adam adam{[&] {
      std::vector<Parameter> all = encoder.parameters();
      for (const Parameter& p : decoder.parameters()) all.push_back(p);
      return all;
    }()};
    Tensor step(const Tensor& x) {
      Tape tape;
      const Tensor code = encoder(x), mean = slice(code, 1, 0, 2), log_variance = slice(code, 1, 2, 4);
      const Tensor z = mean + exp(0.5 * log_variance) * noise.normal(mean.shape());
      const Tensor kl = -0.5 * sum(1 + log_variance - square(mean) - exp(log_variance));
      const Tensor loss = sum(square(decoder(z) - x)) + kl;
      adam.step(tape.grad(loss, adam.parameters()));
      return loss.unmarked();
    }
  };
  Twin eager, planned;
  const auto step = compile([&](const Tensor& x) { return planned.step(x); });
  const Tensor x = uniform({3, 4}, {.seed = 4}, -1, 1);
  for (int i = 0; i < 5; ++i) BOOST_TEST(identical(eager.step(x), step(x)));
  BOOST_TEST(identical(eager.encoder.weight.peek(), planned.encoder.weight.peek()));
}

/// A value that is read without the program would become a constant of it.
BOOST_AUTO_TEST_CASE(reading_past_the_program_is_refused_while_tracing) {
  const State s("s", ones({2}));
  const auto f = compile([&](const Tensor& x) { return x + s.peek(); });
  BOOST_CHECK_EXCEPTION((void)f(ones({2})), TraceError, says("peek: 's'"));
}

/// A schedule's count of steps would become a constant, too.
BOOST_AUTO_TEST_CASE(a_schedule_advances_outside_of_compiled_functions) {
  const nn::Linear layer(2, 1, {.seed = 1, .prefix = "layer"});
  nn::Adam adam(layer.parameters());
  nn::CosineSchedule cosine(adam, 10);
  const auto f = compile([&](const Tensor& x) {
    cosine.advance();
    return layer(x);
  });
  BOOST_CHECK_EXCEPTION((void)f(ones({1, 2})), TraceError, says("schedule: its count of steps"));
  BOOST_TEST(cosine.steps() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
