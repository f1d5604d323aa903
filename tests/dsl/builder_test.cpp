// The builder: inferred sizes, names, errors with both shapes, and the summary.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

BOOST_AUTO_TEST_SUITE(builder)

BOOST_AUTO_TEST_CASE(sizes_and_names) {
  const auto net = dsl::sequence(12).gru(64).last_step().linear(9).build(0);
  std::vector<std::string> names;
  for (const auto& p : net.named_parameters()) names.push_back(p.name + p.variable.shape().str());
  const std::vector<std::string> wanted = {"0.weight_ih_l0[12, 192]", "0.weight_hh_l0[64, 192]", "0.bias_ih_l0[192]",
                                           "0.bias_hh_l0[192]",       "2.weight[64, 9]",         "2.bias[9]"};
  BOOST_TEST(names == wanted, boost::test_tools::per_element());
  BOOST_TEST(net(zeros({3, 7, 12})).shape().str() == "[3, 9]");
}

BOOST_AUTO_TEST_CASE(one_seed_fixes_all_weights) {
  const auto make = [](std::uint64_t seed) { return dsl::features(5).linear(4, "head").relu().linear(2).build(seed); };
  BOOST_TEST(identical(make(1).parameters()[0].peek(), make(1).parameters()[0].peek()));
  BOOST_TEST(!identical(make(1).parameters()[0].peek(), make(2).parameters()[0].peek()));
  BOOST_TEST(make(1).named_parameters()[0].name == "head.weight");
  BOOST_TEST(make(1).named_parameters()[2].name == "2.weight");
  const auto longer = dsl::features(5).linear(4, "head").tanh().linear(2).dropout(0.1).build(1);
  BOOST_TEST(identical(longer.parameters()[0].peek(), make(1).parameters()[0].peek()));
}

BOOST_AUTO_TEST_CASE(every_word) {
  const auto net = dsl::tokens(29)
                       .embedding(8)
                       .stage("encoder", [](dsl::Builder& b) { b.gru(6).layer_norm().gelu(); })
                       .residual([](dsl::Builder& b) { b.linear(6).silu().dropout(0.5); })
                       .repeat(2, [](dsl::Builder& b) { b.linear(6).sigmoid().softplus(); })
                       .mean_over_time()
                       .add(nn::Linear(6, 4), "head")
                       .log_sigmoid()
                       .softmax()
                       .build(7);
  net.eval();
  const Tensor y = net(Tensor::from<std::int64_t>({1, 2, 3, 4, 5, 28}, {2, 3}));
  BOOST_TEST(y.shape().str() == "[2, 4]");
  BOOST_TEST(support::within(sum(y, {1}), ones({2}), 1e-6));
  BOOST_TEST(net.named_parameters()[1].name == "encoder.0.weight_ih_l0");
  BOOST_TEST(!net.training());
}

BOOST_AUTO_TEST_CASE(layers_and_parameters_by_name) {
  const auto net = dsl::sequence(3)
                       .standardize("scale")
                       .stage("encoder", [](dsl::Builder& b) { b.gru(4, "gru").linear(4, "linear"); })
                       .last_step()
                       .linear(2, "head")
                       .build(0);
  BOOST_TEST(&net.layer("head") == &net[3]);
  BOOST_TEST(net.layer<nn::Gru>("encoder.gru").hidden_size() == 4);
  BOOST_TEST(net.layer("2").kind() == "last_step");
  BOOST_CHECK_EXCEPTION((void)net.layer("haed"), ValueError,
                        says("network: there is no layer 'haed'; there are 'scale', 'encoder', '2', 'head'"));
  BOOST_CHECK_EXCEPTION((void)net.layer("encoder.lstm"), ValueError, says("there are 'gru', 'linear'"));
  BOOST_CHECK_EXCEPTION((void)net.layer("head.weight"), ValueError, says("there is no layer 'head.weight'"));
  BOOST_CHECK_EXCEPTION((void)net.layer<nn::Gru>("head"), ValueError,
                        says("'head' is of another class: it is a linear"));

  BOOST_TEST(net.parameters("encoder").size() == 6U);
  BOOST_TEST(net.parameters("encoder.gru").size() == 4U);
  BOOST_TEST((net.parameters("head.bias").at(0) == net.layer<nn::Linear>("head").bias));
  for (const char* none : {"enc", "encoder.gr", "", "scale", "head."})
    BOOST_CHECK_EXCEPTION(
        (void)net.parameters(none), ValueError,
        says("none belongs to '" + std::string(none) + "'; the first one is 'encoder.gru.weight_ih_l0'"));
}

