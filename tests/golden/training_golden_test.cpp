// Fifty training steps in f64 compared with PyTorch: tests/data/make_training_fixture.py writes them.
#include <functional>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using MakeOptimizer = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>;

void check(const std::string& kind, const MakeOptimizer& make, bool clip_and_cosine = false) {
  const io::TensorFile file = support::fixture("training.safetensors");
  const dsl::Network net = dsl::sequence(5).gru(8).last_step().linear(4).build(0, Dtype::f64);
  io::load(net, file, {.prefix = "init/"});
  const std::unique_ptr<nn::Optimizer> optimizer = make(net.parameters());
  nn::CosineSchedule cosine(*optimizer, 50);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 50; ++step) {
    Tape tape;
    const Tensor loss =
        nn::cross_entropy(net(select(file.tensor("x"), 0, step)), contiguous(select(file.tensor("y"), 0, step)));
    losses.push_back(loss.item<double>());
    Tensors g = tape.grad(loss, net.parameters());
    if (clip_and_cosine) g = nn::clip_grad_norm(g, 0.5).grads;
    optimizer->step(g);
    if (clip_and_cosine) cosine.advance();
  }
  BOOST_TEST(within(Tensor::from(losses, {50}), file.tensor(kind + "/losses"), 1e-9));
  const dsl::Network expected = dsl::sequence(5).gru(8).last_step().linear(4).build(0, Dtype::f64);
  io::load(expected, file, {.prefix = kind + "/final/"});
  for (std::size_t i = 0; i < net.parameters().size(); ++i)
    BOOST_TEST(within(net.parameters()[i].peek(), expected.parameters()[i].peek(), 1e-9),
               net.named_parameters()[i].name);
}

template <class Optimizer, class Options>
MakeOptimizer maker(const Options& options) {
  return [options](std::vector<Parameter> p) { return std::make_unique<Optimizer>(std::move(p), options); };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(adam) { check("adam", maker<nn::Adam>(nn::AdamOptions{.learning_rate = 1e-2})); }
BOOST_AUTO_TEST_CASE(adam_with_decay) {
  check("adam_decay", maker<nn::Adam>(nn::AdamOptions{.learning_rate = 1e-2, .weight_decay = 1e-2}));
}
BOOST_AUTO_TEST_CASE(adamw) {
  check("adamw", maker<nn::AdamW>(nn::AdamOptions{.learning_rate = 1e-2, .weight_decay = 1e-2}));
}
BOOST_AUTO_TEST_CASE(sgd) { check("sgd", maker<nn::Sgd>(nn::SgdOptions{.learning_rate = 0.1})); }
BOOST_AUTO_TEST_CASE(sgd_with_momentum) {
  check("sgd_momentum", maker<nn::Sgd>(nn::SgdOptions{.learning_rate = 0.05, .momentum = 0.8}));
}
BOOST_AUTO_TEST_CASE(sgd_with_nesterov_and_decay) {
  check("sgd_nesterov",
        maker<nn::Sgd>(nn::SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3}));
}
BOOST_AUTO_TEST_CASE(rmsprop) { check("rmsprop", maker<nn::RmsProp>(nn::RmsPropOptions{})); }
BOOST_AUTO_TEST_CASE(rmsprop_with_momentum) {
  check("rmsprop_momentum", maker<nn::RmsProp>(nn::RmsPropOptions{.learning_rate = 3e-3, .momentum = 0.8}));
}
BOOST_AUTO_TEST_CASE(rmsprop_centered) {
  check("rmsprop_centered", maker<nn::RmsProp>(nn::RmsPropOptions{.alpha = 0.95, .centered = true}));
}
BOOST_AUTO_TEST_CASE(rmsprop_with_decay) {
  check("rmsprop_decay", maker<nn::RmsProp>(nn::RmsPropOptions{.epsilon = 1e-3, .weight_decay = 1e-2}));
}
BOOST_AUTO_TEST_CASE(rmsprop_with_all_options) {
  check("rmsprop_all", maker<nn::RmsProp>(nn::RmsPropOptions{.learning_rate = 2e-3,
                                                             .alpha = 0.9,
                                                             .epsilon = 1e-6,
                                                             .weight_decay = 1e-2,
                                                             .momentum = 0.7,
                                                             .centered = true}));
}
BOOST_AUTO_TEST_CASE(adam_with_clipping_and_cosine) {
  check("adam_clip_cosine", maker<nn::Adam>(nn::AdamOptions{.learning_rate = 1e-2}), true);
}

BOOST_AUTO_TEST_CASE(schedules) {
  const io::TensorFile file = support::fixture("training.safetensors");
  const auto rates = [](auto make) {
    nn::Sgd sgd({Parameter("p", zeros({1}))}, {.learning_rate = 0.3});
    auto schedule = make(sgd);
    std::vector<double> out;
    for (int i = 0; i < 12; ++i) {
      out.push_back(sgd.learning_rate());
      schedule.advance();
    }
    return Tensor::from(out, {12});
  };
  BOOST_TEST(within(rates([](nn::Sgd& o) { return nn::StepSchedule(o, 4, 0.5); }), file.tensor("lr/step"), 1e-14));
  BOOST_TEST(within(slice(rates([](nn::Sgd& o) { return nn::CosineSchedule(o, 10, 0.02); }), 0, 0, 11),
                    slice(file.tensor("lr/cosine"), 0, 0, 11), 1e-14));
}

BOOST_AUTO_TEST_SUITE_END()
