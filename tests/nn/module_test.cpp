// Modules: names, tied parameters, modes, and errors of optimisers.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

/// A module with one layer under two names.
struct Tied : nn::Module {
  nn::Linear layer{1, 1, {}, false};
  Tied() {
    adopt("a", layer);
    adopt("b", layer);
  }
};

struct Clashing : nn::Module {
  nn::Linear layer{1, 1};
  Clashing() {
    adopt("a", layer);
    adopt("a", layer);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(modules)

/// One step from w = 1 with loss = w and rate 1 gives 1 - 1 = 0, not -1.
BOOST_AUTO_TEST_CASE(a_tied_parameter_is_updated_once) {
  const Tied tied;
  BOOST_TEST(tied.named_parameters().size() == 2U);
  BOOST_TEST(tied.parameters().size() == 1U);
  BOOST_TEST(tied.parameter_count() == 1);
  tied.layer.weight.assign(ones({1, 1}));
  nn::Sgd sgd(tied.parameters(), {.learning_rate = 1});
  Tape tape;
  sgd.step(tape.grad(sum(tied.layer(ones({1, 1}))), tied.parameters()));
  BOOST_TEST(tied.layer.weight.peek().item() == 0.0F);
}

BOOST_AUTO_TEST_CASE(an_optimiser_takes_a_parameter_once) {
  const Parameter a("a", ones({1}));
  BOOST_CHECK_EXCEPTION(nn::Sgd({a, a}), ValueError, says("optimizer: the parameter 'a' is given twice"));
}

BOOST_AUTO_TEST_CASE(two_parameters_may_not_share_a_full_name) {
  BOOST_CHECK_EXCEPTION(Clashing(), ValueError, says("adopt: the name 'a.weight' is taken"));
  nn::Sequential chain;
  auto inner = std::make_unique<nn::Sequential>();
  inner->add("b", std::make_unique<nn::Linear>(3, 3));
  chain.add("a", std::move(inner));
  BOOST_CHECK_EXCEPTION(chain.add("a.b", std::make_unique<nn::Linear>(3, 3)), ValueError,
                        says("'a.b.weight' is taken"));
  BOOST_TEST(chain.size() == 1U);
  BOOST_TEST(chain.named_parameters().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_null_layer_is_refused) {
  nn::Sequential chain;
  BOOST_CHECK_EXCEPTION(chain.add("x", nullptr), ValueError, says("the layer 'x' is null"));
}

BOOST_AUTO_TEST_CASE(clones_keep_the_mode) {
  nn::Sequential chain;
  chain.add("0", std::make_unique<nn::Flatten>());
  chain.add("1", std::make_unique<nn::Dropout>(0.5));
  chain.eval();
  const auto copy = chain.clone();
  BOOST_TEST(!copy->training());
  BOOST_TEST(!dynamic_cast<const nn::Sequential&>(*copy)[0].training());
  BOOST_TEST(!dynamic_cast<const nn::Sequential&>(*copy)[1].training());
  chain.train();
  BOOST_TEST(!copy->training());  // and have their own
  BOOST_TEST(chain.clone()->training());
}

/// A gradient of zero leaves only the decay: 1 - rate * 0.01, PyTorch's default.
BOOST_AUTO_TEST_CASE(adamw_decays_unless_told_otherwise) {
  const auto after_a_step = [](auto make) {
    const Parameter a("a", ones({1}, Dtype::f64));
    make(a).step({zeros({1}, Dtype::f64)});
    return a.peek().item<double>();
  };
  const auto adamw = [](const nn::AdamOptions& o) { return [o](const Parameter& a) { return nn::AdamW({a}, o); }; };
  BOOST_TEST(std::fabs(after_a_step(adamw({.learning_rate = 0.1})) - 0.999) < 1e-15);
  BOOST_TEST(after_a_step(adamw({.learning_rate = 0.1, .weight_decay = 0})) == 1.0);
  BOOST_TEST(after_a_step([](const Parameter& a) { return nn::Adam({a}, {.learning_rate = 0.1}); }) == 1.0);
}

/// The loss of a right answer at +-x is log(1 + e^-|x|).
BOOST_AUTO_TEST_CASE(small_binary_losses_keep_their_digits) {
  for (const double x : {12.0, 17.0, 20.0, 40.0}) {
    const auto exact = static_cast<float>(std::log1p(std::exp(-x)));
    const auto at = [&](double logit, float y) {
      return nn::bce_with_logits(Tensor::from({static_cast<float>(logit)}), Tensor::from({y})).item();
    };
    BOOST_TEST(std::fabs(at(x, 1) - exact) <= 1e-5F * exact);
    BOOST_TEST(std::fabs(at(-x, 0) - exact) <= 1e-5F * exact);
  }
}

/// A mismatch found late leaves the values before it alone.
BOOST_AUTO_TEST_CASE(copying_values_is_all_or_nothing) {
  struct Two : nn::Module {
    nn::Linear a{2, 2, {.seed = 1, .prefix = "a"}};
    nn::Linear b;
    explicit Two(std::int64_t width, std::uint64_t seed) : b(2, width, {.seed = seed, .prefix = "b"}) {
      nn::copy_values(nn::Linear(2, 2, {.seed = seed, .prefix = "a"}), a);
      adopt("a", a), adopt("b", b);
    }
  };
  const Two from(3, 1), to(4, 2);
  const Tensor before = to.a.weight.peek() + 0;
  BOOST_CHECK_EXCEPTION(nn::copy_values(from, to), Error, says("copy_values: 'b.weight' is f32[2, 3] and f32[2, 4]"));
  BOOST_TEST(identical(to.a.weight.peek(), before));
}

BOOST_AUTO_TEST_SUITE_END()
