// Removes the noise from a recording: DeepFilterNet 3, three ONNX models and the signal processing around them as one
// program over time, run as a stream of frames of 10 ms.
//
// Schröter, Rosenkranz, Escalante-B., Maier, "DeepFilterNet: Perceptually motivated real-time speech enhancement",
// Interspeech 2023: a mask for 32 bands of the whole spectrum, and complex filters over five frames for its lowest 96
// frequencies. scripts/example-data fetches the models.
#include <ferrite/exchange/onnx.h>
#include <ferrite/exchange/program_stream.h>
#include <ferrite/ferrite.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <numbers>

using namespace ferrite;

namespace {

constexpr std::int64_t kRate = 48000, kHop = 480, kBins = kHop + 1, kBands = 32, kFiltered = 96, kTaps = 5;
constexpr std::int64_t kAhead = 2;           // frames that the nets see beyond the one they filter
constexpr double kKept = 0.99;               // share of running means kept at each frame
constexpr std::int64_t kDelay = kAhead + 1;  // frames by which the sound is delayed: windows overlap by one

/// Returns a window whose square, and the square half a window later, add up to 1: [2 hops].
Tensor vorbis_window() {
  std::vector<float> w;
  for (std::int64_t i = 0; i < 2 * kHop; ++i) {
    const double s = std::sin(0.5 * std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(kHop));
    w.push_back(static_cast<float>(std::sin(0.5 * std::numbers::pi * s * s)));
  }
  return Tensor::from(std::span<const float>(w), {2 * kHop});
}

/// Returns the number of bins of each band: equally wide on the scale of auditory filters, and at least two.
std::vector<std::int64_t> band_widths() {
  const double top = 9.265 * std::log1p(0.5 * kRate / (24.7 * 9.265)), bin = 0.5 * kRate / kHop;
  std::vector<std::int64_t> widths;
  std::int64_t begun = 0, borrowed = 0;
  for (std::int64_t b = 1; b <= kBands; ++b) {
    const double end = 24.7 * 9.265 * std::expm1(static_cast<double>(b) * top / kBands / 9.265);
    const auto last = static_cast<std::int64_t>(std::lround(end / bin));
    const std::int64_t width = last - begun - borrowed;
    borrowed = std::max<std::int64_t>(2 - width, 0);
    widths.push_back(std::max<std::int64_t>(width, 2));
    begun = last;
  }
  std::int64_t others = 0;
  for (std::int64_t b = 0; b + 1 < kBands; ++b) others += widths[static_cast<std::size_t>(b)];
  widths.back() = kBins - others;
  return widths;
}

/// Returns [bins, bands], 1 where a bin is in a band.
Tensor band_matrix(const std::vector<std::int64_t>& widths) {
  std::vector<float> m(static_cast<std::size_t>(kBins * kBands));
  std::int64_t bin = 0;
  for (std::int64_t b = 0; b < kBands; ++b)
    for (std::int64_t i = 0; i < widths[static_cast<std::size_t>(b)]; ++i, ++bin)
      m[static_cast<std::size_t>(bin * kBands + b)] = 1;
  return Tensor::from<float>(m, {kBins, kBands});
}

/// Returns x [1, T, ...] delayed by some frames, with zeros in front.
Tensor delayed(const Tensor& x, std::int64_t frames) {
  Shape before = Shape::filled(x.rank(), 0), after = before;
  before[1] = frames;
  after[1] = -frames;
  return pad(x, before, after, 0);
}

/// Returns the running mean of x [1, T, N] up to and including each frame; it starts at `begin` to `end` along N.
Tensor running_mean(const Tensor& x, double begin, double end) {
  const std::int64_t n = x.shape()[2];
  const Tensor first = begin + cast(arange(n), Dtype::f32) * ((end - begin) / static_cast<double>(n - 1));
  const auto step = [](const Tensors& mean, const Tensors& now) -> ScanStep {
    const Tensor next = now[0] * (1 - kKept) + mean[0] * kKept;
    return {{next}, {next}};
  };
  return unsqueeze(scan(step, {first}, {squeeze(x, 0)}).y[0], 0);
}

/// The nets and the signal processing around them.
class Denoiser {
 public:
  explicit Denoiser(const std::string& folder)
      : encoder_(onnx::read(folder + "/enc.onnx", {.frozen = true})),
        mask_(onnx::read(folder + "/erb_dec.onnx", {.frozen = true})),
        filter_(onnx::read(folder + "/df_dec.onnx", {.frozen = true})) {}

