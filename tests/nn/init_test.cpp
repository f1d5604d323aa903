// The source of first weights: layers without a seed wait for a module that has one.
#include "ferrite/nn/init.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

const auto kUndrawn = says("has no value yet: its layer was made without a seed");

/// Three projections made in the same way, as in attention.
struct Projections : nn::Module {
  nn::Linear q{4, 4}, k{4, 4}, v{4, 4};
  nn::Dropout drop{0.5};
  explicit Projections(nn::Init init = {}) : Module(std::move(init)) {
    adopt("q", q), adopt("k", k), adopt("v", v), adopt("drop", drop);
  }
};

struct Model : nn::Module {
  Projections first, second;
  nn::Dropout drop{0.5};
  explicit Model(nn::Init init = {}) : Module(std::move(init)) {
    adopt("first", first), adopt("second", second), adopt("drop", drop);
  }
};

Tensor weight_of(std::uint64_t seed, const std::string& prefix) {
  return nn::Linear(4, 4, {.seed = seed, .prefix = prefix}).weight.peek();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(initial_values)

BOOST_AUTO_TEST_CASE(layers_made_alike_in_one_model_differ) {
  const Model model({.seed = 3});
  const auto all = model.parameters();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (all[i].shape() == all[j].shape())
        BOOST_TEST(!identical(all[i].peek(), all[j].peek()), all[i].name() << " and " << all[j].name());
  const Tensor x = ones({200});
  BOOST_TEST(!identical(model.first.drop(x), model.second.drop(x)));
  BOOST_TEST(!identical(model.first.drop(x), model.drop(x)));
}

BOOST_AUTO_TEST_CASE(a_model_draws_from_its_seed_and_full_names) {
  const Model model({.seed = 3});
  BOOST_TEST(identical(model.first.q.weight.peek(), weight_of(3, "first.q")));
  BOOST_TEST(identical(model.second.v.weight.peek(), weight_of(3, "second.v")));
  BOOST_TEST(model.second.v.weight.name() == "second.v.weight");
  const nn::Dropout drop(0.5, {.seed = 3, .prefix = "second.drop"});
  BOOST_TEST(identical(model.second.drop.key.peek(), drop.key.peek()));
  const Model part({.seed = 3, .prefix = "encoder"});
  BOOST_TEST(identical(part.first.q.weight.peek(), weight_of(3, "encoder.first.q")));
  struct Own : nn::Module {
    Parameter w;
    Own() : Module({.seed = 3, .prefix = "own"}) { w = parameter("weight", {4, 4}, nn::init::uniform(-0.5, 0.5), {}); }
  };
  BOOST_TEST(identical(Own().w.peek(), weight_of(3, "own")));
  const Projections inner({.seed = 5});  // an inner seed is its own
  BOOST_TEST(identical(inner.q.weight.peek(), weight_of(5, "q")));
}

/// First values depend neither on a counter nor on the order in which layers are made.
BOOST_AUTO_TEST_CASE(another_layer_leaves_the_others_alone) {
  nn::Sequential small({.seed = 1}), large({.seed = 1});
  small.add("a", std::make_unique<nn::Linear>(4, 4));
  large.add("before", std::make_unique<nn::Linear>(4, 4));
  large.add("a", std::make_unique<nn::Linear>(4, 4));
  BOOST_TEST(identical(small.named_parameters()[0].variable.peek(), large.named_parameters()[2].variable.peek()));
}

BOOST_AUTO_TEST_CASE(a_layer_that_nobody_gave_a_seed_says_what_to_do) {
  const nn::Linear linear(4, 4);
  BOOST_TEST((linear.weight.shape() == Shape{4, 4}));
  BOOST_TEST(linear.parameter_count() == 20);
  BOOST_TEST(!linear.weight.drawn());
  BOOST_CHECK_EXCEPTION((void)linear(ones({1, 4})), Error, kUndrawn);
  BOOST_CHECK_EXCEPTION((void)linear(ones({1, 4})), Error,
                        says("give the layer one (nn::Init{.seed = 0}), adopt it in a"));
  BOOST_CHECK_EXCEPTION((void)linear.weight.peek(), Error, says("'weight' has no value yet"));
  BOOST_CHECK_EXCEPTION(nn::Adam(linear.parameters()), Error, kUndrawn);
  BOOST_CHECK_EXCEPTION((void)io::contents(linear), Error, kUndrawn);
  BOOST_CHECK_EXCEPTION((void)linear.stream(), Error, kUndrawn);
  BOOST_CHECK_EXCEPTION((void)linear.compiled()(ones({1, 4})), Error, kUndrawn);
  const nn::Dropout drop(0.5);
  BOOST_CHECK_EXCEPTION((void)drop(ones({4})), Error, says("'key' has no value yet"));
  drop.eval();
  BOOST_TEST(identical(drop(ones({4})), ones({4})));
  const Model model;  // without its own seed it waits for the next module
  BOOST_CHECK_EXCEPTION((void)model.second.q(ones({1, 4})), Error, says("'second.q."));
  BOOST_CHECK_EXCEPTION((void)nn::Init{}.key("w"), ValueError, says("init: there is no seed to draw 'w' from"));
}

BOOST_AUTO_TEST_CASE(what_is_assigned_or_loaded_is_not_drawn_again) {
  nn::Linear assigned(4, 4), loaded(4, 4);
  assigned.weight.assign(full({4, 4}, 2));
  const nn::Linear trained(4, 4, {.seed = 8});
  const io::ModuleContents file = io::contents(trained);
  const std::vector<std::byte> bytes = io::serialize_safetensors(file.tensors, file.metadata);
  io::load(loaded, io::parse_safetensors(bytes, "m.safetensors"));
  BOOST_TEST(identical(loaded.weight.peek(), trained.weight.peek()));
  struct Both : nn::Module {
    Both(const nn::Linear& a, const nn::Linear& b) : Module({.seed = 1}) { adopt("a", a), adopt("b", b); }
  };
  const Both both(assigned, loaded);
  BOOST_TEST(identical(assigned.weight.peek(), full({4, 4}, 2)));
  BOOST_TEST(assigned.bias.drawn());
  BOOST_TEST(identical(loaded.weight.peek(), trained.weight.peek()));
}

BOOST_AUTO_TEST_CASE(what_needs_no_seed_has_its_value) {
  const nn::LayerNorm norm(8);
  const Tensor x = uniform({3, 8}, {.seed = 1});
  BOOST_TEST(norm(x).shape().str() == "[3, 8]");
  nn::Sequential chain({.seed = 1});
  chain.add("norm", std::make_unique<nn::LayerNorm>(8));
  BOOST_TEST(chain.parameters()[0].name() == "norm.weight");
}

BOOST_AUTO_TEST_CASE(networks_wait_too) {
  const auto words = [] { return dsl::sequence(3).gru(4, {.layers = 2, .dropout = 0.5}).linear(2); };
  const auto net = words().build();
  BOOST_CHECK_EXCEPTION((void)net(ones({1, 2, 3})), Error, says("'0.weight_ih_l0' has no value yet"));
  net.draw({.seed = 4});
  const auto at_once = words().build(4);
  for (std::size_t i = 0; i < net.parameters().size(); ++i)
    BOOST_TEST(identical(net.parameters()[i].peek(), at_once.parameters()[i].peek()));
  for (std::size_t i = 0; i < net.named_states().size(); ++i)
    BOOST_TEST(identical(net.named_states()[i].variable.peek(), at_once.named_states()[i].variable.peek()));
  struct Two : nn::Module {
    dsl::Network a = dsl::features(4).linear(4).build();
    dsl::Network b = dsl::features(4).linear(4).build();
    Two() : Module({.seed = 1}) { adopt("a", a), adopt("b", b); }
  };
  const Two two;
  BOOST_TEST(!identical(two.a.parameters()[0].peek(), two.b.parameters()[0].peek()));
  // The same holds for a layer that is added to a chain.
  const auto with_layers = dsl::features(4).add(nn::Linear(4, 4)).add(nn::Linear(4, 4)).build(2);
  BOOST_TEST(identical(with_layers.parameters()[0].peek(), weight_of(2, "0")));
  BOOST_TEST(identical(with_layers.parameters()[2].peek(), weight_of(2, "1")));
}

BOOST_AUTO_TEST_CASE(clones_of_what_is_not_drawn_are_not_drawn) {
  nn::Sequential chain;
  chain.add("a", std::make_unique<nn::Linear>(4, 4));
  const auto copy = chain.clone();
  BOOST_TEST(!copy->parameters()[0].drawn());
  chain.draw({.seed = 1});
  BOOST_TEST(!copy->parameters()[0].drawn());
  copy->draw({.seed = 1});
  BOOST_TEST(identical(copy->parameters()[0].peek(), chain.parameters()[0].peek()));
  BOOST_CHECK_EXCEPTION(nn::copy_values(nn::Linear(4, 4), nn::Linear(4, 4, {.seed = 1})), Error,
                        says("copy_values: 'weight' has no value to copy yet"));
  BOOST_CHECK_EXCEPTION(copy->draw({}), ValueError, says("draw: the init has no seed"));
}

BOOST_AUTO_TEST_CASE(a_first_value_must_fit) {
  struct Odd : nn::Module {
    explicit Odd(const nn::Fill& fill) { (void)parameter("w", {2, 3}, fill, {.seed = 1}); }
  };
  const auto other_shape = [](const Shape&, const RandomKey&, Dtype) { return ones({3, 2}); };
  const auto other_dtype = [](const Shape& s, const RandomKey&, Dtype) { return ones(s, Dtype::f64); };
  BOOST_CHECK_EXCEPTION(Odd{other_shape}, ShapeError, says("fill: gives [3, 2] for a parameter [2, 3]"));
  BOOST_CHECK_EXCEPTION(Odd{other_dtype}, DtypeError, says("fill: gives f64[2, 3] for a parameter f32[2, 3]"));
  BOOST_CHECK_EXCEPTION(Odd{nn::Fill::Function()}, ValueError, says("fill: the function is null"));
}

BOOST_AUTO_TEST_SUITE_END()
