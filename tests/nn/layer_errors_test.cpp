// Errors name the layer that threw them, with the same message in every mode of execution.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "nn/scoped_nets.h"
#include "support/compare.h"

using namespace ferrite;
using namespace scoped_nets;
using support::says;

BOOST_AUTO_TEST_SUITE(layer_errors)

BOOST_AUTO_TEST_CASE(an_error_names_the_innermost_layer) {
  const Translator net(1);
  const std::string wanted = "in encoder.first: linear: expects 6 features, got [3, 7]";
  const auto is_wanted = [&](const ShapeError& e) { return e.what() == wanted && e.layer() == "encoder.first"; };
  BOOST_CHECK_EXCEPTION((void)net(ones({3, 7})), ShapeError, is_wanted);
  BOOST_CHECK_EXCEPTION((void)compile([&](const Tensor& x) { return net(x); })(ones({3, 7})), ShapeError, is_wanted);
  // A layer that no module has adopted has no path.
  const auto plain = [](const ShapeError& e) {
    return std::string(e.what()).starts_with("linear: ") && e.layer().empty();
  };
  BOOST_CHECK_EXCEPTION((void)nn::Linear(6, 2, {.seed = 1})(ones({3, 7})), ShapeError, plain);
}

/// Every mode of execution refuses values with the same message.
BOOST_AUTO_TEST_CASE(an_error_in_a_value_names_its_layer_in_every_mode) {
  nn::Sequential net({.seed = 1});
  auto inner = std::make_unique<nn::Sequential>();
  inner->add("words", std::make_unique<nn::Embedding>(5, 3));
  inner->add("gru", std::make_unique<nn::Gru>(3, 4));
  net.add("encoder", std::move(inner));
  const Tensor bad = Tensor::from({std::int64_t{1}, std::int64_t{7}}, {1, 2});
  const auto is_wanted = says("in encoder.words: embedding: token 7 lies outside 0..4");
  BOOST_CHECK_EXCEPTION((void)net(bad), ShapeError, is_wanted);
  const auto f = compile([&](const Tensor& x) { return net(x); });
  BOOST_CHECK_EXCEPTION((void)f(bad), ShapeError, is_wanted);
  const auto step = compile([&](const Tensor& x) {
    Tape tape;
    return tape.grad(sum(net(x)), net.parameters());
  });
  BOOST_CHECK_EXCEPTION((void)step(bad), ShapeError, is_wanted);
  {
    const Tape tape;
    BOOST_CHECK_EXCEPTION((void)f(bad), ShapeError, is_wanted);
  }
  const Graph g = trace([&](const Tensors& x) { return Tensors{net(x[0])}; }, std::vector<Spec>{bad.spec()});
  std::vector<Tensor> arguments{bad};
  for (const Graph::VariableValue& r : g.reads) arguments.push_back(g.variables[r.variable].peek());
  BOOST_CHECK_EXCEPTION((void)replay(g, arguments), ShapeError, is_wanted);
  nn::Stream stream = net.stream();
  std::vector<float> y(4);
  const std::int64_t token = 7;
  BOOST_CHECK_EXCEPTION(stream.step(std::span(&token, 1), y), ShapeError, is_wanted);
}

/// A stream runs a copy of a layer: as the program of its step, or on tensors if that cannot be traced.
BOOST_AUTO_TEST_CASE(an_error_in_a_layer_of_a_stream_names_it) {
  struct Strict final : nn::Layer {
    bool looks_at_values = false;
    explicit Strict(bool looks) : looks_at_values(looks) {}
    std::string kind() const override { return "strict"; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      if (looks_at_values && (x + 1).to_vector<float>().empty()) return x;
      return x + cast(checked(cast(x, Dtype::i64), 0, 3, "strict: a value of"), Dtype::f32);
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Strict>(looks_at_values); }
  };
  struct Outer final : nn::Layer {
    Strict inner;
    explicit Outer(bool looks) : inner(looks) { adopt("inner", inner); }
    std::string kind() const override { return "outer"; }
    bool causal() const override { return true; }
    nn::StepInput step_input() const override { return {1, Dtype::f32}; }
    Tensor forward(const Tensor& x, const nn::Context&) const override { return inner(x); }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Outer>(inner.looks_at_values); }
  };
  for (const bool looks : {false, true}) {
    nn::Sequential net;
    net.add("outer", std::make_unique<Outer>(looks));
    nn::Stream stream = net.stream();
    BOOST_TEST(stream.on_tensors() == (looks ? 1U : 0U));
    const float x = 9;
    float y = 0;
    nn::Stream copy = stream.clone();
    for (nn::Stream* s : {&stream, &copy})
      BOOST_CHECK_EXCEPTION(s->step(std::span(&x, 1), std::span(&y, 1)), ShapeError,
                            says("in outer.inner: strict: a value of 9 lies outside 0..3"));
  }
}

/// A check in the body of a scan names the layer of the scan, or the one inside its cell.
BOOST_AUTO_TEST_CASE(an_error_in_a_step_names_its_layer) {
  struct Picky final : nn::CustomCell {
    Parameter scale;
    Picky(std::int64_t, std::int64_t units, const nn::Init& init) {
      scale = parameter("scale", {units}, nn::init::constant(1), init);
    }
    std::string kind() const override { return "picky"; }
    RecurrentState step(const Tensor& x, const RecurrentState& before) const override {
      const Tensor at = checked(cast(x, Dtype::i64), 0, 3, "picky: a value of");
      return {before.h + scale.value() * cast(at, Dtype::f32)};
    }
  };
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const nn::Sequential net = chain("own", std::make_unique<nn::Custom>(nn::custom<Picky>(1, 1, {.form = form})));
    const Tensor bad = Tensor::from({1.0F, 9.0F}, {1, 2, 1});
    const auto is_wanted = says("in own: picky: a value of 9 lies outside 0..3");
    BOOST_CHECK_EXCEPTION((void)net(bad), ShapeError, is_wanted);
    BOOST_CHECK_EXCEPTION((void)compile([&](const Tensor& x) { return net(x); })(bad), ShapeError, is_wanted);
  }
}

BOOST_AUTO_TEST_CASE(an_error_keeps_its_type_and_first_layer) {
  struct Broken final : nn::Layer {
    std::string kind() const override { return "broken"; }
    Tensor forward(const Tensor&, const nn::Context&) const override { throw ValueError("broken: as always"); }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Broken>(); }
  };
  nn::Sequential net;
  auto inner = std::make_unique<nn::Residual>();
  inner->add("bad", std::make_unique<Broken>());
  net.add("0", std::move(inner));
  BOOST_CHECK_EXCEPTION((void)net(ones({1})), ValueError,
                        [](const ValueError& e) { return std::string(e.what()) == "in 0.bad: broken: as always"; });
  ValueError e("what");
  e.set_layer("");
  BOOST_TEST(e.what() == std::string("what"));
  e.set_layer("a");
  e.set_layer("b");
  BOOST_TEST(e.what() == std::string("in a: what"));
  const ValueError copy = e;
  BOOST_TEST(copy.layer() == "a");
}

BOOST_AUTO_TEST_SUITE_END()
