// Checkpoints from before 0.1.0 have one count of steps, f64, for a group: it becomes the count of each parameter.
#include "ferrite/io/module_file.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/nadam.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

namespace {

struct Training {
  nn::Linear net{{.in_features = 2, .out_features = 3}, {.seed = 1}};
  nn::NAdam nadam{{net.weight, net.bias}};

  Training() {
    nadam.add_group({Parameter("late", zeros({2}))});
    for (int t = 0; t < 3; ++t) nadam.step({ones({2, 3}), ones({3}), ones({2})});
  }
  /// Returns what an old version would have written, except for one count.
  std::vector<io::NamedTensor> old(double steps) const {
    std::vector<io::NamedTensor> tensors = io::contents(net, {.states = nadam.states()}).tensors;
    for (io::NamedTensor& t : tensors) {
      if (t.name == "optimizer.step") t.tensor = full({}, steps, Dtype::f64);
      if (t.name == "optimizer.step.1") t.tensor = full({}, 7, Dtype::f64);
      if (t.name == "optimizer.mu_product") t.tensor = full({}, 0.25, Dtype::f64);
      if (t.name == "optimizer.mu_product.1") t.tensor = full({}, 0.5, Dtype::f64);
    }
    return tensors;
  }
  void load(const std::vector<io::NamedTensor>& tensors) const {
    io::load(net, io::tensor_file_of(tensors, "old.safetensors", {}), {.states = nadam.states()});
  }
  std::vector<double> values(const std::string& name) const {
    for (const auto& s : nadam.states())
      if (s.name == name) return cast(s.variable.peek(), Dtype::f64).to_vector<double>();
    return {};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(old_counts)

BOOST_AUTO_TEST_CASE(become_those_of_every_parameter) {
  const Training t;
  t.load(t.old(5));
  BOOST_TEST((t.values("step") == std::vector<double>{5, 5}));
  BOOST_TEST((t.values("step.1") == std::vector<double>{7}));
  BOOST_TEST((t.values("mu_product") == std::vector<double>{0.25, 0.25}));
  BOOST_TEST((t.values("mu_product.1") == std::vector<double>{0.5}));
}

BOOST_AUTO_TEST_CASE(that_are_none_are_refused_and_nothing_has_changed) {
  const Training t;
  for (const double bad : {-1.0, 1.5, std::nan(""), HUGE_VAL, 1e300})
    BOOST_CHECK_EXCEPTION(t.load(t.old(bad)), IoError,
                          says("old.safetensors: 'optimizer.step' must be a whole number"));
  BOOST_TEST((t.values("step") == std::vector<double>{3, 3}));
  BOOST_TEST((t.values("step.1") == std::vector<double>{3}));
}

/// Only counts are spread: one number is not a moment of a vector.
BOOST_AUTO_TEST_CASE(nothing_else_is_spread) {
  const Training t;
  std::vector<io::NamedTensor> tensors = t.old(5);
  for (io::NamedTensor& one : tensors)
    if (one.name == "optimizer.exp_avg." + t.net.bias.name()) one.tensor = full({}, 1, Dtype::f64);
  BOOST_CHECK_EXCEPTION(t.load(tensors), IoError, says("has shape [], the model needs [3]"));
}

BOOST_AUTO_TEST_SUITE_END()
