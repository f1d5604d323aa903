// Streams that give fewer steps than they take: when their steps come, and errors. Their values are tested in
// tests/dsl/stream_layers_test.cpp and tests/alloc/causal_chains_test.cpp.
#include <limits>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

BOOST_AUTO_TEST_SUITE(stream_pace)

/// A caller of `step`, which gives an output for each input, gets an error before anything has changed; `feed` reports
/// when an output comes.
BOOST_AUTO_TEST_CASE(a_stream_that_skips_steps_is_fed) {
  const auto net =
      dsl::sequence(3).causal_conv1d(4, 3, {.stride = 2}).max_pool1d(3).conv1d(2, 2, {.dilation = {2}}).gru(2).build(1);
  nn::Stream stream = net.stream();
  BOOST_TEST(stream.stride() == 6);
  BOOST_TEST(stream.delay() == 0 + 2 * 2 + 6 * 2);
  std::vector<float> x(3, 1), y(2);
  const auto says_feed = says("stream: the model gives one step for 6, the first one 16 later; call feed");
  BOOST_CHECK_EXCEPTION(stream.step(x, y), nn::PaceError, says_feed);
  BOOST_CHECK_EXCEPTION(stream.steps(1, x, y), nn::PaceError, says_feed);
  for (int t = 0; t < 40; ++t) BOOST_TEST(stream.feed(x, y) == (t >= 16 && (t - 16) % 6 == 0), "step " << t);
  BOOST_CHECK_EXCEPTION((void)stream.gave(1), ValueError, says("stream: row 1 lies outside 0..0"));
  const auto even = dsl::sequence(3).linear(4).gru(2).build(1);
  nn::Stream each = even.stream();
  std::vector<float> out(2);
  BOOST_TEST((each.stride() == 1 && each.delay() == 0 && !each.gave(0)));
  BOOST_TEST((each.feed(x, out) && each.gave(0)));
}

/// Two layers of one definition; each has its own order of sums.
BOOST_AUTO_TEST_CASE(conv1d_padded_in_front_is_the_causal_convolution) {
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t groups : {1, 2}) {
      const nn::Init init{.seed = 5, .dtype = Dtype::f64};
      const nn::CausalConv1d wanted(
          {.in_channels = 4, .out_channels = 6, .kernel_size = 3, .dilation = 2, .stride = stride, .groups = groups},
          init);
      const nn::Conv1d conv({.in_channels = 4,
                             .out_channels = 6,
                             .kernel_size = {3},
                             .stride = {stride},
                             .padding = ConvolutionPadding::causal,
                             .dilation = {2},
                             .groups = groups,
                             .channels_last = true},
                            init);
      BOOST_TEST(conv.summary().find("padding=causal") != std::string::npos, conv.summary());
      const Tensor x = uniform({2, 11, 4}, {5, 1, 0}, -1, 1, Dtype::f64);
      BOOST_TEST(support::within(conv(x), wanted(x), 1e-13), "stride " << stride << ", groups " << groups);
    }
}

BOOST_AUTO_TEST_CASE(a_residual_gives_a_step_for_each) {
  nn::Sequential net;
  auto sum = std::make_unique<nn::Residual>();
  sum->add("conv", std::make_unique<nn::CausalConv1d>(
                       nn::CausalConv1dOptions{.in_channels = 3, .out_channels = 3, .kernel_size = 2, .stride = 2},
                       nn::Init{.seed = 1}));
  net.add("sum", std::move(sum));
  BOOST_CHECK_EXCEPTION((void)net.stream(), nn::PaceError,
                        says("residual: the chain gives one step for 2, 0 fewer in all, so there is none to add to "
                             "each; pad its windows (same, causal), and put strides before or after"));
}

