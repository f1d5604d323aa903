#pragma once
/// Short-time Fourier transforms and their inverses as layers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/signal.h"

namespace ferrite::nn {

/// What frames are multiplied by: the windows of tensor/signal.h, periodic, with their defaults; ones: nothing.
enum class SpectralWindow : std::uint8_t { hann, hamming, blackman, bartlett, kaiser, ones };
/// What is given of each frequency: real and imaginary part, its absolute value, or the square of that.
enum class Spectrum : std::uint8_t { complex, magnitude, power };

struct StftLayerOptions {
  std::int64_t n_fft = 0;       ///< samples of a frame
  std::int64_t hop_length = 0;  ///< samples from frame to frame; 0: n_fft / 4
  std::int64_t win_length = 0;  ///< samples of a frame that the window covers, in its middle; 0: n_fft
  SpectralWindow window = SpectralWindow::hann;
  Spectrum spectrum = Spectrum::complex;
  bool center = true;  ///< frame t is centred at sample t hop; false: it begins there, which streams
  StftPadding padding = StftPadding::reflect;  ///< with center: what stands before and behind the signal
  bool normalized = false;                     ///< multiplied by 1 / sqrt(n_fft)
  std::int64_t channels = 1;                   ///< of the signal, transformed each by itself; the builder infers it
};

/// Spectra of a signal, frame by frame: torch.stft of real signals with the window as a buffer, as
/// torchaudio.transforms.Spectrogram has it. x [B, L, C] -> [B, T, N], a step for each frame: of each channel the
/// frequencies 0..n_fft / 2 one after the other, of each its real and imaginary part (N = C (n_fft / 2 + 1) 2), or one
/// number (N = C (n_fft / 2 + 1)). T = 1 + L / hop, without `center` 1 + (L - n_fft) / hop, both rounded down. f32 or
/// f64. The buffer `window` is [win_length]. The gradient of a magnitude is 0 where it is 0.
///
/// A stream takes samples and gives a frame with the last sample of each: the first one after n_fft samples, then one
/// every hop_length (`Stream::feed`). It holds the last n_fft - 1 samples. Only without `center`, which sees n_fft / 2
/// later ones. `context.lengths` are those of signals: those beyond a row's length are as padding, ValueError where
/// that is not of zeros, and for a reset mask.
///
/// Throws ShapeError for another rank, another number of channels, and a signal too short for its padding or one frame;
/// DtypeError for another dtype than that of the window.
class Stft final : public LayerOf<Stft, StftLayerOptions, Windowed> {
 public:
  static constexpr auto name = "stft";
  /// Throws ValueError for n_fft, hop_length or channels below 1, and a win_length outside 1..n_fft.
  explicit Stft(const StftLayerOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return !options().center; }
  bool reads_lengths() const override { return true; }
  StepInput step_input() const override { return {options().channels, taper.dtype()}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Buffer taper;  ///< the window, `window` in files
};

struct InverseStftOptions {
  std::int64_t n_fft = 0;
  std::int64_t hop_length = 0;  ///< as in StftLayerOptions, and so are the others
  std::int64_t win_length = 0;
  SpectralWindow window = SpectralWindow::hann;
  bool center = true;
  bool normalized = false;
  std::int64_t channels = 1;
};

/// The signal whose spectra are nearest to given ones, torch.istft: frames are transformed back, multiplied by the
/// window and added up where they overlap, and divided by the sum of the squared windows. x [B, T, C (n_fft / 2 + 1) 2]
/// as `Stft` gives them -> [B, T', hop C]: each step is a block of `hop` samples of C channels, so that reshape(y, {B,
/// -1, C}) is the signal. f32 or f64.
///
/// With `center` T' = T - 1: samples 0..(T - 1) hop - 1, as torch.istft gives. Without it the samples under as many
/// frames as any sample has: with n = n_fft / hop, rounded up, T' = T - n + 1 blocks, and block u holds the samples
/// from (n - 1 + u) hop on, counted from the first one of frame 0. (torch.istft adds the ends, which fewer frames
/// cover.)
///
/// Without `center` a stream takes frames and gives a block with each from the n-th on; it holds the last n - 1 frames.
/// `context.lengths` are then numbers of frames. ValueError for lengths with `center`, for a reset mask and a carry.
///
/// Throws ShapeError for another rank, another number of values in a frame, and too few frames for a block, DtypeError
/// for another dtype than that of the window, ValueError where the sum of the squared windows is below 1e-11: they
/// leave out a sample.
class InverseStft final : public LayerOf<InverseStft, InverseStftOptions, Windowed> {
 public:
  static constexpr auto name = "inverse_stft";
  /// Throws ValueError as `Stft`, and for a hop_length above n_fft.
  explicit InverseStft(const InverseStftOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return !options().center; }
  bool reads_lengths() const override { return true; }
  StepInput step_input() const override;
  std::optional<StepWindow> window() const override;
  Pace pace() const override;
  Tensor over(const Tensor& x) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Buffer taper;  ///< the window, `window` in files
};

extern template class LayerOf<Stft, StftLayerOptions, Windowed>;
extern template class LayerOf<InverseStft, InverseStftOptions, Windowed>;

}  // namespace ferrite::nn
