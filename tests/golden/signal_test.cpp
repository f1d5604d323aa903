// Fourier transforms, spectrograms and windows compared with PyTorch 2.13: values, gradients and double backward
// (tests/data/make_signal_fixtures.py writes the cases); errors, and properties for every length.
#include <cmath>
#include <numbers>

#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/mel.h"
#include "ferrite/tensor/signal.h"
#include "ferrite/tensor/threads.h"
#include "golden/twice.h"
#include "support/compare.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;
using golden::Functions;

Functions transforms() {
  constexpr auto ortho = FftNorm::ortho, forward = FftNorm::forward;
  return {
      {"rfft_even", [](In x) { return rfft(x[0]); }},
      {"rfft_odd", [](In x) { return rfft(x[0]); }},
      {"rfft_one", [](In x) { return rfft(x[0]); }},
      {"rfft_axis", [](In x) { return rfft(x[0], {.axis = 1}); }},
      {"rfft_cut", [](In x) { return rfft(x[0], {.n = 7}); }},
      {"rfft_padded", [](In x) { return rfft(x[0], {.n = 16, .norm = ortho}); }},
      {"rfft_forward", [](In x) { return rfft(x[0], {.axis = 0, .norm = forward}); }},
      {"rfft_prime", [](In x) { return rfft(x[0]); }},
      {"rfft_twice_a_prime", [](In x) { return rfft(x[0]); }},
      {"rfft_64", [](In x) { return rfft(x[0], {.norm = ortho}); }},
      {"rfft_60", [](In x) { return rfft(x[0], {.norm = ortho}); }},
      {"rfft_105", [](In x) { return rfft(x[0], {.norm = ortho}); }},
      {"irfft", [](In x) { return irfft(x[0]); }},
      {"irfft_odd", [](In x) { return irfft(x[0], {.n = 9}); }},
      {"irfft_axis", [](In x) { return irfft(x[0], {.axis = 0}); }},
      {"irfft_padded", [](In x) { return irfft(x[0], {.n = 16, .norm = ortho}); }},
      {"irfft_cut", [](In x) { return irfft(x[0], {.n = 5, .norm = forward}); }},
      {"irfft_prime", [](In x) { return irfft(x[0], {.n = 83}); }},
      {"irfft_one", [](In x) { return irfft(x[0], {.n = 1}); }},
      {"fft", [](In x) { return fft(x[0]); }},
      {"fft_odd", [](In x) { return fft(x[0], {.norm = ortho}); }},
      {"fft_axis", [](In x) { return fft(x[0], {.axis = 0}); }},
      {"fft_cut", [](In x) { return fft(x[0], {.n = 5}); }},
      {"fft_padded", [](In x) { return fft(x[0], {.n = 11, .norm = forward}); }},
      {"fft_prime", [](In x) { return fft(x[0]); }},
      {"ifft", [](In x) { return ifft(x[0]); }},
      {"ifft_ortho", [](In x) { return ifft(x[0], {.norm = ortho}); }},
      {"ifft_forward", [](In x) { return ifft(x[0], {.axis = 0, .norm = forward}); }},
      {"ifft_prime", [](In x) { return ifft(x[0]); }},
      {"fftshift", [](In x) { return fftshift(x[0]); }},
      {"fftshift_axis", [](In x) { return fftshift(x[0], {1}); }},
      {"ifftshift", [](In x) { return ifftshift(x[0]); }},
  };
}

Functions spectrograms() {
  using Pad = StftPadding;
  return {
      {"stft", [](In x) { return stft(x[0], 16); }},
      {"stft_window", [](In x) { return stft(x[0], 16, x[1], {.hop_length = 5}); }},
      {"stft_one_signal", [](In x) { return stft(x[0], 12, x[1], {.hop_length = 3}); }},
      {"stft_short_window", [](In x) { return stft(x[0], 16, x[1], {.hop_length = 4, .win_length = 9}); }},
      {"stft_short_window_of_ones", [](In x) { return stft(x[0], 16, {}, {.hop_length = 4, .win_length = 10}); }},
      {"stft_not_centred", [](In x) { return stft(x[0], 16, x[1], {.hop_length = 7, .center = false}); }},
      {"stft_constant", [](In x) { return stft(x[0], 10, {}, {.hop_length = 4, .padding = Pad::constant}); }},
      {"stft_replicate", [](In x) { return stft(x[0], 10, {}, {.hop_length = 4, .padding = Pad::replicate}); }},
      {"stft_circular", [](In x) { return stft(x[0], 10, {}, {.hop_length = 4, .padding = Pad::circular}); }},
      {"stft_normalized", [](In x) { return stft(x[0], 16, x[1], {.normalized = true}); }},
      {"stft_two_sided", [](In x) { return stft(x[0], 12, {}, {.hop_length = 5, .onesided = false}); }},
      {"stft_odd", [](In x) { return stft(x[0], 15, x[1], {.hop_length = 4}); }},
      {"istft", [](In x) { return istft(x[0], 16, x[1]); }},
      {"istft_length", [](In x) { return istft(x[0], 16, x[1], {.length = 30}); }},
      {"istft_longer", [](In x) { return istft(x[0], 16, x[1], {.length = 39}); }},
      {"istft_shorter", [](In x) { return istft(x[0], 16, x[1], {.hop_length = 4, .length = 21}); }},
      {"istft_normalized", [](In x) { return istft(x[0], 16, x[1], {.normalized = true}); }},
      {"istft_not_centred", [](In x) { return istft(x[0], 16, x[1], {.hop_length = 5, .center = false}); }},
      {"istft_short_window", [](In x) { return istft(x[0], 16, x[1], {.hop_length = 3, .win_length = 9}); }},
      {"istft_two_sided", [](In x) { return istft(x[0], 12, x[1], {.hop_length = 3, .onesided = false}); }},
      {"istft_odd", [](In x) { return istft(x[0], 15, x[1], {.hop_length = 4}); }},
  };
}

