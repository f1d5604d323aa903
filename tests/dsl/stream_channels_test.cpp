// Streams of one row in blocks, which run channel by channel: they have the bits of the whole sequence, for any
// sequence of blocks and single steps.
#include <limits>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/in_blocks.h"

using namespace ferrite;
using support::check;
using support::Dice;
using support::InBlocks;
using support::sequence_of;

namespace {

constexpr std::int64_t kSteps = 500;

/// Returns a random chain of convolutions, products, sums and functions of elements, sometimes with other layers.
dsl::Network random_chain(Dice& dice, std::int64_t width, Dtype dtype, std::uint64_t seed) {
  dsl::Builder b = dsl::sequence(width);
  const auto bend = [&](dsl::Builder& part) {
    switch (dice.between(0, 6)) {
      case 0: part.relu(); break;
      case 1: part.leaky_relu(0.25); break;
      case 2: part.tanh(); break;
      case 3: part.elu(0.75); break;
      case 4: part.activation("softsign"); break;
      case 5: part.activation("sigmoid"); break;
      default: break;
    }
  };
  const auto convolve = [&](dsl::Builder& part, std::int64_t out) {
    part.causal_conv1d(out, dice.between(1, 7), {.dilation = dice.once_in(3) ? dice.between(1, 40) : 1});
  };
  for (std::int64_t n = dice.between(1, 5); n > 0; --n) {
    const std::int64_t out = dice.once_in(6) ? dice.between(17, 40) : dice.between(1, 9);
    convolve(b, out);
    bend(b);
    if (dice.once_in(2))
      b.residual([&](dsl::Builder& part) {
        if (dice.once_in(2)) convolve(part, dice.between(1, 20));
        bend(part);
        part.linear(out);
        if (dice.once_in(3)) bend(part);
      });
    if (dice.once_in(4)) b.linear(dice.between(1, 12));
    if (dice.once_in(6)) b.gru(dice.between(1, 6));
    if (dice.once_in(6)) b.layer_norm();
  }
  return dice.once_in(2) ? b.linear(1).build(seed, dtype) : b.build(seed, dtype);
}

nn::WavenetOptions random_wavenet(Dice& dice) {
  const auto activation = [&]() -> nn::WavenetActivation {
    switch (dice.between(0, 4)) {
      case 0: return {"leaky_relu", 0.125};
      case 1: return {.name = "hardtanh", .low = -0.5, .high = 0.75};
      case 2: return {"relu"};
      case 3: return {"softsign"};
      default: return {"tanh"};
    }
  };
  nn::WavenetOptions o{.head_scale = 0.5};
  const std::int64_t condition = dice.once_in(3) ? dice.between(2, 3) : 1;
  for (std::int64_t i = 0, arrays = dice.between(1, 2), head = 0; i < arrays; ++i) {
    nn::WavenetArray a{.input_size = i == 0 ? condition : o.arrays.back().channels,
                       .condition_size = condition,
                       .channels = dice.between(1, 18)};
    a.has_layer1x1 = dice.once_in(4) ? false : true;
    a.bottleneck = a.has_layer1x1 ? dice.between(1, 9) : a.channels;
    if (i > 0) {
      a.head1x1_size = head;
    } else if (dice.once_in(3)) {
      a.head1x1_size = dice.between(1, 5);
    }
    for (std::int64_t n = dice.between(1, 4); n > 0; --n)
      a.units.push_back({.kernel_size = dice.between(1, 6),
                         .dilation = dice.between(1, 30),
                         .activation = activation(),
                         .gate = dice.once_in(3) ? std::optional(activation()) : std::nullopt});
    a.head_size = i + 1 == arrays ? dice.between(1, 2) : dice.between(1, 4);
    a.head_kernel_size = dice.between(1, 4);
    a.head_bias = dice.once_in(2);
    head = a.head_size;
    o.arrays.push_back(a);
  }
  return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_channels)

BOOST_AUTO_TEST_CASE(random_chains_have_the_bits_of_the_whole_sequence) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    const std::int64_t width = dice.once_in(2) ? 1 : dice.between(2, 9);
    const Dtype dtype = dice.once_in(3) ? Dtype::f64 : Dtype::f32;
    const dsl::Network net = random_chain(dice, width, dtype, seed);
    net.eval();
    BOOST_TEST_CONTEXT("seed " << seed << "\n" << net.summary()) {
      const Tensor x = sequence_of(kSteps, width, dtype, seed);
      dtype == Dtype::f64 ? check<double>(net, x, dice) : check<float>(net, x, dice);
    }
  }
}

BOOST_AUTO_TEST_CASE(random_wavenets_have_the_bits_of_the_whole_sequence) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    Dice dice(1000 + seed);
    const nn::WavenetOptions options = random_wavenet(dice);
    const Dtype dtype = dice.once_in(4) ? Dtype::f64 : Dtype::f32;
    const nn::Wavenet net(options, {.seed = seed, .prefix = "net", .dtype = dtype});
    BOOST_TEST_CONTEXT("seed " << seed << ", arrays of " << options.arrays[0].channels << " channels") {
      const Tensor x = sequence_of(kSteps, options.arrays[0].input_size, dtype, seed);
      dtype == Dtype::f64 ? check<double>(net, x, dice) : check<float>(net, x, dice);
    }
  }
}

