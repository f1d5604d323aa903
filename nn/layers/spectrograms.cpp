/// Short-time Fourier transforms and their inverses, with their steps for streams.
#include "ferrite/nn/layers/spectrograms.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/kernel/fft_plan.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
namespace {

/// Returns the options of either layer with all defaults filled in.
template <class Options>
Options with_lengths(Options o) {
  if (o.hop_length == 0) o.hop_length = o.n_fft / 4;
  if (o.win_length == 0) o.win_length = o.n_fft;
  return o;
}
inline std::int64_t frequencies_of(std::int64_t n_fft) { return n_fft / 2 + 1; }

/// Returns the factor of a transform, or that of its inverse.
inline double forward_scale(std::int64_t n_fft, bool normalized) {
  return normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1;
}
inline double backward_scale(std::int64_t n_fft, bool normalized) {
  return normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1 / static_cast<double>(n_fft);
}

/// Returns the window in the middle of a frame [n_fft], with zeros around it.
inline Tensor whole_window(const Tensor& taper, std::int64_t n_fft) {
  const std::int64_t n = taper.shape()[0], left = (n_fft - n) / 2;
  return n == n_fft ? taper : pad(taper, {left}, {n_fft - n - left});
}

/// Returns what a layer gives of spectra [B, C, ..., F, 2], parts last: [B, C, ..., F, 2] or [B, C, ..., F, 1].
inline Tensor given_of(const Tensor& spectra, Spectrum spectrum) {
  if (spectrum == Spectrum::complex) return spectra;
  const Tensor re = select(spectra, -1, 0), im = select(spectra, -1, 1);
  return unsqueeze(spectrum == Spectrum::magnitude ? hypot(re, im) : square(re) + square(im), -1);
}

}  // namespace

}  // namespace ferrite::nn::detail

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

/// The options of both layers as their summaries print them.
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

/// Returns how many frames cover a sample, except near the ends.
std::int64_t frames_over(std::int64_t n_fft, std::int64_t hop) { return (n_fft + hop - 1) / hop; }

/// Returns the blocks of `hop` samples that the full number n of frames covers, [B, T - n + 1, hop C], from frames
/// [B, C, T, n_fft] in time that are not yet multiplied by the window.
Tensor covered_blocks(const Tensor& frames, const Tensor& taper, std::int64_t hop) {
  const std::int64_t B = frames.shape()[0], C = frames.shape()[1], T = frames.shape()[2], n_fft = frames.shape()[3];
  const std::int64_t over = frames_over(n_fft, hop), blocks = T - over + 1;
  const Tensor w = detail::whole_window(taper, n_fft);
  const Tensor sum = slice(overlap_add(frames * w, hop), -1, (over - 1) * hop, T * hop);
  const Tensor squares = slice(overlap_add(expand(square(w), {over, n_fft}), hop), -1, (over - 1) * hop, over * hop);
  const Tensor weight = checked(squares, 1e-11, std::numeric_limits<double>::infinity(),
                                "inverse_stft: the windows leave out a sample: their sum of squares");
  const Tensor y = reshape(sum, {B, C, blocks, hop}) / weight;
  return reshape(permute(y, {0, 2, 3, 1}), {B, blocks, hop * C});
}

}  // namespace

// ---- forward -------------------------------------------------------------------------------------------

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

// ---- inverse -------------------------------------------------------------------------------------------

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
  (void)detail::within_lengths(*this, window(), x, context, true, 0);  // throws for reset masks
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
  return covered_blocks(irfft(permute(spectra, {0, 2, 1, 3, 4}), how), taper.value(), o.hop_length);
}

std::optional<StepWindow> InverseStft::window() const {
  if (options().center) return {};
  return StepWindow{.taps = frames_over(options().n_fft, options().hop_length)};
}

Pace InverseStft::pace() const { return options().center ? Pace{.delay = 1} : Windowed::pace(); }

Tensor InverseStft::over(const Tensor& x) const { return select(forward(x, {}), 1, 0); }

template class LayerOf<Stft, StftLayerOptions, Windowed>;
template class LayerOf<InverseStft, InverseStftOptions, Windowed>;

// Steps of short-time Fourier transforms for streams. The transforms have their own plans, since those of a thread are
// made at its first request; the computations around them are programs.

