// Averages of weights compared with scalar loops.
#include "ferrite/nn/optim/weight_average.h"

#include "ferrite/compile/compile.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor weights(int step) { return Tensor::from({1.0 + step, std::sin(0.7 * step)}); }

/// Returns the averages of the weights of the first steps, element by element.
std::vector<double> averaged(int steps, std::optional<double> decay) {
  std::vector<double> average;
  for (int t = 0; t < steps; ++t) {
    const std::vector<double> w = weights(t).to_vector<double>();
    if (t == 0) average = w;
    for (std::size_t i = 0; i < w.size(); ++i)
      average[i] = decay ? *decay * average[i] + (1 - *decay) * w[i] : (average[i] * t + w[i]) / (t + 1);
  }
  return average;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(weight_average)

BOOST_AUTO_TEST_CASE(averages_are_those_of_a_loop) {
  for (const std::optional<double> decay : {std::optional<double>(), std::optional<double>(0.9)}) {
    const Parameter p("p", weights(0));
    nn::WeightAverage average({p}, {.decay = decay});
    for (int t = 0; t < 7; ++t) {
      p.assign(weights(t));
      average.update();
    }
    BOOST_TEST(average.count() == 7);
    average.swap();
    BOOST_TEST(average.swapped());
    BOOST_TEST(within(p.peek(), Tensor::from(averaged(7, decay), {2}), 1e-14));
    average.swap();
    BOOST_TEST(identical(p.peek(), weights(6)));
  }
}

BOOST_AUTO_TEST_CASE(the_first_update_takes_the_weights_as_they_are) {
  const Parameter p("p", uniform({50}, {1, 0, 0}, -1, 1));
  nn::WeightAverage average({p}, {.decay = 0.99});
  average.update();
  BOOST_TEST(identical(average.states()[0].variable.peek(), p.peek()));
}

BOOST_AUTO_TEST_CASE(compiled_updates_have_the_bits_of_eager_ones) {
  const Parameter p("p", weights(0)), q("q", weights(0));
  nn::WeightAverage eager({p}), planned({q});
  const auto step = compile([&](const Tensor& w) {
    q.assign(w);
    planned.update();
    return w;
  });
  for (int t = 0; t < 5; ++t) {
    p.assign(weights(t));
    eager.update();
    (void)step(weights(t));
  }
  for (std::size_t i = 0; i < eager.states().size(); ++i)
    BOOST_TEST(identical(eager.states()[i].variable.peek(), planned.states()[i].variable.peek()));
  BOOST_TEST(step.plans() == 1);
}

// Continuing training from averages would be a silent mistake: a step compiled before the exchange throws as well.
BOOST_AUTO_TEST_CASE(a_compiled_step_refuses_exchanged_averages) {
  const Parameter p("p", weights(0));
  nn::WeightAverage average({p});
  const auto step = compile([&](const Tensor& w) {
    p.assign(w);
    average.update();
    return w;
  });
  (void)step(weights(1));
  (void)step(weights(2));
  average.swap();
  const Tensor exchanged = p.peek();
  BOOST_CHECK_EXCEPTION((void)step(weights(3)), ValueError, says("swap them back first"));
  BOOST_TEST(identical(p.peek(), exchanged));
  BOOST_TEST(average.count() == 2);
  average.swap();
  (void)step(weights(3));
  BOOST_TEST(average.count() == 3);
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  const Parameter p("p", ones({2}));
  nn::WeightAverage average({p});
  BOOST_CHECK_EXCEPTION(average.swap(), ValueError,
                        says("weight average: there are no averages before the first update"));
  average.update();
  average.swap();
  BOOST_CHECK_EXCEPTION(average.update(), ValueError,
                        says("weight average: the averages are exchanged with the parameters; swap them back first"));
  BOOST_CHECK_EXCEPTION(nn::WeightAverage({p}, {.decay = 1}), ValueError,
                        says("weight average: the decay must lie in [0, 1), got 1.0"));
  BOOST_CHECK_EXCEPTION(nn::WeightAverage({}), ValueError, says("weight average: there are no parameters"));
  BOOST_CHECK_EXCEPTION(nn::WeightAverage({Parameter()}), ValueError,
                        says("weight average: parameter 0 is an empty handle"));
  BOOST_CHECK_EXCEPTION(nn::WeightAverage({p, p}), ValueError,
                        says("weight average: the parameter 'p' is given twice"));
}

BOOST_AUTO_TEST_SUITE_END()
