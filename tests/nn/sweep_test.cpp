// Steps of RMSprop and of stochastic gradient descent in place: they have the bits of their definitions in operations,
// which run when a state has another owner.
#include <limits>

#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

const std::vector<nn::SgdOptions> kSgd = {{},
                                          {.weight_decay = 0.1},
                                          {.momentum = 0.9},
                                          {.momentum = 0.3, .weight_decay = 0.2},
                                          {.momentum = 0.7, .nesterov = true},
                                          {.momentum = 0.9, .nesterov = true, .weight_decay = 0.01}};
const std::vector<nn::RmsPropOptions> kRmsProp = {{},
                                                  {.alpha = 0.5, .weight_decay = 0.1},
                                                  {.momentum = 0.9},
                                                  {.alpha = 0.3, .epsilon = 0, .centered = true},
                                                  {.weight_decay = 0.1, .momentum = 0.9, .centered = true}};

std::vector<Tensor> values_of(const nn::Optimizer& o) {
  std::vector<Tensor> all;
  for (const Parameter& p : o.parameters()) all.push_back(p.peek());
  for (const auto& s : o.states()) all.push_back(s.variable.peek());
  return all;
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& list) {
  std::vector<Tensor> copies;
  for (const Tensor& t : list) copies.push_back(Tensor::from(cast(t, Dtype::f64).to_vector<double>(), t.shape()));
  for (std::size_t i = 0; i < list.size(); ++i) copies[i] = cast(copies[i], list[i].dtype());
  return copies;
}

/// Runs steps of two optimisers; the values of the second have another owner, so that operations compute its steps.
template <class O, class Options>
void check_same(const Options& options, const Tensor& w, const std::vector<Tensor>& gradients) {
  O swept({Parameter("w", w + 0)}, options), composed({Parameter("w", w + 0)}, options);
  for (const Tensor& g : gradients) {
    const void* const state = swept.states().back().variable.peek().identity();
    swept.step({g});
    if (swept.states().size() > 1) BOOST_TEST(swept.states().back().variable.peek().identity() == state);
    const std::vector<Tensor> held = values_of(composed), copies = copies_of(held);
    composed.step({g});
    for (std::size_t i = 0; i < held.size(); ++i) BOOST_TEST_REQUIRE(identical(held[i], copies[i]), "held value " << i);
    const std::vector<Tensor> a = values_of(swept), b = values_of(composed);
    for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST_REQUIRE(identical(a[i], b[i]), "value " << i);
  }
}
/// Computes the step of an optimiser without states, which has no state that another owner could hold.
Tensor plain(const Tensor& w, const Tensor& g, double decay) { return w - 1e-2 * (decay > 0 ? g + decay * w : g); }

Tensor draw(std::int64_t n, std::uint64_t stream, Dtype dtype) { return uniform({n}, {3, stream, 0}, -1, 1, dtype); }

void check_all(const Tensor& w, const std::vector<Tensor>& gradients) {
  for (const nn::SgdOptions& o : kSgd) check_same<nn::Sgd>(o, w, gradients);
  for (const nn::RmsPropOptions& o : kRmsProp) check_same<nn::RmsProp>(o, w, gradients);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sweeps)

BOOST_AUTO_TEST_CASE(have_the_bits_of_their_definitions_at_every_length) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {1, 7, 16, 33, 1000})
      check_all(draw(n, 1, dtype), {draw(n, 2, dtype), draw(n, 3, dtype), draw(n, 4, dtype)});
}

BOOST_AUTO_TEST_CASE(and_without_states) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const double decay : {0.0, 0.3}) {
      const Parameter p("p", draw(37, 1, dtype));
      nn::Sgd sgd({p}, {.weight_decay = decay});
      const Tensor before = p.peek() + 0, g = draw(37, 2, dtype);
      sgd.step({g});
      BOOST_TEST(identical(p.peek(), plain(before, g, decay)));
    }
}

BOOST_AUTO_TEST_CASE(have_the_bits_of_the_formula_of_momentum) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const nn::SgdOptions& o : kSgd) {
      const Parameter p("p", draw(37, 1, dtype));
      nn::Sgd sgd({p}, o);
      Tensor w = p.peek() + 0, v = zeros({37}, dtype);
      for (std::uint64_t step = 0; step < 3; ++step) {
        const Tensor g = draw(37, 2 + step, dtype), decayed = o.weight_decay > 0 ? g + o.weight_decay * w : g;
        v = o.momentum * v + decayed;
        w = w - 1e-2 * (o.nesterov ? decayed + o.momentum * v : v);
        sgd.step({g});
        BOOST_TEST(identical(p.peek(), w));
      }
    }
}