Functions squared(Functions all) {
  for (auto& [name, f] : all) f = [g = f](In x) { return square(g(x)); };
  return all;
}

const Functions& functions() {
  static const Functions all = [] {
    Functions f = squared(transforms());
    f.merge(squared(spectrograms()));
    return f;
  }();
  return all;
}

const bool registered = golden::add_cases("signal.safetensors", functions());

using Window = Tensor (*)(std::int64_t, const WindowOptions&);
const std::map<std::string, Window> kWindows = {
    {"hann", hann_window},
    {"hamming", [](std::int64_t n, const WindowOptions& o) { return hamming_window(n, o); }},
    {"blackman", blackman_window},
    {"bartlett", bartlett_window},
    {"kaiser", [](std::int64_t n, const WindowOptions& o) { return kaiser_window(n, o); }}};

}  // namespace

BOOST_AUTO_TEST_SUITE(signal)

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  std::set<std::string> cases = golden::cases_of("signal.safetensors");
  BOOST_TEST(cases.erase("constant") == 1U);
  for (const std::string& name : cases) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(cases.size() == functions().size());
}

BOOST_AUTO_TEST_CASE(windows_are_those_of_torch) {
  const io::TensorFile file = support::fixture("signal.safetensors");
  for (const auto& [name, f] : kWindows)
    for (const std::int64_t n : {1, 2, 7, 16}) {
      const std::string of = "constant/" + name + "_" + std::to_string(n);
      BOOST_TEST(within(f(n, {.dtype = Dtype::f64}), file.tensor(of), 1e-15), of);
      BOOST_TEST(within(f(n, {.periodic = false, .dtype = Dtype::f64}), file.tensor(of + "_symmetric"), 1e-15), of);
    }
  BOOST_TEST(within(kaiser_window(8, {.dtype = Dtype::f64}, 5.5), file.tensor("constant/kaiser_8_beta"), 1e-15));
  BOOST_TEST(
      within(hamming_window(8, {.dtype = Dtype::f64}, 0.6, 0.3), file.tensor("constant/hamming_8_alpha"), 1e-15));
  BOOST_TEST(hann_window(0).numel() == 0);
  BOOST_TEST((hann_window(3).dtype() == Dtype::f32));
}

BOOST_AUTO_TEST_CASE(frequencies_are_those_of_torch) {
  const io::TensorFile file = support::fixture("signal.safetensors");
  BOOST_TEST(within(fftfreq(8, 0.1, Dtype::f64), file.tensor("constant/fftfreq_even"), 1e-15));
  BOOST_TEST(within(fftfreq(9, 1, Dtype::f64), file.tensor("constant/fftfreq_odd"), 1e-15));
  BOOST_TEST(within(rfftfreq(8, 0.1, Dtype::f64), file.tensor("constant/rfftfreq_even"), 1e-15));
  BOOST_TEST(within(rfftfreq(9, 3, Dtype::f64), file.tensor("constant/rfftfreq_odd"), 1e-15));
}

BOOST_AUTO_TEST_CASE(mel_bands_and_cosines) {
  const io::TensorFile file = support::fixture("signal.safetensors");
  const MelOptions slaney{20, 3800, MelScale::slaney, true, Dtype::f64};
  BOOST_TEST(within(mel_filter_bank(33, 8, 16000, {.dtype = Dtype::f64}), file.tensor("constant/mel_htk"), 1e-11));
  BOOST_TEST(within(mel_filter_bank(21, 6, 8000, slaney), file.tensor("constant/mel_slaney"), 1e-11));
  BOOST_TEST(within(cosine_basis(8, 5, true, Dtype::f64), file.tensor("constant/cosines_8_5"), 1e-15));
  BOOST_TEST(within(cosine_basis(7, 7, false, Dtype::f64), file.tensor("constant/cosines_7_7"), 2e-15));
  BOOST_TEST((mel_filter_bank(3, 2, 8).dtype() == Dtype::f32));
}