namespace {

using detail::WindowFunction;
using ferrite::detail::FftPlan;

/// A window of samples [B, n_fft, C] -> [B, N]: multiplied, transformed, and given as parts or absolute values.
template <class T>
class SpectrumOfWindow final : public WindowFunction {
 public:
  SpectrumOfWindow(const Stft& layer, const StepRows& in)
      : n_fft_(layer.options().n_fft),
        rows_(in.batch * in.width),
        scale_(detail::forward_scale(n_fft_, layer.options().normalized)),
        plan_(ferrite::detail::new_fft_plan<T>(n_fft_, true)) {
    const std::int64_t B = in.batch, F = detail::frequencies_of(n_fft_);
    const Buffer taper = layer.taper;
    const Spectrum spectrum = layer.options().spectrum;
    windowed_ = detail::window_program(layer.kind(), {{B, n_fft_, in.width}, in.dtype}, [&](const Tensor& x) {
      return flatten(transpose(x) * detail::whole_window(taper.value(), n_fft_), 1);
    });
    given_ = detail::window_program(layer.kind(), {{B, in.width, F, 2}, in.dtype}, [&](const Tensor& spectra) {
      return flatten(detail::given_of(spectra, spectrum), 1);
    });
  }
  SpectrumOfWindow(const SpectrumOfWindow& o)
      : WindowFunction(o),
        n_fft_(o.n_fft_),
        rows_(o.rows_),
        scale_(o.scale_),
        plan_(ferrite::detail::new_fft_plan<T>(n_fft_, true)),
        windowed_(o.windowed_->clone()),
        given_(o.given_->clone()) {}

  std::byte* x() override { return windowed_->x(); }
  const std::byte* y() const override { return given_->y(); }
  StepRows result() const override { return given_->result(); }
  void run() override {
    windowed_->run();
    const auto* from = reinterpret_cast<const T*>(windowed_->y());
    auto* to = reinterpret_cast<T*>(given_->x());
    const std::int64_t parts = 2 * detail::frequencies_of(n_fft_);
    for (std::int64_t r = 0; r < rows_; ++r)
      ferrite::detail::fft_in_use.of<T>().rfft(*plan_, from + r * n_fft_, to + r * parts, {scale_, 1});
    given_->run();
  }
  void refresh() override { windowed_->refresh(); }
  std::unique_ptr<WindowFunction> clone() const override { return std::make_unique<SpectrumOfWindow>(*this); }

 private:
  std::int64_t n_fft_, rows_;
  double scale_;
  std::shared_ptr<const FftPlan<T>> plan_;
  std::unique_ptr<WindowFunction> windowed_, given_;
};

/// Transforms a frame of frequencies [B, C F 2] to time [B, C n_fft], once for all windows that contain it.
template <class T>
class FrameInTime final : public Step {
 public:
  FrameInTime(const InverseStftOptions& o, std::int64_t batch)
      : batch_(batch), o_(o), plan_(ferrite::detail::new_fft_plan<T>(o.n_fft, true)) {}
  FrameInTime(const FrameInTime& o)
      : Step(o), batch_(o.batch_), o_(o.o_), plan_(ferrite::detail::new_fft_plan<T>(o_.n_fft, true)) {}

  StepRows result() const override { return {batch_, o_.channels * o_.n_fft, dtype_of<T>}; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override {
    const auto* from = static_cast<const T*>(x[0]);
    auto* to = static_cast<T*>(y);
    const std::int64_t parts = 2 * detail::frequencies_of(o_.n_fft);
    for (std::int64_t r = 0; r < batch_ * o_.channels; ++r)
      ferrite::detail::fft_in_use.of<T>().irfft(*plan_, from + r * parts, to + r * o_.n_fft,
                                                {detail::backward_scale(o_.n_fft, o_.normalized), 2});
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<FrameInTime>(*this); }

 private:
  std::int64_t batch_;
  InverseStftOptions o_;
  std::shared_ptr<const FftPlan<T>> plan_;
};

template <template <class> class C, class Base, class... A>
std::unique_ptr<Base> of_dtype(Dtype dtype, const A&... a) {
  if (dtype == Dtype::f64) return std::make_unique<C<double>>(a...);
  return std::make_unique<C<float>>(a...);
}

}  // namespace

std::size_t Stft::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const StepRows in = graph.rows(x);
  auto function = of_dtype<SpectrumOfWindow, WindowFunction>(in.dtype, *this, in);
  return graph.add(*this, detail::window_step(*window(), in, std::move(function)), {x});
}

std::size_t InverseStft::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const InverseStftOptions& o = options();
  const StepRows in = graph.rows(x);
  const std::size_t in_time = graph.add(*this, of_dtype<FrameInTime, Step>(in.dtype, o, in.batch), {x});
  const StepRows frames = graph.rows(in_time);
  const StepWindow w = *window();
  const Buffer window_buffer = taper;
  auto joined = detail::window_program(
      kind(), {{in.batch, w.taps, frames.width}, in.dtype}, [&](const Tensor& windows) {  // [B, n, C n_fft]
        const Tensor by_channel = transpose(reshape(windows, {in.batch, w.taps, o.channels, o.n_fft}), 1, 2);
        return select(covered_blocks(by_channel, window_buffer.value(), o.hop_length), 1, 0);
      });
  return graph.add(*this, detail::window_step(w, frames, std::move(joined)), {in_time});
}

}  // namespace ferrite::nn