/// Each output sees one later step with "same" padding. tests/alloc/causal_chains_test.cpp tests the values.
BOOST_AUTO_TEST_CASE(a_stream_that_looks_ahead_ends) {
  const auto net = dsl::sequence(2)
                       .residual([](dsl::Builder& part) { part.conv1d(2, 3, {.padding = ConvolutionPadding::same}); })
                       .conv1d(1, 4, {.stride = {2}, .padding = {2}})
                       .build(1);
  const Tensor x = uniform({1, 9, 2}, {1, 2, 3}, -1, 1), y = net(x);
  BOOST_TEST((!net.causal() && net.streams()));
  nn::Stream stream = net.stream();
  BOOST_TEST((stream.stride() == 2 && stream.delay() == 1 + 1));
  std::vector<float> out(1), all;
  BOOST_CHECK_THROW(stream.step(std::vector<float>(2), out), nn::PaceError);
  for (int t = 0; t < 9; ++t)
    if (stream.feed(select(select(x, 0, 0), 0, t).to_vector<float>(), out)) all.push_back(out[0]);
  BOOST_TEST(all.size() == 4U);
  const std::vector<Tensor> before = stream.save();
  BOOST_CHECK_EXCEPTION(stream.finish(std::span<double>()), DtypeError, says("stream: the model gives f32"));
  BOOST_CHECK_EXCEPTION(stream.finish(std::span<float>()), ShapeError, says("there is room for 0"));
  while (stream.finish(out)) all.push_back(out[0]);
  BOOST_TEST(all == y.to_vector<float>(), boost::test_tools::per_element());
  BOOST_TEST((!stream.finish(out) && !stream.gave(0)));

  const auto ended = says("stream: the inputs have ended with finish(); call reset() to start over");
  BOOST_CHECK_EXCEPTION((void)stream.feed(std::vector<float>(2), out), ValueError, ended);
  BOOST_CHECK_EXCEPTION((void)stream.save(), ValueError, ended);
  BOOST_CHECK_EXCEPTION(stream.reset(0), ValueError, ended);
  nn::Stream late = net.stream();
  while (late.finish(out)) BOOST_ERROR("outputs without an input");
  late.restore(before);
  all.resize(4);
  while (late.finish(out)) all.push_back(out[0]);
  BOOST_TEST(all == y.to_vector<float>(), boost::test_tools::per_element());
  late.reset();
  BOOST_TEST(!late.feed(std::vector<float>(2), out));
}

/// States that no stream of the model can have are refused, when restored or when branches drift too far apart.
BOOST_AUTO_TEST_CASE(states_of_rows_that_wait_are_checked) {
  const auto net = dsl::sequence(1)
                       .residual([](dsl::Builder& part) { part.conv1d(1, 3, {.padding = ConvolutionPadding::same}); })
                       .build(1);
  nn::Stream stream = net.stream();
  std::vector<float> x{1}, y(1);
  for (int t = 0; t < 3; ++t) (void)stream.feed(x, y);
  const std::vector<Tensor> good = stream.save();
  for (std::size_t k = 0; k < good.size(); ++k) {
    if (good[k].dtype() != Dtype::i64) continue;
    for (const std::int64_t n : {std::int64_t{-1}, std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::min()}) {
      std::vector<Tensor> bad = good;
      bad[k] = full(good[k].shape(), n, Dtype::i64);
      try {
        stream.restore(bad);
        for (int t = 0; t < 20; ++t) (void)stream.feed(x, y);
      } catch (const ValueError& e) {
        BOOST_TEST(std::string(e.what()).find("stream: ") == 0U, e.what());
      }
      stream.restore(good);
    }
  }
  nn::Stream other = stream.clone();
  std::vector<float> wanted(1);
  BOOST_TEST((stream.feed(x, y) && other.feed(x, wanted) && y == wanted));
}

/// A model that does not look ahead has no outputs left at the end, and continues.
BOOST_AUTO_TEST_CASE(a_causal_stream_has_nothing_to_finish) {
  const auto net = dsl::sequence(2).causal_conv1d(2, 3).gru(3).build(1);
  nn::Stream stream = net.stream();
  std::vector<float> x(2, 1), y(3);
  stream.step(x, y);
  BOOST_TEST(!stream.finish(y));
  stream.step(x, y);
  (void)stream.save();
}

/// Padding on both sides gives an output for each input and more of them at the end: `step` returns the first ones.
BOOST_AUTO_TEST_CASE(branches_that_look_ahead_alike_take_single_steps) {
  const auto padded = [](dsl::Builder& b) { b.conv1d(3, 3, {.padding = {2}}); };
  const auto net = dsl::sequence(3).parallel({padded, padded}).build(1);
  const Tensor x = uniform({1, 12, 3}, {.seed = 2}, -1, 1), whole = net(x);
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(36), y(3);
  nn::Stream stream = net.stream();
  BOOST_TEST((stream.stride() == 1 && stream.delay() == 0));
  stream.steps(12, in, out);
  while (stream.finish(std::span<float>(y))) out.insert(out.end(), y.begin(), y.end());
  BOOST_TEST(support::identical(Tensor::from(out, whole.shape()), whole));
}