/// The memory changes its form between a block and a single step; the saved states are the same in both.
BOOST_AUTO_TEST_CASE(states_are_saved_restored_cloned_and_begun_anew_anywhere) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Dice dice(2000 + seed);
    const std::int64_t width = dice.between(1, 3);
    const dsl::Network net = random_chain(dice, width, Dtype::f32, seed);
    net.eval();
    BOOST_TEST_CONTEXT("seed " << seed << "\n" << net.summary()) {
      const Tensor x = sequence_of(kSteps, width, Dtype::f32, seed), whole = net(x);
      nn::Stream stream = net.stream();
      InBlocks<float> blocks(stream, x, whole.shape()[2]);
      blocks.run(dice.between(1, 200));
      blocks.run(dice.between(1, 3));

      nn::Stream other = net.stream();
      InBlocks<float> before(other, x, whole.shape()[2]);
      before.run(dice.between(1, 150));
      if (dice.once_in(3)) other.reset();
      other.restore(stream.save());
      nn::Stream third = stream.clone();
      for (nn::Stream* const s : {&other, &third}) {
        const std::int64_t done = kSteps - blocks.left();
        InBlocks<float> rest(*s, slice(x, 1, done), whole.shape()[2]);
        rest.run_all(dice);
        BOOST_TEST(support::identical(rest.y(), slice(whole, 1, done)));
      }
      stream.reset();
      InBlocks<float> again(stream, x, whole.shape()[2]);
      again.run_all(dice);
      BOOST_TEST(support::identical(again.y(), whole));
    }
  }
}

/// The lanes after the columns of all taps must not remember an infinity.
BOOST_AUTO_TEST_CASE(what_is_not_finite_is_gone_when_no_tap_sees_it) {
  const dsl::Network net =
      dsl::sequence(2).causal_conv1d(3, 5, {.dilation = 2}).leaky_relu().causal_conv1d(5, 3).build(4);
  std::vector<float> values = sequence_of(kSteps, 2, Dtype::f32, 6).to_vector<float>();
  values[2 * 40] = std::numeric_limits<float>::infinity();
  values[2 * 130 + 1] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from(std::span<const float>(values), {1, kSteps, 2}), whole = net(x);
  for (const std::int64_t n : {1, 7, 16, 64}) {
    nn::Stream stream = net.stream();
    InBlocks<float> blocks(stream, x, 5);
    while (blocks.left() > 0) blocks.run(std::min(n, blocks.left()));
    BOOST_TEST(support::distance(blocks.y(), whole) == 0);
    BOOST_TEST(std::isfinite(blocks.y().to_vector<float>().back()));
  }
}

/// A product of one number that was fused into the next convolution, a sum of many terms, and a function with a literal
/// all follow the weights.
BOOST_AUTO_TEST_CASE(refresh_takes_the_weights_of_what_was_joined) {
  const auto options = [] {
    nn::WavenetArray a{.channels = 6, .bottleneck = 6};
    for (const std::int64_t d : {1, 3, 9}) a.units.push_back({.dilation = d, .activation = {"leaky_relu", 0.3}});
    return nn::WavenetOptions{.arrays = {a}};
  }();
  const nn::Wavenet net(options, {.seed = 1, .prefix = "net"}), other(options, {.seed = 2, .prefix = "net"});
  nn::Stream stream = net.stream();
  const auto from = other.named_parameters();
  const auto to = net.named_parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].variable.assign(from[i].variable.peek());
  stream.refresh();
  const Tensor x = sequence_of(kSteps, 1, Dtype::f32, 9);
  InBlocks<float> blocks(stream, x, 1);
  Dice dice(5);
  blocks.run_all(dice);
  BOOST_TEST(support::identical(blocks.y(), other(x)));
}

/// Each layer alone is wider than a packet, and its width is not a multiple of one.
BOOST_AUTO_TEST_CASE(functions_with_literals_are_kernels) {
  std::vector<std::unique_ptr<nn::Layer>> layers;
  layers.push_back(std::make_unique<nn::LeakyRelu>(nn::SlopeOptions{0.2}));
  layers.push_back(std::make_unique<nn::Elu>(nn::AlphaOptions{0.7}));
  layers.push_back(std::make_unique<nn::Celu>(nn::AlphaOptions{0.7}));
  layers.push_back(std::make_unique<nn::Hardtanh>(nn::BoundsOptions{-0.3, 0.6}));
  layers.push_back(std::make_unique<nn::Softshrink>(nn::LambdaOptions{0.4}));
  layers.push_back(std::make_unique<nn::Hardshrink>(nn::LambdaOptions{0.4}));
  layers.push_back(std::make_unique<nn::Threshold>(nn::ThresholdOptions{0.1, -0.5}));
  for (const auto& layer : layers) BOOST_TEST_CONTEXT(layer->kind()) {
      BOOST_TEST(nn::detail::step_of(*layer, {2, 37, Dtype::f32})->elements());
      Dice dice(3);
      check<float>(*layer, sequence_of(kSteps, 37, Dtype::f32, 8), dice);
    }
}

BOOST_AUTO_TEST_SUITE_END()