// A function that declares to work step by step is tested when it is added; it then streams, and keeps axes.
BOOST_AUTO_TEST_CASE(functions_of_a_step) {
  const auto with = [](auto f) { return dsl::sequence(3).per_step("mine", f).build(0); };
  const auto net = with([](const Tensor& x) { return concat({x, square(x)}, -1); });
  BOOST_TEST(net.summary().find("mine") != std::string::npos);
  const Tensor x = uniform({2, 5, 3}, {1, 0, 0}, -1, 1);
  BOOST_TEST(identical(net(x), concat({x, square(x)}, -1)));
  BOOST_TEST(identical(net.clone()->operator()(x), net(x)));
  nn::Stream stream = net.stream();
  std::vector<float> y(6);
  stream.step(std::vector<float>{1, 2, 3}, y);
  BOOST_TEST(y == (std::vector<float>{1, 2, 3, 1, 4, 9}), boost::test_tools::per_element());
  BOOST_TEST(dsl::sequence(3).per_step("log", [](const Tensor& v) { return log(v); }).build(0, Dtype::f64).causal());

  const auto refused = [&](auto f, const char* why) { BOOST_CHECK_EXCEPTION((void)with(f), ValueError, says(why)); };
  refused([](const Tensor& v) { return v - mean(v, {1}, true); }, "gives other values for step 0 of row 0 alone");
  refused([](const Tensor& v) { return cumsum(v, 1); }, "gives other values for step 1 of row 0 alone");
  refused([](const Tensor& v) { return v + amax(v, {0}, true); }, "alone than within a sequence");
  BOOST_CHECK_EXCEPTION((void)with([](const Tensor& v) { return sum(v, {-1}); }), ShapeError,
                        says("it must keep all axes but the last one"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).per_step("mine", nullptr), ValueError, says("'mine' is null"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).per_step("", [](const Tensor& v) { return v; }), ValueError,
                        says("the name is empty"));
}