/// A user's layer that adds each input to outputs of which there are fewer.
BOOST_AUTO_TEST_CASE(values_with_steps_at_different_times_are_not_joined) {
  struct Careless final : nn::Layer {
    nn::CausalConv1d conv{{.in_channels = 3, .out_channels = 3, .kernel_size = 2, .stride = 2}, {.seed = 1}};
    Careless() { adopt("conv", conv); }
    std::string kind() const override { return "careless"; }
    bool causal() const override { return true; }
    nn::StepInput step_input() const override { return conv.step_input(); }
    Tensor forward(const Tensor& x, const nn::Context& c) const override { return conv(x, c); }
    std::size_t add_steps(nn::StepGraph& graph, std::size_t x) const override {
      return graph.add(*this, nn::detail::sum_step(graph.rows(x), 2), {x, graph.add(conv, x)});
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Careless>(); }
  };
  BOOST_CHECK_EXCEPTION((void)Careless().stream(), nn::PaceError, says("a step of careless takes values"));
}

/// A layer that sees all steps, and one that has its steps on another axis.
BOOST_AUTO_TEST_CASE(windows_that_cannot_wait_are_refused) {
  const auto is_refused = [](const dsl::Builder& words) {
    BOOST_CHECK_EXCEPTION((void)words.build(1).stream(), ValueError, says("is not causal"));
  };
  const auto sequence = [] { return dsl::sequence(3); };
  is_refused(sequence().conv1d(3, 3, {.padding = {3}}));
  is_refused(sequence().conv1d(3, 3, {.padding = {1}, .padding_mode = PaddingMode::circular}));
  is_refused(sequence().conv1d(3, 3, {.padding = ConvolutionPadding::causal, .padding_mode = PaddingMode::replicate}));
  is_refused(sequence().avg_pool1d(3, {.stride = {1}, .padding = {1}, .count_include_pad = false}));
  const nn::ConvTranspose1d up(
      {.in_channels = 3, .out_channels = 3, .kernel_size = {2}, .stride = {2}, .channels_last = true}, {.seed = 1});
  nn::Stream late = up.stream();  // the first step determines the width
  std::vector<float> x(3), y(6);
  BOOST_CHECK_EXCEPTION(late.feed(x, y), ValueError, says("convolution_transposed strides over time"));
  BOOST_TEST(!nn::MaxPool1d({.kernel_size = {2}}).causal());
  BOOST_TEST(!nn::AvgPool1d({.kernel_size = {2}, .ceil_mode = true, .channels_last = true}).causal());
}

/// A layer that holds one with a window without declaring it: a stream finds it, a carry refuses it.
BOOST_AUTO_TEST_CASE(a_window_within_a_layer_that_says_nothing_of_it_is_found) {
  struct Holder final : nn::Layer {
    nn::Conv1d conv{{.in_channels = 3,
                     .out_channels = 3,
                     .kernel_size = {2},
                     .padding = ConvolutionPadding::causal,
                     .channels_last = true},
                    {.seed = 1}};
    Holder() { adopt("conv", conv); }
    std::string kind() const override { return "holder"; }
    bool causal() const override { return true; }
    nn::StepInput step_input() const override { return conv.step_input(); }
    Tensor forward(const Tensor& x, const nn::Context& c) const override { return x + conv(x, c); }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Holder>(); }
  };
  const Holder layer;
  const Tensor x = uniform({1, 9, 3}, {.seed = 2}, -1, 1);
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(27);
  layer.stream().steps(9, in, out);
  BOOST_TEST(support::identical(Tensor::from(out, {1, 9, 3}), layer(x)));
  const nn::Carry carry(layer, 1);
  BOOST_CHECK_EXCEPTION((void)layer(zeros({1, 4, 3}), {.carry = &carry}), ValueError,
                        says("conv1d: has states that are not in the carry"));
}

/// Keys and values may have any number of steps, so pieces would begin without the earlier ones.
BOOST_AUTO_TEST_CASE(causal_attention_takes_no_carry) {
  const auto net = dsl::sequence(4).gru(4).attention(2, {.causal = true}).build(1);
  const nn::Carry carry(net, 2);
  BOOST_CHECK_EXCEPTION((void)net(zeros({2, 5, 4}), {.carry = &carry}), ValueError,
                        says("multihead_attention: has states that are not in the carry, so every call would begin"));
}

BOOST_AUTO_TEST_SUITE_END()