BOOST_AUTO_TEST_CASE(every_length_is_right) {
  // A sum of rotations with a few frequencies has its transform in closed form: n / 2 at each.
  for (std::int64_t n = 3; n <= 600; n = n < 130 ? n + 1 : n * 5 / 4) {
    const std::int64_t k = n / 3;
    const Tensor x = Tensor::build<double>({n}, [&](std::span<double> v) {
      for (std::int64_t j = 0; j < n; ++j)
        v[static_cast<std::size_t>(j)] =
            std::cos(2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n) + 0.3);
    });
    const double half = static_cast<double>(n) / 2;
    const Tensor wanted = Tensor::build<double>({n / 2 + 1, 2}, [&](std::span<double> v) {
      std::fill(v.begin(), v.end(), 0);
      v[static_cast<std::size_t>(2 * k)] = half * std::cos(0.3);
      v[static_cast<std::size_t>(2 * k + 1)] = half * std::sin(0.3);
    });
    const Tensor y = rfft(x);
    BOOST_TEST(within(y, wanted, 2e-15), n);
    BOOST_TEST(within(rfft(cast(x, Dtype::f32)), wanted, 1e-6), n);
    BOOST_TEST(within(irfft(y, {.n = n}), x, 2e-15), n);
    const Tensor z = stack({x, zeros_like(x)}, -1);
    BOOST_TEST(within(slice(fft(z), 0, 0, n / 2 + 1), wanted, 2e-15), n);
    BOOST_TEST(within(ifft(fft(z)), z, 2e-15), n);
    BOOST_TEST(within(ifft(fft(cast(z, Dtype::f32))), z, 1e-6), n);
  }
}

BOOST_AUTO_TEST_CASE(a_row_is_the_same_alone_and_on_any_number_of_threads) {
  for (const std::int64_t n : {16, 45, 74, 512}) {
    const Tensor x = uniform({200, n}, {.seed = 1}, -1, 1);
    const Tensor all = rfft(x), back = irfft(all, {.n = n});
    for (const std::int64_t row : {0, 7, 199}) {
      const Tensor one = slice(x, 0, row, row + 1);
      BOOST_TEST(support::identical(contiguous(slice(all, 0, row, row + 1)), rfft(one)), n);
    }
    set_threads(3);
    BOOST_TEST(support::identical(rfft(x), all), n);
    BOOST_TEST(support::identical(irfft(all, {.n = n}), back), n);
    set_threads(1);
  }
}

BOOST_AUTO_TEST_CASE(the_inverse_of_a_spectrogram_is_the_signal) {
  const Tensor x = uniform({2, 3, 400}, {.seed = 2}, -1, 1, Dtype::f64);
  for (const std::int64_t n : {16, 25, 64}) {
    const Tensor w = hann_window(n, {.dtype = Dtype::f64});
    const Tensor y = istft(stft(x, n, w, {.padding = StftPadding::constant}), n, w, {.length = 400});
    BOOST_TEST(within(y, x, 1e-13), n);
  }
}

BOOST_AUTO_TEST_CASE(more_plans_than_a_thread_keeps) {
  const Tensor x = uniform({40}, {.seed = 3}, -1, 1);
  std::vector<Tensor> first;
  for (std::int64_t n = 1; n <= 40; ++n) first.push_back(rfft(x, {.n = n}));
  for (std::int64_t n = 40; n >= 1; --n)
    BOOST_TEST(support::identical(rfft(x, {.n = n}), first[static_cast<std::size_t>(n - 1)]));
}