  /// Computes x [1, T, 480], 480 samples a frame -> as many samples without noise, kDelay frames later.
  Tensor operator()(const Tensor& x) const {
    const Tensor spectrum = rfft(concat({delayed(x, 1), x}, 2) * window_) / (2.0 * kHop);  // [1, T, 481, 2]
    const Tensors e = encoder_.run({bands_of(spectrum), lowest_of(spectrum)});      // e0, e1, e2, e3, emb, c0, lsnr
    const Tensor gains = squeeze(mask_.run({e[4], e[3], e[2], e[1], e[0]})[0], 1);  // [1, T, 32]
    const Tensor masked = delayed(spectrum, kAhead) * unsqueeze(matmul(gains, transpose(bands_, 0, 1)), 3);
    const Tensor low = filtered(spectrum, filter_.run({e[4], e[5]})[0]);
    const Tensor sound = irfft(concat({low, slice(masked, 2, kFiltered, kBins)}, 2)) * (2.0 * kHop) * window_;
    return slice(sound, 2, 0, kHop) + delayed(slice(sound, 2, kHop, 2 * kHop), 1);
  }

 private:
  /// Returns decibels of the bands minus their running mean: [1, 1, T, 32].
  Tensor bands_of(const Tensor& spectrum) const {
    const Tensor power = matmul(sum(square(spectrum), {3}), bands_) / sum(bands_, {0});
    const Tensor level = 10 * log10(power + 1e-10);
    return unsqueeze((level - running_mean(level, -60, -90)) / 40, 1);
  }
  /// Returns the lowest bins divided by the root of their running mean size: [1, 2, T, 96].
  static Tensor lowest_of(const Tensor& spectrum) {
    const Tensor low = slice(spectrum, 2, 0, kFiltered);
    const Tensor size = sqrt(sum(square(low), {3}));
    return permute(low / unsqueeze(sqrt(running_mean(size, 1e-3, 1e-4)), 3), {0, 3, 1, 2});
  }
  /// Returns the sum of five frames, each times a complex number, of the lowest bins: [1, T, 96, 2].
  static Tensor filtered(const Tensor& spectrum, const Tensor& coefficients) {
    const Tensor low = slice(spectrum, 2, 0, kFiltered);
    Tensor re, im;
    for (std::int64_t k = 0; k < kTaps; ++k) {
      const Tensor x = delayed(low, kTaps - 1 - k);
      const Tensor xr = select(x, 3, 0), xi = select(x, 3, 1);
      const Tensor cr = select(coefficients, 3, 2 * k), ci = select(coefficients, 3, 2 * k + 1);
      re = k ? re + xr * cr - xi * ci : xr * cr - xi * ci;
      im = k ? im + xr * ci + xi * cr : xr * ci + xi * cr;
    }
    return stack({re, im}, 3);
  }

  onnx::Model encoder_, mask_, filter_;
  Tensor window_ = vorbis_window(), bands_ = band_matrix(band_widths());
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw ValueError("denoise FOLDER NOISY.wav CLEAN.wav, of 48 kHz; FOLDER has the models");
  const io::Audio audio = io::read_wav(argv[2]);
  if (audio.rate != kRate) throw ValueError("the recording must have 48000 samples a second");
  const std::vector<float> noisy = select(audio.samples, 0, 0).to_vector<float>();
  const Denoiser denoiser(argv[1]);
  exchange::ProgramStream stream([&](const Tensors& in) { return Tensors{denoiser(in[0])}; },
                                 {{.step = {{1, 1, kHop}}, .time_axis = 1}});
  std::vector<float> clean;
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t at = 0; clean.size() < noisy.size() + kDelay * kHop; at += kHop) {
    const auto frame = stream.input(0);
    std::ranges::fill(frame, 0.0F);
    const std::size_t begin = std::min(at, noisy.size()), count = std::min<std::size_t>(kHop, noisy.size() - begin);
    std::copy_n(noisy.begin() + static_cast<std::ptrdiff_t>(begin), count, frame.begin());
    stream.step();
    clean.insert(clean.end(), stream.output(0).begin(), stream.output(0).end());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  clean.erase(clean.begin(), clean.begin() + kDelay * kHop);
  clean.resize(noisy.size());
  io::write_wav(argv[3], {Tensor::from<float>(clean, {1, static_cast<std::int64_t>(clean.size())}), kRate});
  const double length = static_cast<double>(noisy.size()) / kRate;
  std::cout << length << " s of sound in " << took.count() << " s, " << length / took.count()
            << " times as fast as it plays\n";
} catch (const std::exception& e) {
  std::cerr << "denoise: " << e.what() << '\n';
  return 1;
}
