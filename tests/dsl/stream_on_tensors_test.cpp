// Layers that stream on tensors, because they look at values or contain recurrent layers without saying what a step is.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

/// A GRU whose output is scaled by a buffer; while training, something else.
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

/// Rows [B, 4] of the steps of x [B, T, 3] in [begin, end).
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

BOOST_AUTO_TEST_SUITE_END()
