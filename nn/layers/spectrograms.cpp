/// Short-time Fourier transforms as layers: the functions of tensor/signal.h on sequences of samples and of frames.
#include "ferrite/nn/layers/spectrograms.h"

#include <cmath>
#include <limits>

#include "ferrite/nn/detail/lengths.h"
#include "ferrite/nn/layers/detail/spectra.h"
#include "ferrite/tensor/fft.h"

namespace ferrite::nn {
namespace {

[[noreturn]] void refuse(std::string_view where, const std::string& what) {
  throw ValueError(std::string(where) + ": " + what);
}

template <class Options>
void check_options(std::string_view where, const Options& o) {
  const auto positive = [&](const char* what, std::int64_t n) {
    if (n < 1) refuse(where, std::string(what) + " must be positive, got " + std::to_string(n));
  };
  positive("n_fft", o.n_fft);
  positive("hop_length", o.hop_length == 0 ? o.n_fft / 4 : o.hop_length);
  positive("channels", o.channels);
  if (o.win_length < 0 || o.win_length > o.n_fft)
    refuse(where, "win_length must lie in 1.." + std::to_string(o.n_fft) + ", got " + std::to_string(o.win_length));
}

Tensor values_of(SpectralWindow window, std::int64_t n, Dtype dtype) {
  const WindowOptions options{.dtype = dtype};
  switch (window) {
    case SpectralWindow::hann: return hann_window(n, options);
    case SpectralWindow::hamming: return hamming_window(n, options);
    case SpectralWindow::blackman: return blackman_window(n, options);
    case SpectralWindow::bartlett: return bartlett_window(n, options);
    case SpectralWindow::kaiser: return kaiser_window(n, options);
    case SpectralWindow::ones: break;
  }
  return ones({n}, dtype);
}
Label word_for(SpectralWindow window) {
  switch (window) {
    case SpectralWindow::hann: return "hann";
    case SpectralWindow::hamming: return "hamming";
    case SpectralWindow::blackman: return "blackman";
    case SpectralWindow::bartlett: return "bartlett";
    case SpectralWindow::kaiser: return "kaiser";
    case SpectralWindow::ones: break;
  }
  return "ones";
}
Label word_for(Spectrum spectrum) {
  switch (spectrum) {
    case Spectrum::complex: return "complex";
    case Spectrum::magnitude: return "magnitude";
    case Spectrum::power: break;
  }
  return "power";
}
Label word_for(StftPadding padding) {
  switch (padding) {
    case StftPadding::reflect: return "reflect";
    case StftPadding::constant: return "constant";
    case StftPadding::replicate: return "replicate";
    case StftPadding::circular: break;
  }
  return "circular";
}

/// The options of both layers as their summaries give them.
struct SpectrumFields {
  std::int64_t n_fft = 0, hop_length = 0, win_length = 0;
  Label window = "hann", spectrum = "complex";
  bool center = true;
  Label padding = "reflect";
  bool normalized = false;
  std::int64_t channels = 1;
  static constexpr auto fields =
      attr_list(attr("n_fft", &SpectrumFields::n_fft), attr("hop_length", &SpectrumFields::hop_length),
                attr("win_length", &SpectrumFields::win_length), attr("window", &SpectrumFields::window),
                attr("spectrum", &SpectrumFields::spectrum), attr("center", &SpectrumFields::center),
                attr("padding", &SpectrumFields::padding), attr("normalized", &SpectrumFields::normalized),
                attr("channels", &SpectrumFields::channels));
};

/// Throws ShapeError unless x is [B, T, width], DtypeError for another dtype.
void check_input(std::string_view where, const Tensor& x, std::int64_t width, Dtype dtype) {
  if (x.rank() != 3 || x.shape()[2] != width)
    throw ShapeError(std::string(where) + ": expects [B, T, " + std::to_string(width) + "], got " + x.shape().str());
  if (x.dtype() != dtype)
    throw DtypeError(std::string(where) + ": the window is " + std::string(name_of(dtype)) + ", got " + x.spec().str() +
                     "; cast the input");
}

/// How many frames cover a sample, the ends apart.
std::int64_t frames_over(std::int64_t n_fft, std::int64_t hop) { return (n_fft + hop - 1) / hop; }

}  // namespace

// ---- there ---------------------------------------------------------------------------------------------

Stft::Stft(const StftLayerOptions& o, const Init& init)
    : LayerOf((check_options(name, o), detail::with_lengths(o)), init) {
  taper = buffer("window", values_of(o.window, options().win_length, init.dtype));
}

std::string Stft::summary() const {
  const StftLayerOptions& o = options();
  return detail::summary_of(
      name, {},
      Attrs(SpectrumFields{o.n_fft, o.hop_length, o.win_length, word_for(o.window), word_for(o.spectrum), o.center,
                           word_for(o.padding), o.normalized, o.channels}),
      Attrs(SpectrumFields{.win_length = o.n_fft}));
}

Tensor Stft::forward(const Tensor& given, const Context& context) const {
  const StftLayerOptions& o = options();
  check_input(name, given, o.channels, taper.dtype());
  const Tensor x = detail::within_lengths(*this, window(), given, context, o.padding == StftPadding::constant, 0);
  const Tensor spectra = stft(transpose(x), o.n_fft, taper.value(),
                              {.hop_length = o.hop_length,
                               .center = o.center,
                               .padding = o.padding,
                               .normalized = o.normalized});                         // [B, C, F, T, 2]
  const Tensor y = detail::given_of(permute(spectra, {0, 3, 1, 2, 4}), o.spectrum);  // [B, T, C, F, 1 or 2]
  return flatten(y, 2);
}

std::optional<StepWindow> Stft::window() const {
  const StftLayerOptions& o = options();
  const std::int64_t edge = o.center ? o.n_fft / 2 : 0;
  return StepWindow{.taps = o.n_fft, .stride = o.hop_length, .before = edge, .after = edge};
}

Tensor Stft::over(const Tensor& x) const {
  const StftLayerOptions& o = options();
  const FftOptions how{.norm = o.normalized ? FftNorm::ortho : FftNorm::backward};
  const Tensor spectra = rfft(transpose(x) * detail::whole_window(taper.value(), o.n_fft), how);  // [B, C, F, 2]
  return flatten(detail::given_of(spectra, o.spectrum), 1);
}

// ---- and back ------------------------------------------------------------------------------------------

InverseStft::InverseStft(const InverseStftOptions& o, const Init& init)
    : LayerOf((check_options(name, o), detail::with_lengths(o)), init) {
  if (options().hop_length > o.n_fft)
    refuse(name, "frames of " + std::to_string(o.n_fft) + " samples, " + std::to_string(options().hop_length) +
                     " apart, leave samples out; give a hop_length of at most n_fft");
  taper = buffer("window", values_of(o.window, options().win_length, init.dtype));
}

std::string InverseStft::summary() const {
  const InverseStftOptions& o = options();
  return detail::summary_of(name, {},
                            Attrs(SpectrumFields{.n_fft = o.n_fft,
                                                 .hop_length = o.hop_length,
                                                 .win_length = o.win_length,
                                                 .window = word_for(o.window),
                                                 .center = o.center,
                                                 .normalized = o.normalized,
                                                 .channels = o.channels}),
                            Attrs(SpectrumFields{.win_length = o.n_fft}));
}

StepInput InverseStft::step_input() const {
  return {options().channels * detail::frequencies_of(options().n_fft) * 2, taper.dtype()};
}

Tensor InverseStft::forward(const Tensor& x, const Context& context) const {
  const InverseStftOptions& o = options();
  check_input(name, x, step_input().width, taper.dtype());
  if (o.center && (context.lengths.defined() || context.reset_mask.defined()))
    refuse(name,
           "takes no lengths and reset masks with center, whose last samples are divided by the windows of the longest "
           "row; give center = false, or run sequences of one length together");
  if (o.center && context.carry)
    refuse(name,
           "with center every call is a whole signal, so that pieces cannot be carried on; give center = false to a "
           "stream");
  (void)detail::within_lengths(*this, window(), x, context, true, 0);  // refuses reset masks
  const std::int64_t B = x.shape()[0], T = x.shape()[1], C = o.channels, F = detail::frequencies_of(o.n_fft);
  const std::int64_t least = o.center ? 2 : window()->taps;
  if (T < least)
    throw ShapeError("inverse_stft: a block of samples takes " + std::to_string(least) + " frames, got " +
                     x.shape().str());
  const Tensor spectra = reshape(x, {B, T, C, F, 2});
  if (o.center) {
    const Tensor y = istft(permute(spectra, {0, 2, 3, 1, 4}), o.n_fft, taper.value(),
                           {.hop_length = o.hop_length, .normalized = o.normalized, .length = (T - 1) * o.hop_length});
    return reshape(transpose(y), {B, T - 1, o.hop_length * C});
  }
  const FftOptions how{.n = o.n_fft, .norm = o.normalized ? FftNorm::ortho : FftNorm::backward};
  return detail::covered_blocks(irfft(permute(spectra, {0, 2, 1, 3, 4}), how), taper.value(), o.hop_length);
}

std::optional<StepWindow> InverseStft::window() const {
  if (options().center) return {};
  return StepWindow{.taps = frames_over(options().n_fft, options().hop_length)};
}

Pace InverseStft::pace() const { return options().center ? Pace{.delay = 1} : Windowed::pace(); }

Tensor InverseStft::over(const Tensor& x) const { return select(forward(x, {}), 1, 0); }

Tensor detail::covered_blocks(const Tensor& frames, const Tensor& taper, std::int64_t hop) {
  const std::int64_t B = frames.shape()[0], C = frames.shape()[1], T = frames.shape()[2], n_fft = frames.shape()[3];
  const std::int64_t over = frames_over(n_fft, hop), blocks = T - over + 1;
  const Tensor w = whole_window(taper, n_fft);
  const Tensor sum = slice(overlap_add(frames * w, hop), -1, (over - 1) * hop, T * hop);
  const Tensor squares = slice(overlap_add(expand(square(w), {over, n_fft}), hop), -1, (over - 1) * hop, over * hop);
  const Tensor weight = checked(squares, 1e-11, std::numeric_limits<double>::infinity(),
                                "inverse_stft: the windows leave out a sample: their sum of squares");
  const Tensor y = reshape(sum, {B, C, blocks, hop}) / weight;
  return reshape(permute(y, {0, 2, 3, 1}), {B, blocks, hop * C});
}

template class LayerOf<Stft, StftLayerOptions, Windowed>;
template class LayerOf<InverseStft, InverseStftOptions, Windowed>;

}  // namespace ferrite::nn
