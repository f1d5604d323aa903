// Streams compared with the layer on the whole sequence, bit for bit.
#include "ferrite/nn/stream/stream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {21, stream, 0}, -1, 1); }

/// Returns the outputs of a stream over x [B, T, D] as [B, T, N].
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

/// x - mean, where the mean is a buffer: a layer that does not define a step.
struct Centred final : nn::Layer {
  Buffer mean;
  Centred() : mean(buffer("mean", zeros({3}))) {}
  std::string kind() const override { return "centred"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return x - mean.value(); }
  bool causal() const override { return true; }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Centred>();
    nn::copy_values(*this, *copy);
    return copy;
  }
};

/// Dropout written by a user: a layer that does not define a step and differs in training.
struct Noisy final : nn::Layer {
  std::string kind() const override { return "noisy"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return training() ? x * 0 : x * 2; }
  bool causal() const override { return true; }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Noisy>(); }
};

/// Returns a layer of each kind alone, and some combinations.
std::vector<std::pair<std::string, dsl::Builder>> kinds() {
  const auto sequence = [] { return dsl::sequence(3); };
  return {{"linear", sequence().linear(4)},
          {"gru", sequence().gru(4)},
          {"two layers of a gru", sequence().gru(4, {.layers = 2})},
          {"gru, reset before", sequence().gru(4, {.reset_after = false})},
          {"lstm", sequence().lstm(4)},
          {"lstm, projected", sequence().lstm(4, {.proj_size = 2})},
          {"rnn", sequence().rnn(4)},
          {"layer norm", sequence().layer_norm()},
          {"a cell of one's own", sequence().recurrent<nn::LayerNormGruCell>(4)},
          {"linear and a cell of one's own", sequence().linear(4).recurrent<nn::LayerNormGruCell>(4)},
          {"a chain", sequence().linear(4).tanh().gru(6).residual([](dsl::Builder& b) { b.rnn(6); }).linear(2)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream)

BOOST_AUTO_TEST_CASE(one_feature_in_and_one_out_in_blocks_and_in_single_steps) {
  for (const std::int64_t H : {1, 7, 8, 16, 20, 33, 40})
    for (const std::int64_t batch : {1, 3}) {
      const auto net = dsl::sequence(1).gru(H).lstm(H).linear(1).build(H);
      net.eval();
      const std::int64_t T = 70;
      const Tensor x = draw({batch, T, 1}, 3), y = net(x);
      nn::Stream single = net.stream(batch);
      BOOST_TEST(identical(streamed(single, x, 1), y), "H " << H);
      nn::Stream blocks = net.stream(batch);
      const std::vector<float> in = contiguous(permute(x, {1, 0, 2})).to_vector<float>();
      std::vector<float> out(in.size());
      blocks.steps(T, in, out);
      BOOST_TEST(identical(permute(Tensor::from(out, {T, batch, 1}), {1, 0, 2}), y), "H " << H);
    }
}

BOOST_AUTO_TEST_CASE(one_column_of_many_features_in_blocks) {
  for (const std::int64_t D : {1, 15, 16, 250, 256, 257, 300}) {
    const auto net = dsl::sequence(D).linear(1).build(D);
    net.named_parameters()[1].variable.assign(full({1}, 0.7));
    const Tensor x = draw({1, 40, D}, 5);
    nn::Stream stream = net.stream();
    std::vector<float> out(40);
    stream.steps(40, x.to_vector<float>(), out);
    BOOST_TEST(identical(Tensor::from(out, {1, 40, 1}), net(x)), "D " << D);
  }
}

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
  const auto net = dsl::sequence(3).gru(4).last_step().linear(2).build(0);
  const Tensor x = draw({1, 5, 3}, 2);
  nn::Stream stream = net.stream();
  BOOST_TEST(identical(select(streamed(stream, x, 2), 1, -1), net(x)));
}

/// A copy of a stream is in evaluation mode, too.
BOOST_AUTO_TEST_CASE(a_clone_of_a_stream_drops_nothing) {
  const auto net = dsl::sequence(3).add(Noisy()).linear(2).build(1);
  const Tensor x = draw({1, 4, 3}, 5);
  const nn::Stream stream = net.stream();
  nn::Stream clone = stream.clone();
  net.eval();
  BOOST_TEST(identical(streamed(clone, x, 2), net(x)));
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

/// States are restored to where the next step reads them, after any number of steps.
BOOST_AUTO_TEST_CASE(states_are_restored_after_any_number_of_steps) {
  const Tensor x = draw({2, 9, 3}, 10);
  for (const auto& [name, words] : kinds()) {
    const dsl::Network net = words.build(1);
    const std::int64_t N = net(x).shape()[2];
    nn::Stream stream = net.stream(2);
    (void)streamed(stream, slice(x, 1, 0, 4), N);
    const std::vector<Tensor> saved = stream.save();
    const Tensor wanted = streamed(stream, slice(x, 1, 4), N);
    for (std::int64_t more = 0; more < 3; ++more) {
      if (more > 0) (void)streamed(stream, slice(x, 1, 0, more), N);
      stream.restore(saved);
      BOOST_TEST(identical(streamed(stream, slice(x, 1, 4), N), wanted), name << ", after " << more << " more");
    }
  }
}

/// The first layer, which has one input, needs no memory for the product with its input; the later ones do.
BOOST_AUTO_TEST_CASE(stacked_layers_of_one_input_stream_in_blocks) {
  for (const std::int64_t H : {1, 3, 16}) {
    const auto net = dsl::sequence(1).lstm(H, {.layers = 3}).linear(1).build(2);
    const Tensor x = draw({2, 100, 1}, 4), whole = net(x);
    const std::vector<float> in = contiguous(transpose(x, 0, 1)).to_vector<float>();
    std::vector<float> out(in.size());
    for (int k = 0; k < 20; ++k) {  // the memory after it changes with every stream
      nn::Stream stream = net.stream(2), other = stream.clone();
      stream.steps(100, in, out);
      BOOST_TEST(identical(contiguous(transpose(whole, 0, 1)), Tensor::from(out, {100, 2, 1})));
      other.steps(100, in, out);
      BOOST_TEST(identical(contiguous(transpose(whole, 0, 1)), Tensor::from(out, {100, 2, 1})));
    }
  }
}

BOOST_AUTO_TEST_CASE(states_of_another_shape_are_refused_and_nothing_changes) {
  const auto net = dsl::sequence(3).lstm(4).build(1);
  const Tensor x = draw({2, 5, 3}, 11);
  nn::Stream stream = net.stream(2);
  (void)streamed(stream, slice(x, 1, 0, 2), 4);
  const std::vector<Tensor> good = stream.save();
  BOOST_REQUIRE(good.size() == 2U);
  const Tensor h = draw({1, 2, 4}, 12);
  BOOST_CHECK_EXCEPTION(stream.restore({h, draw({1, 2, 5}, 13)}), ShapeError,
                        says("stream: holds a state f32[1, 2, 4], got f32[1, 2, 5]"));
  BOOST_CHECK_EXCEPTION(stream.restore({h, zeros({1, 2, 4}, Dtype::f64)}), ShapeError, says("got f64[1, 2, 4]"));
  BOOST_CHECK_EXCEPTION(stream.restore({draw({1, 3, 4}, 13), h}), ShapeError, says("got f32[1, 3, 4]"));
  BOOST_CHECK_EXCEPTION(stream.restore({h}), ValueError, says("1 states given, the model has 2"));
  BOOST_CHECK_EXCEPTION(stream.restore({h, h, h}), ValueError, says("3 states given, the model has 2"));
  const std::vector<Tensor> still = stream.save();
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(identical(still[i], good[i]));
}

/// Refreshing copies running statistics, too.
BOOST_AUTO_TEST_CASE(refresh_takes_buffers_too) {
  nn::Sequential net;
  net.add("linear", std::make_unique<nn::Linear>(3, 3, nn::Init{.seed = 1, .prefix = "linear"}));
  net.add("centred", std::make_unique<Centred>());
  const auto& layer = dynamic_cast<const Centred&>(net[1]);
  nn::Stream stream = net.stream();
  const Tensor x = draw({1, 4, 3}, 14);
  const Tensor before = net(x);
  BOOST_TEST(identical(streamed(stream, x, 3), before));
  layer.mean.assign(draw({3}, 15));
  BOOST_TEST(identical(streamed(stream, x, 3), before));
  stream.refresh();
  BOOST_TEST(identical(streamed(stream, x, 3), net(x)));
  BOOST_TEST(!identical(net(x), before));
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

/// A clone shares nothing: neither weights and biases that the other refreshes, nor memory that ends with it.
BOOST_AUTO_TEST_CASE(a_clone_and_its_original_do_not_touch_each_other) {
  const Tensor x = draw({2, 9, 3}, 9);
  const Tensor head = slice(x, 1, 0, 3), tail = slice(x, 1, 3);
  for (const auto& [name, words] : kinds()) {
    BOOST_TEST_CONTEXT(name) {
      const dsl::Network net = words.build(1), other = words.build(2);
      const std::int64_t N = net(x).shape()[2];
      auto whole = std::make_unique<nn::Stream>(net.stream(2));
      auto original = std::make_unique<nn::Stream>(net.stream(2));
      auto second = std::make_unique<nn::Stream>(net.stream(2));
      for (nn::Stream* s : {whole.get(), original.get(), second.get()}) (void)streamed(*s, head, N);
      nn::Stream clone = original->clone(), refreshed = second->clone();
      const Tensor wanted = streamed(*whole, tail, N);
      nn::copy_values(other, net);
      original->refresh();
      (void)streamed(*original, tail, N);
      original.reset();
      BOOST_TEST(identical(streamed(clone, tail, N), wanted), "after the original's refresh and end");
      refreshed.refresh();
      BOOST_TEST(identical(streamed(*second, tail, N), wanted), "after the clone's refresh");
      refreshed.reset();
      BOOST_TEST(identical(streamed(refreshed, x, N), other(x)), "the clone, refreshed");
    }
  }
}

/// One row restarts at any time, in streams and in their clones; the others continue with the same bits.
BOOST_AUTO_TEST_CASE(one_row_begins_anew) {
  const Tensor x = draw({3, 9, 3}, 10);
  for (const auto& [name, words] : kinds()) {
    BOOST_TEST_CONTEXT(name) {
      const dsl::Network net = words.build(1);
      const std::int64_t N = net(x).shape()[2];
      for (const std::int64_t first : {1, 4}) {  // an odd and an even number of steps before
        const Tensor head = slice(x, 1, 0, first), tail = slice(x, 1, first);
        nn::Stream whole = net.stream(3), fresh = net.stream(3), stream = net.stream(3);
        (void)streamed(whole, head, N);
        (void)streamed(stream, head, N);
        stream.reset(1);
        nn::Stream clone = stream.clone();
        const Tensor goes_on = streamed(whole, tail, N), begins = streamed(fresh, tail, N);
        for (nn::Stream* s : {&stream, &clone}) {
          const Tensor y = streamed(*s, tail, N);
          for (std::int64_t row = 0; row < 3; ++row)
            BOOST_TEST(identical(select(y, 0, row), select(row == 1 ? begins : goes_on, 0, row)), "row " << row);
        }
      }
    }
  }
  nn::Stream stream = network().stream(2);
  for (const std::int64_t row : {-1, 2})
    BOOST_CHECK_EXCEPTION(stream.reset(row), ValueError, says("lies outside 0..1"));
}

BOOST_AUTO_TEST_CASE(blocks_and_tokens) {
  const auto net = dsl::tokens(7).embedding(3).gru(4).build(0);
  const std::vector<std::int64_t> tokens = {3, 1, 6};
  nn::Stream stream = net.stream();
  std::vector<float> y(4);
  for (const std::int64_t& t : tokens) stream.step(std::span(&t, 1), y);
  BOOST_TEST(identical(Tensor::from(y, {1, 4}), select(net(Tensor::from(tokens, {1, 3})), 1, -1)));

  const auto sound = dsl::sequence(1).gru(4).linear(1).build(0);
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
  const auto mean = dsl::sequence(3).gru(4).mean_over_time().build(0);
  BOOST_CHECK_EXCEPTION((void)mean.stream(), ValueError,
                        says("stream: the layer '1' (mean_over_time) is not causal: sum of 1 reduces over time"));
  const auto nested = dsl::sequence(3)
                          .linear(4)
                          .stage("part",
                                 [](dsl::Builder& b) {
                                   b.tanh().parallel({[](dsl::Builder& p) { p.gru(2); },
                                                      [](dsl::Builder& p) { p.lstm(1, {.bidirectional = true}); }});
                                 })
                          .build(0);
  BOOST_CHECK_EXCEPTION(
      (void)nested.stream(), ValueError,
      says("stream: the layer 'part.1.1.0' (lstm) is not causal: its output at a step needs other steps"));
  const nn::Gru gru(2, 3, {}, {.seed = 0});
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
  const auto net = dsl::sequence(3).gru(4).gru(4).build(0);
  BOOST_CHECK_EXCEPTION((void)net(draw({1, 2, 3}, 8), {.state = zeros({1, 4})}), ValueError,
                        says("has an initial state, which only a recurrent layer takes"));
}

BOOST_AUTO_TEST_SUITE_END()
