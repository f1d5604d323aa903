// Layers that stream on tensors, because they read values.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/causal_layers.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

/// A GRU whose output is scaled by a buffer, or by something else in training. It reads values.
struct Scaled final : nn::Layer {
  nn::Gru gru{3, 4, nn::Init{.seed = 1}};
  Buffer scale;
  Scaled() {
    adopt("gru", gru);
    scale = buffer("scale", full({}, 2.0));
  }
  std::string kind() const override { return "scaled"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return gru.step_input(); }
  Tensor forward(const Tensor& x, const nn::Context& c) const override {
    if (x.to_vector<float>().empty()) return x;
    const Tensor y = gru(x, c) * scale.value();
    return training() ? y + 100 : y;
  }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Scaled>();
    nn::copy_values(*this, *copy);
    copy->take_after(*this);
    return copy;
  }
};

/// A layer that declares itself causal, and calls another one through a function.
struct Around final : nn::Layer {
  using Call = Tensor (*)(const nn::Layer& inner, const Tensor& x, const nn::Context& context);
  std::unique_ptr<nn::Layer> inner;
  Call call;
  Around(std::unique_ptr<nn::Layer> layer, Call function) : inner(std::move(layer)), call(function) {
    adopt("inner", *inner);
  }
  std::string kind() const override { return "around"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return inner->step_input(); }
  Tensor forward(const Tensor& x, const nn::Context& context) const override { return call(*inner, x, context); }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Around>(inner->clone(), call); }
};

std::unique_ptr<nn::Layer> fir() { return std::make_unique<causal_layers::Fir>(4, nn::Init{.seed = 4}); }
std::unique_ptr<nn::Layer> gru() { return std::make_unique<nn::Gru>(4, 4, nn::Init{.seed = 5}); }