BOOST_AUTO_TEST_CASE(wrong_calls_are_refused) {
  const Tensor x = zeros({2, 30}), i = zeros({4}, Dtype::i64), w = ones({8});
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { rfft(i); }, "rfft: dtype i64 is not supported; cast it to a float first"},
      {[&] { rfft(full({}, 1)); }, "rfft: the signal needs an axis: []"},
      {[&] {
         rfft(zeros({3, 0}));
       },
       "rfft: there are no points to transform: [3, 0]; give n"},
      {[&] { rfft(x, {.n = -1}); }, "rfft: the number of points must be positive, got -1"},
      {[&] { rfft(x, {.axis = 2}); }, "rfft: axis 2 is out of range for rank 2"},
      {[&] { irfft(x); },
       "irfft: the last axis must hold real and imaginary parts, got [2, 30]; stack them along a last axis of extent "
       "2"},
      {[&] {
         irfft(zeros({1, 2}));
       },
       "irfft: there are no points to transform: [1, 2]; give n"},
      {[&] {
         irfft(zeros({4, 2}), {.axis = 1});
       },
       "irfft: axis 1 is out of range for rank 1"},
      {[&] { fft(x); },
       "fft: the last axis must hold real and imaginary parts, got [2, 30]; stack them along a last axis of extent 2"},
      {[&] { ifft(zeros({2}, Dtype::i32)); }, "ifft: dtype i32 is not supported; cast it to a float first"},
      {[&] { fftfreq(0); }, "fftfreq: the number of points must be positive, got 0"},
      {[&] { rfftfreq(4, 0); }, "rfftfreq: the spacing must be finite and not 0, got 0.0"},
      {[&] { fftfreq(4, 1, Dtype::i64); }, "fftfreq: i64 is no float"},
      {[&] { fftshift(x, {3}); }, "fftshift: axis 3 is out of range for rank 2"},
      {[&] { frame(x, 31, 1); }, "frame: no frame of 31 fits: [2, 30]"},
      {[&] { frame(x, 0, 1); }, "frame: the size must be positive, got 0"},
      {[&] { frame(i, 2, 1); }, "frame: dtype i64 is not supported; cast it to a float first"},
      {[&] { overlap_add(x, 0); }, "overlap_add: the hop must be positive, got 0"},
      {[&] { overlap_add(w, 1); }, "overlap_add: there are no frames [..., T, size]: [8]"},
      {[&] { hann_window(-1); }, "hann_window: the number of elements must not be negative, got -1"},
      {[&] { bartlett_window(4, {.dtype = Dtype::boolean}); }, "bartlett_window: bool is no float"},
      {[&] { kaiser_window(4, {}, 800); }, "kaiser_window: beta must lie in -700..700, got 800.0"},
      {[&] { mel_filter_bank(0, 8, 16000); },
       "mel_filter_bank: the numbers of frequencies and mels must be positive, got 0 and 8"},
      {[&] { mel_filter_bank(9, 8, -1); }, "mel_filter_bank: the sample rate must be positive, got -1.0"},
      {[&] { mel_filter_bank(9, 8, 100, {.lowest = 60}); },
       "mel_filter_bank: the lowest frequency must lie below the highest: 60.0 and 50.0"},
      {[&] { mel_filter_bank(9, 8, 100, {.dtype = Dtype::i32}); }, "mel_filter_bank: i32 is no float"},
      {[&] { cosine_basis(4, 5); }, "cosine_basis: the number of vectors must lie in 1..4, got 5"},
      {[&] { cosine_basis(4, 2, true, Dtype::i64); }, "cosine_basis: i64 is no float"},
      {[&] { stft(x, 0); }, "stft: n_fft must be positive, got 0"},
      {[&] { stft(x, 3); }, "stft: hop_length must be positive, got 0"},
      {[&] { stft(x, 8, {}, {.hop_length = -2}); }, "stft: hop_length must be positive, got -2"},
      {[&] { stft(x, 8, {}, {.win_length = 9}); }, "stft: win_length must lie in 1..8, got 9"},
      {[&] { stft(x, 8, ones({9})); }, "stft: the window must be [1..8], got [9]"},
      {[&] { stft(x, 8, w, {.win_length = 7}); }, "stft: the window must be [7], got [8]"},
      {[&] { stft(x, 8, cast(w, Dtype::f64)); }, "stft: the window is f64[8] for f32; cast one of them"},
      {[&] { stft(i, 2); }, "stft: hop_length must be positive, got 0"},
      {[&] { stft(i, 4); }, "stft: dtype i64 is not supported; cast it to a float first"},
      {[&] { stft(zeros({4}), 8); },
       "stft: a signal of 4 samples is too short to be padded with 4: [4]; pad it with zeros"},
      {[&] { stft(x, 40, {}, {.center = false}); }, "stft: no frame of 40 fits: [2, 30]"},
      {[&] {
         istft(zeros({5, 3, 2}), 10);
       },
       "istft: the spectrogram must be [..., 6, frames, 2], got [5, 3, 2]"},
      {[&] {
         istft(zeros({5, 1, 2}), 8);
       },
       "istft: one frame holds no sample between its padding: [5, 1, 2]; give length"},
      {[&] {
         istft(zeros({5, 3, 2}), 8, w, {.length = -4});
       },
       "istft: length must not be negative, got -4"},
      {[&] {
         istft(zeros({5, 3, 2}), 8, hann_window(8), {.center = false});
       },
       "istft: the windows leave out a sample: their sum of squares 0 lies outside 1e-11..inf"},
  };
  for (const auto& [call, message] : calls)
    BOOST_CHECK_EXCEPTION(call(), Error, [expected = message](const Error& e) {
      BOOST_TEST(e.what() == expected);
      return true;
    });
}

BOOST_AUTO_TEST_SUITE_END()
