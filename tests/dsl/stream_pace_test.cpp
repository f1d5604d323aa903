// Streams that give fewer steps than they take: when, and what is refused. tests/dsl/stream_layers_test.cpp and
// tests/alloc/causal_chains_test.cpp have the values.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

BOOST_AUTO_TEST_SUITE(stream_pace)

/// A caller that counts on a step for each is told, before anything has changed; feed tells what comes when.
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

/// Two layers of one definition, each with sums of its own.
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
                        says("residual: the chain gives one step for 2, the first one 0 later, so there is none to add "
                             "to each; pad its windows in front (causal), and put strides before or behind"));
}

/// What sees later steps, and what has its steps on another axis.
BOOST_AUTO_TEST_CASE(windows_that_reach_beyond_their_step_are_refused) {
  const auto is_refused = [](const dsl::Builder& words) {
    BOOST_CHECK_EXCEPTION((void)words.build(1).stream(), ValueError, says("is not causal"));
  };
  const auto sequence = [] { return dsl::sequence(3); };
  is_refused(sequence().conv1d(3, 3, {.padding = ConvolutionPadding::same}));
  is_refused(sequence().conv1d(3, 3, {.padding = {1}}));
  is_refused(sequence().conv1d(3, 3, {.padding = ConvolutionPadding::causal, .padding_mode = PaddingMode::replicate}));
  is_refused(sequence().max_pool1d(3, {.stride = {1}, .padding = {1}}));
  const nn::ConvTranspose1d up(
      {.in_channels = 3, .out_channels = 3, .kernel_size = {2}, .stride = {2}, .channels_last = true}, {.seed = 1});
  BOOST_CHECK_EXCEPTION((void)up.stream(), ValueError, says("it gives several steps for one"));
  BOOST_TEST(!nn::MaxPool1d({.kernel_size = {2}}).causal());
  BOOST_TEST(!nn::AvgPool1d({.kernel_size = {2}, .ceil_mode = true, .channels_last = true}).causal());
}

/// A layer that holds one with a window and does not say so is refused, instead of beginning from zeros at every step.
BOOST_AUTO_TEST_CASE(a_window_within_a_layer_that_says_nothing_of_it_is_refused) {
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
  BOOST_CHECK_EXCEPTION((void)layer.stream(), ValueError, says("conv1d: has states, but the layer that contains it"));
  const nn::Carry carry(layer, 1);
  BOOST_CHECK_EXCEPTION((void)layer(zeros({1, 4, 3}), {.carry = &carry}), ValueError,
                        says("conv1d: has states that are not in the carry"));
}

/// Keys and values are of any number of steps: pieces would begin without those before.
BOOST_AUTO_TEST_CASE(causal_attention_takes_no_carry) {
  const auto net = dsl::sequence(4).gru(4).attention(2, {.causal = true}).build(1);
  const nn::Carry carry(net, 2);
  BOOST_CHECK_EXCEPTION((void)net(zeros({2, 5, 4}), {.carry = &carry}), ValueError,
                        says("multihead_attention: has states that are not in the carry, so every call would begin"));
}

BOOST_AUTO_TEST_SUITE_END()
