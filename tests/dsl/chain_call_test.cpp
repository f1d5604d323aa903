// Calls of a net: lengths are checked at its entry, the same in every form, and an error changes nothing.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/layers/per_step.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/nn/layers/tokens.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr std::int64_t kSteps = 5;

Tensor i64s(std::initializer_list<std::int64_t> v) { return Tensor::from<std::int64_t>(v); }

/// A layer that refuses numbers above 9 when it runs, which a trace cannot know.
struct Strict final : nn::Layer {
  std::string kind() const override { return "strict"; }
  bool causal() const override { return true; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    return checked(x, -9.0, 9.0, "strict: a value");
  }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Strict>(); }
};

std::vector<Tensor> values_of(const nn::Module& net) {
  std::vector<Tensor> all;
  for (const auto& b : net.named_buffers()) all.push_back(b.variable.peek());
  for (const auto& s : net.named_states()) all.push_back(s.variable.peek());
  return all;
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(identical(a[i], b[i]), "variable " << i);
}

std::size_t checks_in(const Graph& g) {
  const std::string text = g.str();
  std::size_t found = 0;
  for (std::size_t at = text.find(" checked"); at != std::string::npos; at = text.find(" checked", at + 1)) ++found;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chain_call)

/// The layers do not read lengths, so wrong ones would go unnoticed.
BOOST_AUTO_TEST_CASE(lengths_out_of_range_are_refused_where_no_layer_reads_them) {
  const auto words = [] { return dsl::sequence(3); };
  const std::vector<dsl::Builder> nets = {words().linear(4).tanh(),
                                          words().causal_conv1d(4, 3, {.dilation = 2}),
                                          words().causal_conv1d(4, 1),
                                          words().layer_norm().positions(),
                                          words().residual([](dsl::Builder& b) { b.linear(3).relu(); }),
                                          words().stage("part", [](dsl::Builder& b) { b.linear(2); }),
                                          words().linear(4).dropout(0.5)};
  const Tensor x = uniform({2, kSteps, 3}, {.seed = 1}, -1, 1);
  for (std::size_t k = 0; k < nets.size(); ++k) {
    const dsl::Network net = nets[k].build(1);
    const auto planned = compile([&](const Tensor& in, const Tensor& n) { return net(in, {.lengths = n}); });
    const Tensor y = net(x, {.lengths = i64s({5, 0})}), compiled = planned(x, i64s({2, 5}));
    if (k != 6) BOOST_TEST(identical(y, compiled), "net " << k);  // net 6 makes new draws
    for (const auto& [wrong, text] : {std::pair{i64s({2, 6}), "network: a length of 6 lies outside 0..5"},
                                      std::pair{i64s({-1, 2}), "network: a length of -1 lies outside 0..5"}}) {
      BOOST_CHECK_EXCEPTION((void)net(x, {.lengths = wrong}), ShapeError, says(text));
      BOOST_CHECK_EXCEPTION((void)planned(x, wrong), ShapeError, says(text));
    }
    for (const Tensor& wrong : {i64s({1}), i64s({1, 2, 3}), ones({2})})
      BOOST_CHECK_EXCEPTION((void)net(x, {.lengths = wrong}), ShapeError, says("network: expects lengths i64[2], got"));
  }
  const nn::CausalConv1d alone({.in_channels = 3, .out_channels = 2, .kernel_size = 2}, {.seed = 1});
  BOOST_CHECK_EXCEPTION((void)alone(x, {.lengths = i64s({2, 6})}), ShapeError,
                        says("causal_conv1d: a length of 6 lies outside 0..5"));
  const auto tokens = dsl::tokens(7).embedding(3).build(1);
  BOOST_CHECK_EXCEPTION((void)tokens(full({2, 4}, 1, Dtype::i64), {.lengths = i64s({4, 5})}), ShapeError,
                        says("network: a length of 5 lies outside 0..4"));
}