BOOST_AUTO_TEST_CASE(have_the_bits_of_the_formula_of_rmsprop) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const nn::RmsPropOptions& o : kRmsProp) {
      const Parameter p("p", draw(37, 1, dtype));
      nn::RmsProp rmsprop({p}, o);
      Tensor w = p.peek() + 0, squares = zeros({37}, dtype), mean = squares, v = squares;
      for (std::uint64_t step = 0; step < 3; ++step) {
        const Tensor g = draw(37, 2 + step, dtype), decayed = o.weight_decay > 0 ? g + o.weight_decay * w : g;
        squares = o.alpha * squares + (1 - o.alpha) * square(decayed);
        mean = mean + (1 - o.alpha) * (decayed - mean);
        const Tensor variance = o.centered ? maximum(squares - square(mean), 0) : squares;
        v = o.momentum * v + decayed / (sqrt(variance) + o.epsilon);
        w = w - 1e-2 * v;
        rmsprop.step({g});
        BOOST_TEST(identical(p.peek(), w));
      }
    }
}

BOOST_AUTO_TEST_CASE(and_of_special_values) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const double least = dtype == Dtype::f32 ? 0x1p-149 : 0x1p-1074;
    const Tensor w = cast(Tensor::from({-0.0, 0.0, inf, nan, 1.0, least, 1.0}), dtype);
    const Tensor g = cast(Tensor::from({0.0, -0.0, 1.0, 1.0, inf, -least, nan}), dtype);
    check_all(w, {g, g, -g});
  }
}

BOOST_AUTO_TEST_CASE(and_with_threads_and_gradients_that_do_not_lie_row_major) {
  const int before = thread_count();
  set_threads(3);
  const std::int64_t n = 100'003;
  check_all(draw(n, 1, Dtype::f32), {draw(n, 2, Dtype::f32)});
  set_threads(before);
  const Tensor w = uniform({9, 5}, {3, 1, 0}, -1, 1), g = transpose(uniform({5, 9}, {3, 2, 0}, -1, 1));
  check_all(w, {g, expand(full({1, 1}, 0.5), {9, 5})});
}

BOOST_AUTO_TEST_CASE(leave_a_value_alone_that_somebody_holds) {
  const Parameter p("p", full({40}, 2));
  nn::RmsProp o({p}, {.momentum = 0.5});
  const Tensor held = p.peek();
  o.step({ones({40})});
  BOOST_TEST(identical(held, full({40}, 2)));
  BOOST_TEST(!identical(p.peek(), held));
  const Parameter q("q", full({40}, 2));
  nn::Sgd sgd({q}, {.learning_rate = 0.5});
  sgd.step({q.peek()});  // the gradient is the value itself
  BOOST_TEST(identical(q.peek(), full({40}, 1)));
}

/// The first parameter could be updated when the gradient of the second is refused.
BOOST_AUTO_TEST_CASE(change_nothing_when_a_step_throws) {
  const Parameter a("a", ones({20})), b("b", ones({20}));
  nn::Sgd o({a, b}, {.momentum = 0.9});
  o.step({ones({20}), ones({20})});
  const std::vector<Tensor> copies = copies_of(values_of(o));
  BOOST_CHECK_EXCEPTION(o.step({ones({20}), ones({3})}), ShapeError, says("the gradient of 'b' has shape"));
  const std::vector<Tensor> after = values_of(o);
  for (std::size_t i = 0; i < after.size(); ++i) BOOST_TEST(identical(after[i], copies[i]), "value " << i);
}

BOOST_AUTO_TEST_CASE(go_on_after_the_optimiser_has_moved) {
  const Parameter p("p", ones({20}));
  nn::Sgd first({p}, {.learning_rate = 1, .momentum = 0.5});
  first.step({ones({20})});
  nn::Sgd second(std::move(first));
  second.step({ones({20})});
  BOOST_TEST(identical(p.peek(), full({20}, 1 - 1 - 1.5)));
}

BOOST_AUTO_TEST_SUITE_END()