/// Returns rows [B, 4] of the steps of x [B, T, 3] in [begin, end).
Tensor streamed(nn::Stream& stream, const Tensor& x, std::int64_t begin, std::int64_t end) {
  Tensors rows;
  std::vector<float> y(static_cast<std::size_t>(stream.batch() * 4));
  for (std::int64_t t = begin; t < end; ++t) {
    const Tensor row = contiguous(slice(x, 1, t, t + 1));
    stream.step(row.values<float>(), y);
    rows.push_back(Tensor::from(y, {stream.batch(), 4}));
  }
  return stack(rows, 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_on_tensors)

BOOST_AUTO_TEST_CASE(streams_and_their_clones_do_not_train) {
  const Scaled layer;
  layer.train();
  const Tensor x = uniform({2, 6, 3}, {.seed = 2}, -1, 1);
  nn::Stream stream = layer.stream(2);
  BOOST_TEST(stream.on_tensors() == 1U);
  const Tensor first = streamed(stream, x, 0, 3);
  nn::Stream clone = stream.clone();
  const Tensor rest = streamed(stream, x, 3, 6);
  BOOST_TEST(identical(streamed(clone, x, 3, 6), rest));
  BOOST_TEST(layer.training());
  layer.eval();
  BOOST_TEST(identical(concat({first, rest}, 1), layer(x)));
}

BOOST_AUTO_TEST_CASE(refresh_takes_parameters_and_buffers) {
  const Scaled layer;
  layer.eval();
  const Tensor x = uniform({2, 4, 3}, {.seed = 3}, -1, 1);
  nn::Stream stream = layer.stream(2);
  const Tensor before = streamed(stream, x, 0, 4);
  BOOST_TEST(identical(before, layer(x)));
  layer.scale.assign(full({}, 3.0));
  const Parameter bias = layer.gru.weights().bias_ih;
  bias.assign(bias.value() + 1);
  stream.reset();
  BOOST_TEST(identical(streamed(stream, x, 0, 4), before));
  stream.refresh();
  stream.reset();
  BOOST_TEST(identical(streamed(stream, x, 0, 4), layer(x)));
  BOOST_TEST(!identical(before, layer(x)));
}

BOOST_AUTO_TEST_CASE(a_layer_that_would_begin_from_zeros_at_every_step_is_refused) {
  const auto looks_at_values = [](const nn::Layer& l, const Tensor& x, const nn::Context& c) {
    return x.to_vector<float>().empty() ? x : l(x, c);
  };
  const auto looks_without = [](const nn::Layer& l, const Tensor& x, const nn::Context&) {
    return x.to_vector<float>().empty() ? x : l(x);
  };
  const auto refused = [](std::unique_ptr<nn::Layer> inner, Around::Call call, const char* phrase) {
    const Around layer(std::move(inner), call);
    layer(zeros({2, 5, 4}));  // right for a whole sequence, and for one of a single step
    layer(zeros({2, 1, 4}));
    BOOST_CHECK_EXCEPTION(layer.stream(2), ValueError, support::says(phrase));
  };
  refused(fir(), looks_at_values, "not in the carry");
  refused(gru(), looks_without, "pass the context on to it");
}

/// If the program of all steps shows what a step carries, no state is passed on.
BOOST_AUTO_TEST_CASE(layers_that_carry_states_inside_stream_as_programs) {
  const auto with_context = [](const nn::Layer& l, const Tensor& x, const nn::Context& c) { return l(x, c); };
  const auto without = [](const nn::Layer& l, const Tensor& x, const nn::Context&) { return x + l(x); };
  const auto by_run = [](const nn::Layer& l, const Tensor& x, const nn::Context&) {
    return dynamic_cast<const nn::Gru&>(l).run(x).output;
  };
  const auto streams = [](std::unique_ptr<nn::Layer> inner, Around::Call call) {
    const Around layer(std::move(inner), call);
    const Tensor x = uniform({2, 6, 4}, {.seed = 8}, -1, 1);
    nn::Stream stream = layer.stream(2);
    BOOST_TEST(stream.on_tensors() == 0U);
    BOOST_TEST(identical(streamed(stream, x, 0, 6), layer(x)));
  };
  streams(fir(), with_context);
  streams(fir(), without);
  streams(gru(), without);
  streams(gru(), by_run);
}

BOOST_AUTO_TEST_CASE(inside_a_step_other_axes_and_given_states_begin_where_they_are_told) {
  // A GRU along the features, and one with a given state.
  const auto across = [](const nn::Layer& l, const Tensor& x, const nn::Context&) {
    const std::int64_t rows = x.shape()[0] * x.shape()[1];
    const Tensor y = l(expand(reshape(x, {rows, x.shape()[2], 1}), {rows, x.shape()[2], 4}));
    return reshape(mean(y, {2}), x.shape());
  };
  const auto given = [](const nn::Layer& l, const Tensor& x, const nn::Context&) {
    Tensors y;
    for (const Tensor& step : split(x, 1, 1)) y.push_back(l(step, {.state = ones({x.shape()[0], 4})}));
    return concat(y, 1);
  };
  const Tensor x = uniform({2, 6, 4}, {.seed = 8}, -1, 1);
  for (const Around::Call call : {Around::Call(across), Around::Call(given)}) {
    const Around layer(gru(), call);
    nn::Stream stream = layer.stream(2);
    BOOST_TEST(identical(streamed(stream, x, 0, 6), layer(x)));
  }
}

BOOST_AUTO_TEST_CASE(a_carry_refuses_a_layer_with_states_that_are_not_in_it) {
  const auto net =
      dsl::sequence(4).residual([](dsl::Builder& b) { b.add(causal_layers::Fir(4, {.seed = 9})); }).gru(4).build(1);
  const nn::Carry carry(net, 2);
  BOOST_CHECK_EXCEPTION(net(zeros({2, 5, 4}), {.carry = &carry}), ValueError, support::says("Module::carries"));
  const auto stateless = dsl::sequence(4).residual([](dsl::Builder& b) { b.linear(4); }).gru(4).build(1);
  const nn::Carry other(stateless, 2);
  BOOST_TEST(stateless(zeros({2, 5, 4}), {.carry = &other}).shape() == Shape({2, 5, 4}));
}

BOOST_AUTO_TEST_SUITE_END()