/// A net of one layer, and layers of a net that is not a chain, refuse them, too.
BOOST_AUTO_TEST_CASE(a_layer_called_alone_refuses_lengths_out_of_range) {
  const nn::Init init{.seed = 1};
  std::vector<std::unique_ptr<nn::Layer>> layers;
  const auto add = [&](auto layer) { layers.push_back(std::make_unique<decltype(layer)>(std::move(layer))); };
  add(nn::SinusoidalPositions({.features = 3}));
  add(nn::LearnedPositions({.features = 3, .capacity = 9}, init));
  add(nn::Linear(3, 3, init));
  add(nn::Activation("tanh", nn::activation("tanh")));
  add(nn::Elu(nn::AlphaOptions{}));
  add(nn::Prelu({.num_parameters = 3, .channels_last = true}, init));
  add(nn::LayerNorm(3, init));
  add(nn::RmsNorm({.features = 3}, init));
  add(nn::Standardize(3));
  add(nn::Dropout(0.5, init));
  add(nn::Flatten());
  add(nn::PerStep({.name = "twice", .function = [](const Tensor& in) { return in + in; }}));
  add(nn::BatchNorm1d({.num_features = 3, .channels_last = true}, init));
  add(nn::GroupNorm({.num_groups = 1, .num_channels = 3, .channels_last = true}, init));
  add(nn::Conv1d({.in_channels = 3, .out_channels = 3, .kernel_size = {1}, .channels_last = true}, init));
  add(nn::Conv1d({.in_channels = 3, .out_channels = 3, .kernel_size = {2}, .channels_last = true}, init));
  add(nn::MaxPool1d({.kernel_size = {2}, .channels_last = true}));
  add(nn::CausalConv1d({.in_channels = 3, .out_channels = 3, .kernel_size = 2}, init));
  add(nn::WeightNorm(std::make_unique<nn::Linear>(3, 3, init)));
  add(nn::Gru(3, 3, {}, init));
  add(nn::LastStep());
  nn::Parallel parallel(init);
  parallel.add("a", std::make_unique<nn::Activation>("tanh", nn::activation("tanh")));
  nn::Concat joined(init);
  joined.add("a", std::make_unique<nn::Flatten>());
  add(std::move(parallel));
  add(std::move(joined));
  for (const auto& layer : layers) layer->eval();
  const Tensor x = uniform({2, kSteps, 3}, {.seed = 1}, -1, 1);
  for (const auto& layer : layers) {
    BOOST_TEST_CONTEXT(layer->summary()) {
      const auto planned = compile([&](const Tensor& in, const Tensor& n) { return (*layer)(in, {.lengths = n}); });
      const Tensor all = i64s({kSteps, kSteps});
      BOOST_TEST(identical((*layer)(x, {.lengths = all}), planned(x, all)));
      if (!layer->reads_lengths()) BOOST_TEST(identical((*layer)(x, {.lengths = i64s({2, 0})}), (*layer)(x)));
      for (const auto& [wrong, text] : {std::pair{i64s({2, 6}), ": a length of 6 lies outside"},
                                        {i64s({-1, 2}), ": a length of -1 lies outside"}}) {
        BOOST_CHECK_EXCEPTION((void)(*layer)(x, {.lengths = wrong}), ShapeError, says(text));
        BOOST_CHECK_EXCEPTION((void)planned(x, wrong), ShapeError, says(text));
      }
      BOOST_CHECK_EXCEPTION((void)(*layer)(x, {.lengths = i64s({1})}), ShapeError,
                            says(": expects lengths i64[2], got"));
    }
  }
  const nn::Embedding embedding({.vocabulary = 4, .features = 2}, init);
  BOOST_CHECK_EXCEPTION((void)embedding(full({2, 4}, 1, Dtype::i64), {.lengths = i64s({4, 5})}), ShapeError,
                        says("embedding: a length of 5 lies outside 0..4"));
}

/// Refused lengths do not change the counters of draws.
BOOST_AUTO_TEST_CASE(a_layer_that_refuses_lengths_has_drawn_nothing) {
  const nn::Dropout dropout(0.5, {.seed = 1});
  const Tensor x = ones({2, kSteps, 3});
  const std::vector<Tensor> before = values_of(dropout);
  BOOST_CHECK_THROW((void)dropout(x, {.lengths = i64s({2, 6})}), ShapeError);
  check_same(values_of(dropout), before);
}

/// A layer whose steps are along another axis declares that it reads lengths, and checks them itself.
BOOST_AUTO_TEST_CASE(a_layer_that_reads_lengths_checks_them_itself) {
  struct Planes final : nn::Layer {  // x [B, C, T]
    std::string kind() const override { return "planes"; }
    bool reads_lengths() const override { return true; }
    Tensor forward(const Tensor& x, const nn::Context& context) const override {
      return where(unsqueeze(lt(arange(x.size(2)), unsqueeze(context.lengths, 1)), 1), x, 0);
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Planes>(); }
  };
  const Tensor y = Planes()(ones({1, 2, 5}), {.lengths = i64s({4})});
  BOOST_TEST(identical(sum(y, {2}), full({1, 2}, 4)));
}

BOOST_AUTO_TEST_CASE(without_padding_refuses_lengths_out_of_range) {
  const Tensor x = uniform({kSteps, 2, 3}, {.seed = 1}, -1, 1);
  for (const auto& f : {[](const Tensor&in, const Tensor&n) { return without_padding(in, n); }}) {
    const auto planned = compile(f);
    BOOST_TEST(identical(planned(x, i64s({3, 0})), f(x, i64s({3, 0}))));
    BOOST_CHECK_EXCEPTION((void)f(x, i64s({3, 6})), ShapeError,
                          says("without_padding: a length of 6 lies outside 0..5"));
    BOOST_CHECK_EXCEPTION((void)planned(x, i64s({-1, 3})), ShapeError, says("without_padding: a length of -1 lies"));
  }
  BOOST_CHECK_EXCEPTION((void)without_padding(x, i64s({3})), ShapeError,
                        says("without_padding: expects lengths i64[2], got i64[1]"));
  BOOST_CHECK_EXCEPTION((void)without_padding(ones({3}), i64s({3})), ShapeError,
                        says("expects x [T, B, ...], got [3]"));
}