// The expected values are each channel's power times the filters of tensor/mel.h.
BOOST_AUTO_TEST_CASE(mel_bands_of_spectra) {
  const auto net = dsl::sequence(2)
                       .stft(16, {.spectrum = nn::Spectrum::power, .center = false})
                       .mel_bands(4, 8000, {.lowest = 50, .log_offset = 1e-3, .channels = 2})
                       .build(0);
  const Tensor x = uniform({3, 40, 2}, {7, 0, 0}, -1, 1);
  const Tensor power = net[0](x), filters = mel_filter_bank(9, 4, 8000, {.lowest = 50});
  const Tensor left = matmul(slice(power, 2, 0, 9), filters), right = matmul(slice(power, 2, 9), filters);
  BOOST_TEST(identical(net(x), log(concat({left, right}, 2) + 1e-3)));
  BOOST_TEST(net.layer("1").summary() ==
             "mel_bands(n_frequencies=9, n_mels=4, sample_rate=8000, lowest=50, log_offset=0.001, channels=2)");
  BOOST_TEST(identical(net[1].clone()->operator()(power), net(x)));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(9).mel_bands(4, 8000, {.n_mels = 3}), ValueError,
                        says("which the word gives"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(9).mel_bands(4, 8000, {.channels = 2}).build(0), ShapeError,
                        says("expects the frequencies of 2 channels"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(9).mel_bands(4, 8000, {.log_offset = -1}).build(0), ValueError,
                        says("log_offset must be finite and not negative"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(9).mel_bands(0, 8000).build(0), ValueError, says("mel"));
  BOOST_CHECK_EXCEPTION((void)nn::MelBands({.n_frequencies = 9, .n_mels = 4, .sample_rate = 8000})(zeros({2, 8})),
                        ShapeError, says("expects 1 times 9 frequencies, got [2, 8]"));
  BOOST_CHECK_EXCEPTION(
      (void)nn::MelBands({.n_frequencies = 9, .n_mels = 4, .sample_rate = 8000})(zeros({9}, Dtype::f64)), DtypeError,
      says("the filters are f32"));
}

BOOST_AUTO_TEST_CASE(flatten_words) {
  const auto net = dsl::sequence(3).tanh().relu().log_softmax().last_step().flatten().build(0);
  BOOST_TEST(net(zeros({2, 5, 3})).shape().str() == "[2, 3]");
}

BOOST_AUTO_TEST_CASE(words_on_images) {
  const auto net = dsl::image(1, 28, 28)
                       .conv2d(8, 3, {.padding = {1}, .bias = false})
                       .batch_norm()
                       .relu()
                       .max_pool2d(2)
                       .residual([](dsl::Builder& b) {
                         b.conv2d(8, {3, 3}, {.padding = ConvolutionPadding::same}).group_norm(4).elu();
                       })
                       .conv2d(12, {3, 5}, {.stride = {2, 1}})
                       .prelu(true)
                       .avg_pool2d(2, {.stride = {1}})
                       .conv_transpose2d(6, 2, {.stride = {2}})
                       .leaky_relu()
                       .adaptive_max_pool2d({3, 4})
                       .adaptive_avg_pool2d(2)
                       .flatten()
                       .rms_norm()
                       .linear(20)
                       .glu()
                       .batch_norm()
                       .build(3);
  const Tensor x = uniform({4, 1, 28, 28}, {.seed = 1}, -1, 1);
  BOOST_TEST(net(x).shape().str() == "[4, 10]");
  const std::vector<std::string> outputs = {
      "[B, 8, 28, 28]", "[B, 8, 28, 28]", "[B, 8, 28, 28]", "[B, 8, 14, 14]", "[B, 8, 14, 14]", "[B, 12, 6, 10]",
      "[B, 12, 6, 10]", "[B, 12, 5, 9]",  "[B, 6, 10, 18]", "[B, 6, 10, 18]", "[B, 6, 3, 4]",   "[B, 6, 2, 2]",
      "[B, 24]",        "[B, 24]",        "[B, 20]",        "[B, 10]",        "[B, 10]"};
  for (std::size_t i = 0; i < outputs.size(); ++i) BOOST_TEST(net.rows()[i].output == outputs[i]);
  BOOST_TEST(net.rows()[0].multiply_adds == 28 * 28 * 8 * 9);
  BOOST_TEST(net.rows()[8].multiply_adds == 5 * 9 * 12 * 6 * 4);
  BOOST_TEST(net.rows()[0].parameters == 8 * 9);
  BOOST_TEST(net.summary().find("multiply-adds/step") == std::string::npos);
  net.eval();
  BOOST_TEST(identical(net.copy()(x), net(x)));
  const auto volume = dsl::volume(2, 4, 6, 6)
                          .conv3d(3, 3)
                          .batch_norm()
                          .max_pool3d({1, 2, 2})
                          .conv_transpose3d(2, {1, 2, 2})
                          .avg_pool3d(2)
                          .flatten()
                          .build(0);
  BOOST_TEST(volume(zeros({2, 2, 4, 6, 6})).shape().str() == "[2, 2]");
}

/// Over sequences the channels are the features, whatever axis PyTorch has them on.
BOOST_AUTO_TEST_CASE(words_on_channels_of_sequences) {
  const auto net = dsl::sequence(3)
                       .conv1d(6, 3, {.padding = ConvolutionPadding::same, .groups = 3})
                       .batch_norm({.momentum = 0.5})
                       .prelu(true)
                       .group_norm(2)
                       .build(5);
  const Tensor x = uniform({2, 7, 3}, {.seed = 2}, -1, 1), first = transpose(x);
  const auto parameter = [&](const std::string& name) {
    for (const auto& p : net.named_parameters())
      if (p.name == name) return p.variable.value();
    return Tensor();
  };
  const Tensor convolved = conv1d(first, parameter("0.weight"), parameter("0.bias"), {.padding = {1}, .groups = 3});
  const Tensor normed = batch_norm(convolved, mean(convolved, {0, 2}), var(convolved, {0, 2}, false, 0));
  const Tensor rectified = where(gt(normed, 0), normed, 0.25 * normed);
  BOOST_TEST(support::within(net(x), transpose(group_norm(rectified, 2)), 1e-6));
  BOOST_TEST(support::within(net.named_buffers()[0].variable.peek(), mean(convolved, {0, 2}) / 2, 1e-6));
  BOOST_TEST(net.rows()[0].output == "[B, T, 6]");
}

BOOST_AUTO_TEST_CASE(words_on_channels_that_do_not_fit) {
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).conv2d(4, 3).build(0), ShapeError,
                        says("layer 0 (conv2d \"0\"): expects [B, C, H, W], the layer before it gives f32[B, T, 3]"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).conv1d(4, 3).build(0), ShapeError,
                        says("expects [B, T, C], the layer before it gives f32[B, 3, 8, 8]"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 2, 2).conv2d(4, 3).build(0), ShapeError, says("layer 0 (conv2d \"0\")"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).conv2d(4, {3, 3, 3}).build(0), ValueError,
                        says("conv2d: kernel_size needs one number or 2, got [3, 3, 3]"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).conv2d(4, 3, {.in_channels = 3}), ValueError,
                        says("conv2d: the options give channels or a kernel, which the word gives or infers"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).max_pool2d(2, {.kernel_size = {2}}), ValueError,
                        says("max_pool2d: the options give a kernel"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).batch_norm({.num_features = 3}), ValueError,
                        says("batch_norm: the options give features"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(3, 8, 8).group_norm(2).build(0), ValueError,
                        says("2 groups do not divide 3 channels"));
  BOOST_CHECK_EXCEPTION((void)dsl::tokens(5).batch_norm().build(0), ShapeError,
                        says("the layer before it gives i64[B, T]"));
  BOOST_CHECK_EXCEPTION((void)dsl::image(0, 8, 8), ValueError,
                        says("image: sizes must be positive, got 0 channels of [8, 8]"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).residual([](dsl::Builder& b) { b.conv1d(3, 3); }).build(0), ShapeError,
                        says("layer 0 (residual \"0\"): residual: the chain changes the shape"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).max_pool1d(2).conv2d(4, 3).build(0), ShapeError,
                        says("the layer before it gives f32[B, floor(T/2), 3]"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).conv1d(4, 3, {.stride = {2}}).flatten().build(0), ShapeError,
                        says("flatten: the output's size depends on the number of steps"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).lp_pool1d(2, 3, {.norm = 3}), ValueError,
                        says("lp_pool1d: the options give a norm"));
}

/// Expected numbers of steps follow PyTorch's formula, by hand: floor((T + 2 padding - kernel) / stride + 1).
BOOST_AUTO_TEST_CASE(words_that_change_the_number_of_steps) {
  const auto net = dsl::sequence(3)
                       .conv1d(4, 3)                                       // T - 2
                       .conv1d(6, 3, {.stride = {2}, .padding = {1}})      // floor((T - 1) / 2)
                       .max_pool1d(3, {.stride = {2}, .ceil_mode = true})  // floor((T - 1) / 4), from rounding up
                       .gru(5)
                       .avg_pool1d(2, {.stride = {1}})
                       .lp_pool1d(3, 3)
                       .last_step()
                       .linear(2)
                       .build(3);
  const std::vector<std::string> outputs = {"[B, T - 2, 4]",
                                            "[B, floor((T - 1)/2), 6]",
                                            "[B, floor((T - 1)/4), 6]",
                                            "[B, floor((T - 1)/4), 5]",
                                            "[B, floor((T - 5)/4), 5]",
                                            "[B, floor((T - 5)/12), 5]",
                                            "[B, 5]",
                                            "[B, 2]"};
  for (std::size_t i = 0; i < outputs.size(); ++i) BOOST_TEST(net.rows()[i].output == outputs[i]);
  BOOST_TEST(net.rows()[0].multiply_adds == 3 * 4 * 3);
  BOOST_TEST(net.rows()[1].multiply_adds == 4 * 6 * 3 / 2);
  BOOST_TEST(net.rows()[3].multiply_adds == (3 * 5 * (6 + 5) + 3) / 4);
  BOOST_TEST(net.rows()[7].multiply_adds == 10);
  for (std::int64_t T = 17; T < 45; ++T) {
    Tensor y = uniform({2, T, 3}, {.seed = 2}, -1, 1);
    const std::vector<std::int64_t> left = {T - 2, (T - 1) / 2, (T - 1) / 4, (T - 1) / 4, (T - 5) / 4, (T - 5) / 12};
    for (std::size_t i = 0; i < left.size(); ++i) {
      y = net[i](y);
      BOOST_TEST(y.shape()[1] == left[i]);
    }
  }
  const Tensor x = uniform({2, 19, 3}, {.seed = 4}, -1, 1);
  BOOST_TEST(identical(net.copy()(x), net(x)));
  const auto nested = [](dsl::Builder& b) { b.conv1d(4, 3).conv1d(3, 3, {.padding = {2}}); };
  const auto around = dsl::sequence(3).residual(nested).max_pool1d(2).stage("s", nested).build(0);
  BOOST_TEST(around.rows()[0].output == "[B, T, 3]");
  BOOST_TEST(around.rows()[0].multiply_adds == 2 * 3 * 4 * 3);
  BOOST_TEST(around.rows()[2].output == "[B, floor(T/2), 3]");
  BOOST_TEST(around.rows()[2].multiply_adds == 3 * 4 * 3);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_when_building) {
  BOOST_CHECK_EXCEPTION(
      (void)dsl::sequence(12).gru(32).add(nn::Linear(64, 9), "head").build(0), ShapeError,
      says("layer 1 (linear \"head\"): linear: expects 64 features, got [2, 256, 32]; the layer before it "
           "gives [B, T, 32]"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(784).gru(64).build(0), ShapeError,
                        says("layer 0 (gru \"0\"): gru: expects input [B, T, 784], got [B, 784]"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).last_step().last_step().build(0), ShapeError,
                        says("layer 1 (last_step \"1\")"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).embedding(4).build(0), ShapeError,
                        says("start with dsl::tokens(vocabulary)"));
  BOOST_CHECK_EXCEPTION((void)dsl::tokens(3).linear(4).build(0), ShapeError, says("expects features"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).linear(4, "a").linear(4, "a").build(0), ValueError,
                        says("'a' is taken"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).linear(0).build(0), ValueError,
                        says("layer 0 (linear \"0\"): linear: sizes must be positive"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).dropout(2).build(0), ValueError, says("dropout: the probability"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).activation("swoosh"), ValueError,
                        says("'swoosh' is unknown; known are relu"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).build(0), ValueError, says("has no layers"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(0), ValueError, says("sequence: the size must be positive"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(4).residual([](dsl::Builder& b) { b.linear(3); }).build(0), ShapeError,
                        says("residual: the chain changes the shape: [2, 4] to [2, 3]"));
}

/// There are 3 H (D + H + 2) and (H + 1) C parameters, and 3 H (D + H) and H C multiply-adds per step.
BOOST_AUTO_TEST_CASE(summary_counts) {
  const auto net = dsl::sequence(12).gru(64, "rnn").last_step().linear(9).build(0);
  BOOST_TEST(net.rows()[0].parameters == 3 * 64 * (12 + 64 + 2));
  BOOST_TEST(net.rows()[0].multiply_adds == 3 * 64 * (12 + 64));
  BOOST_TEST(net.rows()[2].parameters == 65 * 9);
  BOOST_TEST(net.rows()[2].multiply_adds == 64 * 9);
  const std::string text = net.summary();
  for (const char* part : {"rnn", "gru", "[B, T, 64]", "14,976", "last_step", "[B, 9]", "total", "15,561"})
    BOOST_TEST(text.find(part) != std::string::npos, part << " in\n" << text);
}

BOOST_AUTO_TEST_CASE(copies_are_independent) {
  const auto net = dsl::features(3).linear(2).build(0);
  const auto copy = net.copy();
  const Tensor x = ones({1, 3});
  BOOST_TEST(identical(copy(x), net(x)));
  copy.parameters()[0].assign(zeros({3, 2}));
  BOOST_TEST(!identical(copy(x), net(x)));
  BOOST_TEST(copy.summary() == net.summary());
}

BOOST_AUTO_TEST_SUITE_END()
