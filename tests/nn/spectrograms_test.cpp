// Short-time Fourier transforms as layers: errors, windows, numbers of steps and multiply-adds, and a signal that is
// transformed there and back, at once and as a stream.
#include "ferrite/nn/layers/spectrograms.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fed.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

const nn::Init kDoubles{.dtype = Dtype::f64};

}  // namespace

BOOST_AUTO_TEST_SUITE(spectrograms)

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const auto refused = [](const nn::StftLayerOptions& o, const char* text) {
    BOOST_CHECK_EXCEPTION(nn::Stft{o}, ValueError, says(text));
  };
  refused({}, "stft: n_fft must be positive, got 0");
  refused({.n_fft = 3}, "stft: hop_length must be positive, got 0");
  refused({.n_fft = 8, .hop_length = -1}, "stft: hop_length must be positive, got -1");
  refused({.n_fft = 8, .win_length = 9}, "stft: win_length must lie in 1..8, got 9");
  refused({.n_fft = 8, .channels = 0}, "stft: channels must be positive, got 0");
  BOOST_CHECK_EXCEPTION(nn::InverseStft({.n_fft = 4, .hop_length = 5}), ValueError,
                        says("inverse_stft: frames of 4 samples, 5 apart, leave samples out"));

  const nn::Stft there({.n_fft = 8, .channels = 2});
  BOOST_CHECK_EXCEPTION((void)there(zeros({1, 9, 3})), ShapeError, says("stft: expects [B, T, 2], got [1, 9, 3]"));
  BOOST_CHECK_EXCEPTION((void)there(zeros({9, 2})), ShapeError, says("stft: expects [B, T, 2]"));
  BOOST_CHECK_EXCEPTION((void)there(zeros({1, 9, 2}, Dtype::f64)), DtypeError, says("the window is f32, got f64"));
  BOOST_CHECK_EXCEPTION((void)there(zeros({1, 4, 2})), ShapeError, says("too short to be padded with 4"));
  const nn::InverseStft back({.n_fft = 8, .center = false});
  BOOST_CHECK_EXCEPTION((void)back(zeros({1, 9, 9})), ShapeError, says("inverse_stft: expects [B, T, 10]"));
  BOOST_CHECK_EXCEPTION((void)back(zeros({1, 3, 10})), ShapeError,
                        says("inverse_stft: a block of samples takes 4 frames, got [1, 3, 10]"));
  BOOST_CHECK_EXCEPTION((void)nn::InverseStft({.n_fft = 8})(zeros({1, 1, 10})), ShapeError, says("takes 2 frames"));
  const nn::InverseStft gaps({.n_fft = 8, .hop_length = 8, .center = false});  // Hann's window begins with 0
  BOOST_CHECK_EXCEPTION((void)gaps(zeros({1, 3, 10})), ValueError,
                        says("inverse_stft: the windows leave out a sample"));
  BOOST_CHECK_EXCEPTION((void)gaps.stream(), ValueError, says("inverse_stft: the windows leave out a sample"));

  for (const bool center : {true, false}) {
    const nn::InverseStft layer({.n_fft = 8, .center = center});
    const nn::Carry carry(layer, 1);
    BOOST_CHECK_EXCEPTION((void)layer(zeros({1, 9, 10}), {.carry = &carry}), ValueError,
                          says(center ? "pieces cannot be carried on" : "has states that are not in the carry"));
  }
  for (const auto& net : {dsl::sequence(1).stft(8).build(1), dsl::sequence(10).inverse_stft(8).build(1)})
    BOOST_CHECK_EXCEPTION((void)net.stream(), ValueError, says("is not causal"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(9).inverse_stft(8).build(1), ShapeError,
                        says("expects 10 values of each channel's frame, the layer before it gives f32[B, T, 9]"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(1).stft(8, {.channels = 2}), ValueError, says("the options give n_fft"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(8).stft(8).build(1), ShapeError, says("expects [B, T, C]"));
}

/// The windows are those of tensor/signal.h, by their names in files.
BOOST_AUTO_TEST_CASE(windows) {
  using W = nn::SpectralWindow;
  const auto is = [](W window, const Tensor& wanted) {
    const nn::Stft layer({.n_fft = 8, .win_length = 6, .window = window}, kDoubles);
    BOOST_TEST(identical(layer.taper.peek(), wanted));
    BOOST_TEST(layer.named_buffers()[0].name == "window");
    const nn::InverseStft inverse({.n_fft = 8, .win_length = 6, .window = window}, kDoubles);
    BOOST_TEST(identical(inverse.taper.peek(), wanted));
  };
  const WindowOptions o{.dtype = Dtype::f64};
  is(W::hann, hann_window(6, o)), is(W::hamming, hamming_window(6, o)), is(W::blackman, blackman_window(6, o));
  is(W::bartlett, bartlett_window(6, o)), is(W::kaiser, kaiser_window(6, o)), is(W::ones, ones({6}, Dtype::f64));
}

/// Numbers of steps follow the formulas, also beyond the sizes with which the builder tries other layers; a transform
/// of n real points counts n log2(n) multiply-adds.
BOOST_AUTO_TEST_CASE(steps_and_costs_in_a_chain) {
  const auto net = dsl::sequence(2)
                       .stft(1024, {.hop_length = 512, .center = false})
                       .inverse_stft(1024, {.hop_length = 300, .center = false})
                       .stage("part", [](dsl::Builder& b) { b.conv1d(3, 2, {.stride = {2}}).stft(400); })
                       .build(1);
  BOOST_TEST(net.rows()[0].output == "[B, floor((T - 512)/512), 2052]");
  BOOST_TEST(net.rows()[1].output == "[B, floor((T - 2048)/512), 600]");
  BOOST_TEST(net.rows()[2].output == "[B, floor((T + 100352)/102400), 1206]");
  BOOST_TEST(net.rows()[0].multiply_adds == 2 * 1024 * 10 / 512);
  BOOST_TEST(net.rows()[1].multiply_adds == 2 * 1024 * 10 / 512);
  const auto centred = dsl::sequence(1).stft(512, {.hop_length = 160}).inverse_stft(512, {.hop_length = 160}).build(1);
  BOOST_TEST(centred.rows()[0].output == "[B, floor((T + 160)/160), 514]");
  BOOST_TEST(centred.rows()[1].output == "[B, floor(T/160), 160]");
  const Tensor x = uniform({1, 1000, 1}, {.seed = 3}, -1, 1);
  BOOST_TEST(centred[0](x).shape() == Shape({1, 7, 514}));
  BOOST_TEST(centred(x).shape() == Shape({1, 6, 160}));
  const Tensor lengths = Tensor::from<std::int64_t>({1, 100, 511, 512, 1000});
  const nn::Stft zeros_around({.n_fft = 512, .hop_length = 160, .padding = StftPadding::constant});
  BOOST_TEST(identical(zeros_around.lengths_after(lengths), Tensor::from<std::int64_t>({1, 1, 4, 4, 7})));
  BOOST_TEST(identical(nn::InverseStft({.n_fft = 8}).lengths_after(lengths),
                       Tensor::from<std::int64_t>({0, 99, 510, 511, 999})));
}

/// Whatever the window, overlapping frames give back the signal, also with a length that has a large prime factor.
BOOST_AUTO_TEST_CASE(there_and_back_is_the_signal) {
  struct Case {
    std::int64_t n_fft, hop, win;
    nn::SpectralWindow window;
  };
  const std::int64_t C = 2;
  for (const Case& c : {Case{8, 2, 8, nn::SpectralWindow::hann}, Case{9, 4, 7, nn::SpectralWindow::hamming},
                        Case{37, 10, 37, nn::SpectralWindow::blackman}, Case{6, 6, 6, nn::SpectralWindow::ones}})
    for (const bool center : {true, false})
      BOOST_TEST_CONTEXT(c.n_fft << ", " << c.hop << (center ? ", centred" : "")) {
        const nn::StftLayerOptions o{.n_fft = c.n_fft,
                                     .hop_length = c.hop,
                                     .win_length = c.win,
                                     .window = c.window,
                                     .center = center,
                                     .normalized = c.hop == 4};
        const auto net = dsl::sequence(C)
                             .stft(c.n_fft, {.hop_length = o.hop_length,
                                             .win_length = o.win_length,
                                             .window = o.window,
                                             .center = center,
                                             .normalized = o.normalized})
                             .inverse_stft(c.n_fft, {.hop_length = o.hop_length,
                                                     .win_length = o.win_length,
                                                     .window = o.window,
                                                     .center = center,
                                                     .normalized = o.normalized})
                             .build(1, Dtype::f64);
        const Tensor x = uniform({2, 4 * c.n_fft + 3, C}, {.seed = 5}, -1, 1, Dtype::f64);
        const Tensor blocks = net(x);
        const std::int64_t samples = blocks.shape()[1] * c.hop;
        const std::int64_t first = center ? 0 : (c.n_fft + c.hop - 1) / c.hop * c.hop - c.hop;
        BOOST_TEST(samples > c.n_fft);
        BOOST_TEST(within(reshape(blocks, {2, samples, C}), slice(x, 1, first, first + samples), 1e-12));
        if (center) continue;
        nn::Stream stream = net.stream(2);
        BOOST_TEST(stream.on_tensors() == 0U);
        BOOST_TEST(support::gave(stream, support::fed(stream, x, blocks.spec()), blocks, 0, x.shape()[1]));
      }
}

/// The window is a buffer, and a stream updates it on refresh.
BOOST_AUTO_TEST_CASE(another_window) {
  const nn::Stft there({.n_fft = 4, .hop_length = 2, .center = false});
  const nn::InverseStft back({.n_fft = 4, .hop_length = 2, .center = false});
  const Tensor x = uniform({1, 12, 1}, {.seed = 5}, -1, 1), frames = uniform({1, 5, 6}, {.seed = 6}, -1, 1);
  const auto follows = [](const nn::Layer& layer, const Buffer& window, const Tensor& in) {
    nn::Stream stream = layer.stream();
    const Tensor before = layer(in);
    window.assign(Tensor::from({1.0F, 2.0F, 3.0F, 5.0F}));
    const Tensor after = layer(in);
    BOOST_TEST(!identical(before, after));
    const std::int64_t T = in.shape()[1];
    BOOST_TEST(support::gave(stream, support::fed(stream, in, before.spec()), before, 0, T));
    stream.reset();
    stream.refresh();
    BOOST_TEST(support::gave(stream, support::fed(stream, in, after.spec()), after, 0, T));
  };
  follows(there, there.taper, x);
  follows(back, back.taper, frames);
}

/// A magnitude of 0 has the gradient 0, and the gradient of that is not NaN.
BOOST_AUTO_TEST_CASE(gradients_where_nothing_sounds) {
  const nn::Stft layer({.n_fft = 4, .spectrum = nn::Spectrum::magnitude, .center = false}, kDoubles);
  Tape tape;
  const Tensor x = tape.watch(zeros({1, 8, 1}, Dtype::f64));
  const Tensor g = tape.grad(sum(layer(x)), {x}, {.create_graph = true})[0];
  BOOST_TEST(identical(g, zeros({1, 8, 1}, Dtype::f64)));
}

BOOST_AUTO_TEST_SUITE_END()
