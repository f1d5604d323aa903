// Streams against the layer on the whole sequence, to the bit.
#include "ferrite/nn/stream.h"

#include "ferrite/dsl/builder.h"

#include "ferrite/nn/lstm.h"
#include "ferrite/nn/sequential.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {21, stream, 0}, -1, 1); }

/// Outputs of a stream over x [B, T, D] as [B, T, N].
Tensor streamed(nn::Stream& stream, const Tensor& x, std::int64_t features) {
  Tensors steps;
  for (const Tensor& x_t : unbind(x, 1)) {
    const std::vector<float> in = x_t.to_vector<float>();
    std::vector<float> out(static_cast<std::size_t>(x.shape()[0] * features));
    stream.step(in, out);
    steps.push_back(Tensor::from(out, {x.shape()[0], features}));
  }
  return stack(std::span<const Tensor>(steps.data(), steps.size()), 1);
}

dsl::Network network() {
  return dsl::sequence(3)
      .linear(4)
      .tanh()
      .gru(6, {.layers = 2, .dropout = 0.5})
      .layer_norm()
      .residual([](dsl::Builder& b) { b.lstm(6).dropout(0.1); })
      .rnn(5)
      .linear(2)
      .build(1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream)

BOOST_AUTO_TEST_CASE(a_network_streams_with_the_bits_of_the_whole_sequence) {
  const auto net = network();
  const Tensor x = draw({2, 7, 3}, 1);
  nn::Stream stream = net.stream(2);
  const Tensor y = streamed(stream, x, 2);
  net.eval();
  BOOST_TEST(identical(y, net(x)));
  stream.reset();
  BOOST_TEST(identical(streamed(stream, x, 2), y));
}

BOOST_AUTO_TEST_CASE(last_step_is_the_step) {
  const auto net = dsl::sequence(3).gru(4).last_step().linear(2).build();
  const Tensor x = draw({1, 5, 3}, 2);
  nn::Stream stream = net.stream();
  BOOST_TEST(identical(select(streamed(stream, x, 2), 1, -1), net(x)));
}

BOOST_AUTO_TEST_CASE(streams_do_not_touch_each_other) {
  const auto net = network();
  const Tensor a = draw({1, 6, 3}, 3);
  const Tensor b = draw({1, 6, 3}, 4);
  nn::Stream alone = net.stream();
  const Tensor wanted = streamed(alone, a, 2);
  nn::Stream one = net.stream();
  nn::Stream two = net.stream();
  Tensors steps;
  for (std::int64_t t = 0; t < 6; ++t) {
    steps.push_back(streamed(one, slice(a, 1, t, t + 1), 2));
    (void)streamed(two, slice(b, 1, t, t + 1), 2);
  }
  BOOST_TEST(identical(concat(std::span<const Tensor>(steps.data(), steps.size()), 1), wanted));
}

BOOST_AUTO_TEST_CASE(clone_save_and_restore_continue_where_the_stream_was) {
  const auto net = network();
  const Tensor x = draw({1, 8, 3}, 5);
  const Tensor head = slice(x, 1, 0, 3);
  const Tensor tail = slice(x, 1, 3);
  nn::Stream stream = net.stream();
  (void)streamed(stream, head, 2);
  nn::Stream copy = stream.clone();
  const std::vector<Tensor> saved = stream.save();
  const Tensor wanted = streamed(stream, tail, 2);
  BOOST_TEST(identical(streamed(copy, tail, 2), wanted));
  nn::Stream other = net.stream();
  other.restore(saved);
  BOOST_TEST(identical(streamed(other, tail, 2), wanted));
  stream.restore(saved);
  BOOST_TEST(identical(streamed(stream, tail, 2), wanted));
}

BOOST_AUTO_TEST_CASE(weights_are_a_snapshot_until_refresh) {
  const auto net = dsl::sequence(3).gru(4).build(1);
  const auto other = dsl::sequence(3).gru(4).build(2);
  const Tensor x = draw({1, 4, 3}, 6);
  nn::Stream stream = net.stream();
  nn::Stream before = net.stream();
  const Tensor old = streamed(before, x, 4);
  nn::copy_values(other, net);
  BOOST_TEST(identical(streamed(stream, x, 4), old));
  stream.reset();
  stream.refresh();
  BOOST_TEST(identical(streamed(stream, x, 4), other(x)));
}

BOOST_AUTO_TEST_CASE(blocks_and_tokens) {
  const auto net = dsl::tokens(7).embedding(3).gru(4).build();
  const std::vector<std::int64_t> tokens = {3, 1, 6};
  nn::Stream stream = net.stream();
  std::vector<float> y(4);
  for (const std::int64_t& t : tokens) stream.step(std::span(&t, 1), y);
  BOOST_TEST(identical(Tensor::from(y, {1, 4}), select(net(Tensor::from(tokens, {1, 3})), 1, -1)));

  const auto sound = dsl::sequence(1).gru(4).linear(1).build();
  const Tensor x = draw({1, 16, 1}, 7);
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(16);
  nn::Stream block = sound.stream();
  block.steps(10, std::span(in).first(10), std::span(out).first(10));
  block.steps(6, std::span(in).subspan(10), std::span(out).subspan(10));
  BOOST_TEST(identical(Tensor::from(out, {1, 16, 1}), sound(x)));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_streamed_is_refused) {
  const nn::Lstm both_ways(2, 3, {.bidirectional = true});
  BOOST_CHECK_EXCEPTION((void)both_ways.stream(), ValueError, says("stream: lstm is not causal"));
  const auto mean = dsl::sequence(3).gru(4).mean_over_time().build();
  BOOST_CHECK_EXCEPTION((void)mean.stream(), ValueError, says("is not causal"));
  const nn::Gru gru(2, 3);
  BOOST_CHECK_EXCEPTION((void)gru.stream(0), ValueError, says("stream: the batch must be positive"));
  nn::Stream stream = gru.stream(2);
  std::vector<float> x(3), y(6);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), ShapeError, says("stream: a step takes [2, 2] values, got 3"));
  x.resize(4);
  y.resize(5);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), ShapeError, says("a step gives 6 values, there is room for 5"));
  x.resize(6);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), ShapeError, says("stream: a step takes [2, 2] values, got 6"));
}

BOOST_AUTO_TEST_CASE(a_chain_refuses_an_initial_state) {
  const auto net = dsl::sequence(3).gru(4).gru(4).build();
  BOOST_CHECK_EXCEPTION((void)net(draw({1, 2, 3}, 8), {.state = zeros({1, 4})}), ValueError,
                        says("has an initial state, which a chain cannot place"));
}

BOOST_AUTO_TEST_SUITE_END()