/// The chain consists of layers that take the time first.
BOOST_AUTO_TEST_CASE(lengths_of_time_first_chains) {
  nn::Sequential net({.seed = 1});
  net.add("gru", std::make_unique<nn::Gru>(3, 2, nn::GruOptions{.batch_first = false}));
  const Tensor x = uniform({kSteps, 2, 3}, {.seed = 1}, -1, 1);
  const nn::Gru alone(3, 2, {.batch_first = false}, {.seed = 1, .prefix = "gru"});
  BOOST_TEST(identical(net(x, {.lengths = i64s({3, 5})}), alone(x, {.lengths = i64s({3, 5})})));
  BOOST_CHECK_EXCEPTION((void)net(x, {.lengths = i64s({3, 6})}), ShapeError,
                        says("sequential: a length of 6 lies outside 0..5"));
}

/// The traced program checks lengths once, whatever chains are in the net.
BOOST_AUTO_TEST_CASE(nested_chains_check_lengths_once) {
  const auto net = dsl::sequence(3)
                       .stage("a", [](dsl::Builder& b) { b.residual([](dsl::Builder& r) { r.linear(3).tanh(); }); })
                       .max_pool1d(2)
                       .stage("b", [](dsl::Builder& b) { b.linear(2); })
                       .build(1);
  const std::vector<Spec> specs = {{{2, kSteps, 3}, Dtype::f32}, {{2}, Dtype::i64}};
  const Graph g = trace([&](const Tensors& in) -> Tensors { return {net(in[0], {.lengths = in[1]})}; }, specs);
  BOOST_TEST(checks_in(g) == 1U, g.str());
  nn::Residual outer;
  outer.add("a", std::make_unique<nn::Activation>("tanh", nn::activation("tanh")));
  nn::Parallel around;
  around.add("a", std::make_unique<nn::Activation>("relu", nn::activation("relu")));
  around.add("b", outer.clone());
  const Graph k = trace([&](const Tensors& in) -> Tensors { return {around(in[0], {.lengths = in[1]})}; }, specs);
  BOOST_TEST(checks_in(k) == 1U, k.str());
}

BOOST_AUTO_TEST_CASE(a_call_that_throws_has_changed_nothing) {
  const auto net = dsl::sequence(3)
                       .batch_norm()
                       .dropout(0.5)
                       .causal_conv1d(3, 2)
                       .residual([](dsl::Builder& b) { b.dropout(0.25).gru(3); })
                       .add(Strict())
                       .build(1);
  const nn::Carry carry(net, 2);
  const Tensor x = uniform({2, kSteps, 3}, {.seed = 1}, -1, 1);
  (void)net(x, {.carry = &carry});
  const std::vector<Tensor> before = values_of(net), carried = carry.save();
  for (const Parameter& p : net.parameters())
    if (p.name() == "2.bias") p.assign(full({3}, 1e3));
  BOOST_CHECK_EXCEPTION((void)net(x, {.carry = &carry}), ValueError, says("strict: a value"));
  check_same(values_of(net), before);
  check_same(carry.save(), carried);
  {
    Tape tape;
    BOOST_CHECK_THROW((void)net(x, {.carry = &carry}), ValueError);
  }
  check_same(values_of(net), before);
  check_same(carry.save(), carried);
}

BOOST_AUTO_TEST_CASE(a_missing_axis_of_the_batch_is_named) {
  const auto is = [](const char* text) { return says(text); };
  const auto net = dsl::sequence(3).gru(4).last_step().linear(2).build(1);
  BOOST_CHECK_EXCEPTION((void)net(ones({kSteps, 3})), ShapeError,
                        is("network: expects sequences [B, T, 3], got [5, 3] without the axis of the batch; "
                           "unsqueeze(x, 0) adds one"));
  const auto tokens = dsl::tokens(7).embedding(3).gru(2).last_step().build(1);
  BOOST_CHECK_EXCEPTION((void)tokens(full({kSteps}, 1, Dtype::i64)), ShapeError,
                        is("network: expects tokens [B, T], got [5] without the axis of the batch"));
  const auto images = dsl::image(1, 4, 4).conv2d(2, 3).flatten().linear(2).build(1);
  BOOST_CHECK_EXCEPTION((void)images(ones({1, 4, 4})), ShapeError,
                        is("network: expects images [B, 1, 4, 4], got [1, 4, 4] without the axis of the batch"));
  BOOST_TEST((dsl::sequence(3).gru(4).build(1)(ones({kSteps, 3})).shape() == Shape{kSteps, 4}));  // the GRU can
}

BOOST_AUTO_TEST_SUITE_END()
