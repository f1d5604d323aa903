// Null functions, null variables, moved-from objects, and calls and options without any meaning throw errors that say
// so; they never crash or return a wrong number.
#include <limits>

#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
}

BOOST_AUTO_TEST_SUITE(misuse)

BOOST_AUTO_TEST_CASE(null_functions) {
  BOOST_CHECK_EXCEPTION(nn::Activation("x", nullptr), ValueError, says("activation: the function of 'x' is null"));
  BOOST_CHECK_EXCEPTION(nn::Custom(nullptr, 2, 3), ValueError, says("custom: the function that makes cells is null"));
  const auto none = [](std::int64_t, const nn::Init&) { return std::unique_ptr<nn::CustomCell>(); };
  BOOST_CHECK_EXCEPTION(nn::Custom(none, 2, 3), ValueError, says("gave null for 'cell_l0'"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).recurrent(nullptr, 3).build(0), ValueError, says("makes cells is null"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).stage("a", nullptr), ValueError, says("stage: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).residual(nullptr), ValueError, says("residual: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(2).repeat(2, nullptr), ValueError, says("repeat: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)unroll(ones({1, 2, 3}), {}, nullptr, {}), ValueError, says("unroll: the step is null"));
  BOOST_CHECK_EXCEPTION(Parameter("p", Spec{{2}, Dtype::f32}, nullptr), ValueError, says("its first value is null"));
  BOOST_CHECK_EXCEPTION(io::TensorFile("f", nullptr), Error, says("tensor file: has no contents"));
  const io::TensorFile file = io::tensor_file_of({}, "f");
  BOOST_CHECK_EXCEPTION((void)file.renamed(nullptr), ValueError, says("renamed: the function is null"));
}

BOOST_AUTO_TEST_CASE(empty_handles) {
  const Parameter none;
  BOOST_TEST(!none.defined());
  BOOST_CHECK_EXCEPTION((void)none.value(), Error, says("variable: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.peek(), Error, says("variable: empty handle"));
  BOOST_CHECK_EXCEPTION((void)(none * 2), Error, says("variable: empty handle"));
  BOOST_CHECK_EXCEPTION(none.assign(ones({2})), Error, says("variable: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.shape(), Error, says("variable: empty handle"));
  BOOST_CHECK_EXCEPTION((void)none.name(), Error, says("variable: empty handle"));
}

template <class L>
void check_moved_from(L layer, const Tensor& x) {
  const L now = std::move(layer);
  BOOST_TEST((void(now(x)), true));
  const L& gone = layer;  // NOLINT: using a moved-from layer is the test
  const auto moved = says("moved from");
  BOOST_CHECK_EXCEPTION((void)gone(x), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.parameters(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.parameter_count(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.named_parameters(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.training(), Error, moved);
  BOOST_CHECK_EXCEPTION(gone.eval(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)gone.stream(), Error, moved);
  BOOST_CHECK_EXCEPTION((void)io::contents(gone), Error, moved);
  BOOST_CHECK_THROW((void)gone.clone(), Error);
  struct Parent : nn::Module {
    explicit Parent(const nn::Module& child) { adopt("child", child); }
  };
  BOOST_CHECK_EXCEPTION(Parent{gone}, Error, moved);
}

BOOST_AUTO_TEST_CASE(modules_that_were_moved_from) {
  const nn::Init init{.seed = 1};
  check_moved_from(nn::Linear(2, 3, init), ones({1, 2}));
  check_moved_from(nn::Embedding(2, 3, init), zeros({1, 2}, Dtype::i64));
  check_moved_from(nn::LayerNorm(2), ones({1, 2}));
  check_moved_from(nn::Dropout(0.5, init), ones({1, 2}));
  check_moved_from(nn::Gru(2, 3, {.dropout = 0.5}, init), ones({1, 4, 2}));
  check_moved_from(nn::Lstm(2, 3, {}, init), ones({1, 4, 2}));
  check_moved_from(nn::custom<nn::LayerNormGruCell>(2, 3, {}, init), ones({1, 4, 2}));
  check_moved_from(dsl::sequence(2).gru(3).build(0), ones({1, 4, 2}));
  nn::Gru gru(2, 3, {}, init);
  const nn::Gru now = std::move(gru);
  BOOST_CHECK_EXCEPTION((void)gru.run(ones({1, 4, 2})), Error, says("moved from"));
  BOOST_CHECK_EXCEPTION((void)gru.weights(), Error, says("moved from"));
  nn::Sequential chain;
  const nn::Sequential taken = std::move(chain);
  BOOST_CHECK_EXCEPTION(chain.add("a", std::make_unique<nn::Flatten>()), Error, says("moved from"));
}

BOOST_AUTO_TEST_CASE(streams_and_files_that_were_moved_from) {
  const nn::Gru gru(2, 3, {}, {.seed = 1});
  nn::Stream stream = gru.stream();
  nn::Stream now = std::move(stream);
  std::vector<float> x(2), y(3);
  now.step(x, y);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), Error, says("stream: was moved from"));
  BOOST_CHECK_EXCEPTION(stream.clone().step(x, y), Error, says("stream: was moved from"));
  stream.reset(), stream.refresh();
  BOOST_TEST(stream.save().empty());
  io::TensorFile file = io::tensor_file_of({{"a", ones({2})}}, "f");
  const io::TensorFile taken = std::move(file);
  BOOST_CHECK_EXCEPTION((void)file.size(), Error, says("tensor file: has no contents"));
  BOOST_CHECK_EXCEPTION((void)file.names(), Error, says("tensor file: has no contents"));
  BOOST_CHECK_EXCEPTION((void)file.tensor("a"), Error, says("tensor file: has no contents"));
}

// ---- calls that would be answered with a wrong number ------------------------------------------------------------

namespace {

template <class L>
void check_takes_no_state(const L& layer, const Tensor& x, const Tensor& s) {
  const auto refused = says(layer.kind() + ": the context has an initial state, which only a recurrent layer takes");
  BOOST_CHECK_EXCEPTION((void)layer(x, {.state = s}), ValueError, refused);
  BOOST_CHECK_EXCEPTION((void)layer(x, {.cell = s}), ValueError, refused);
}

struct OwnCell final : nn::CustomCell {
  std::string kind() const override { return "own"; }
  RecurrentState step(const Tensor& x, const RecurrentState& before) const override { return {before.h + x}; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(initial_states_that_nobody_reads) {
  const Tensor x = ones({2, 3, 4}), s = ones({2, 4});
  check_takes_no_state(nn::Linear(4, 4, {.seed = 1}), x, s);
  check_takes_no_state(nn::Embedding(4, 4, {.seed = 1}), zeros({2, 3}, Dtype::i64), s);
  check_takes_no_state(nn::LayerNorm(4), x, s);
  check_takes_no_state(nn::Dropout(0.5, {.seed = 1}), x, s);
  check_takes_no_state(nn::Activation("relu", nn::activation("relu")), x, s);
  check_takes_no_state(nn::LastStep(), x, s);
  check_takes_no_state(nn::MeanOverTime(), x, s);
  check_takes_no_state(nn::Flatten(), x, s);
  check_takes_no_state(dsl::sequence(4).gru(4).build(1), x, s);
  const auto no_memory = says("the context has an initial memory (cell), this cell has none");
  const nn::Init init{.seed = 1};
  BOOST_CHECK_EXCEPTION((void)nn::Gru(4, 4, {}, init)(x, {.state = s, .cell = s}), ValueError, no_memory);
  BOOST_CHECK_EXCEPTION((void)nn::Rnn(4, 4, {}, init)(x, {.cell = s}), ValueError, no_memory);
  const auto own = [](std::int64_t, const nn::Init&) { return std::make_unique<OwnCell>(); };
  BOOST_CHECK_EXCEPTION((void)nn::Custom(own, 4, 4)(x, {.cell = s}), ValueError, no_memory);
  BOOST_TEST(nn::Lstm(4, 4, {}, init)(x, {.state = s, .cell = s}).shape() == x.shape());
}

BOOST_AUTO_TEST_CASE(options_that_give_no_layer) {
  for (const double epsilon : {-1e-5, kNan, kInfinity}) {
    BOOST_CHECK_EXCEPTION(nn::LayerNorm(4, {}, epsilon), ValueError, says("layer_norm: epsilon must be finite"));
    BOOST_CHECK_EXCEPTION((void)layer_norm(ones({2, 4}), 1, epsilon), ValueError, says("layer_norm: epsilon"));
  }
  const auto own = [](std::int64_t, const nn::Init&) { return std::make_unique<OwnCell>(); };
  for (const double p : {-0.1, 1.1, kNan})
    BOOST_CHECK_EXCEPTION(nn::Custom(own, 4, 4, {.variational_dropout = p}), ValueError,
                          says("own: variational_dropout must lie in [0, 1]"));
  BOOST_CHECK_EXCEPTION(nn::LayerNormGruCell(0, 3), ValueError, says("layer_norm_gru: sizes must be positive"));
  BOOST_CHECK_EXCEPTION(nn::LayerNormGruCell(3, 0), ValueError, says("layer_norm_gru: sizes must be positive"));
  const std::vector<Parameter> some{Parameter("p", ones({2}))};
  for (const double bad : {-1.0, kNan, kInfinity}) {
    BOOST_CHECK_EXCEPTION(nn::Adam(some, {.epsilon = bad}), ValueError, says("adam: epsilon and weight_decay"));
    BOOST_CHECK_EXCEPTION(nn::Adam(some, {.weight_decay = bad}), ValueError, says("adam: epsilon and weight_decay"));
    BOOST_CHECK_EXCEPTION(nn::Sgd(some, {.momentum = bad}), ValueError, says("sgd: momentum and weight_decay"));
    BOOST_CHECK_EXCEPTION(nn::Sgd(some, {.weight_decay = bad}), ValueError, says("sgd: momentum and weight_decay"));
  }
}

BOOST_AUTO_TEST_CASE(no_steps_of_something) {
  const auto net = dsl::sequence(3).gru(2).build(1);
  nn::Stream stream = net.stream();
  std::vector<float> x(6), y(4);
  stream.steps(2, x, y);
  stream.steps(0, std::span<const float>(), {});
  const auto refused = says("values cannot be cut into 0 steps");
  BOOST_CHECK_EXCEPTION(stream.steps(0, x, y), ShapeError, refused);
  BOOST_CHECK_EXCEPTION(stream.steps(0, x, {}), ShapeError, refused);
  BOOST_CHECK_EXCEPTION(stream.steps(0, std::span<const float>(), y), ShapeError, refused);
}

BOOST_AUTO_TEST_CASE(labels_of_no_class) {
  const Tensor logits = ones({2, 3});
  for (const std::int64_t label : {-1, 3}) {
    const Tensor targets = Tensor::from({std::int64_t{0}, label});
    const auto refused = says("accuracy: target " + std::to_string(label) + " lies outside 0..2");
    BOOST_CHECK_EXCEPTION((void)nn::accuracy(logits, targets), ShapeError, refused);
    BOOST_CHECK_EXCEPTION((void)nn::accuracy(logits, cast(targets, Dtype::i32)), ShapeError, refused);
  }
  BOOST_TEST(nn::accuracy(logits, Tensor::from({std::int64_t{0}, std::int64_t{2}})) == 0.5);
}

/// A module that was adopted holds what it held at that time.
BOOST_AUTO_TEST_CASE(layers_that_come_after_adoption) {
  struct Net : nn::Module {
    nn::Sequential body;
    Net() : Module({.seed = 0}) { adopt("body", body); }
  };
  Net net;
  BOOST_CHECK_EXCEPTION(net.body.add("x", std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 5})), ValueError,
                        says("'x' comes too late: another module has adopted this one"));
  BOOST_TEST(net.body.size() == 0U);
  struct Itself : nn::Module {
    Itself() : Module({.seed = 0}) { adopt("me", *this); }
  };
  BOOST_CHECK_EXCEPTION(Itself(), ValueError, says("adopt: a module cannot adopt itself"));
}

BOOST_AUTO_TEST_CASE(functions_that_look_at_other_steps) {
  const nn::Activation centre("centre", [](const Tensor& x) { return x - mean(x, {1}, true); });
  BOOST_TEST(!centre.causal());
  BOOST_CHECK_EXCEPTION((void)centre.stream(), ValueError, says("not causal"));
  BOOST_TEST(nn::Activation("relu", nn::activation("relu")).causal());
}

BOOST_AUTO_TEST_CASE(float_bounds_of_integers) {
  BOOST_CHECK_EXCEPTION((void)checked(Tensor::from<std::int64_t>({0}), 0.5, 9, {"a: b"}), DtypeError,
                        says("checked: float bound 0.5 for i64[1]"));
}

BOOST_AUTO_TEST_SUITE_END()
