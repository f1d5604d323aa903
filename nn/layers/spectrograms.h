#pragma once
/// Short-time Fourier transforms and their inverses as layers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/signal.h"

namespace ferrite::nn {

/// The window that frames are multiplied by: those of tensor/signal.h, periodic, with their defaults; ones: no window.
enum class SpectralWindow : std::uint8_t { hann, hamming, blackman, bartlett, kaiser, ones };
/// The values that Stft gives for each frequency: real and imaginary part, absolute value, or squared absolute value.
enum class Spectrum : std::uint8_t { complex, magnitude, power };

/// Options of Stft: sizes of frames, window and values of spectra.
struct StftLayerOptions {
  std::int64_t n_fft = 0;       ///< number of samples of a frame
  std::int64_t hop_length = 0;  ///< samples from frame to frame; 0: n_fft / 4
  std::int64_t win_length = 0;  ///< samples in the middle of a frame that the window covers; 0: n_fft
  SpectralWindow window = SpectralWindow::hann;
  Spectrum spectrum = Spectrum::complex;
  bool center = true;  ///< frame t is centred at sample t hop; false: it begins there, which streams
  StftPadding padding = StftPadding::reflect;  ///< with center: the padding before and after the signal
  bool normalized = false;                     ///< multiplies spectra by 1 / sqrt(n_fft)
  std::int64_t channels = 1;                   ///< number of channels, transformed one by one; the builder infers it
};

/// Computes the spectra of a signal, frame by frame: torch.stft of real signals with the window as a buffer, as
/// torchaudio.transforms.Spectrogram. x [B, L, C] -> [B, T, N], one step for each frame: for each channel the
/// frequencies 0..n_fft / 2 in order, for each frequency its real and imaginary part (N = C (n_fft / 2 + 1) 2), or one
/// number (N = C (n_fft / 2 + 1)). T = 1 + L / hop, or without `center` 1 + (L - n_fft) / hop, both rounded down. f32
/// or f64. The buffer `window` is [win_length]. The gradient of a magnitude is 0 where the magnitude is 0.
///
/// A stream takes samples and gives each frame with its last sample: the first one after n_fft samples, then one every
/// hop_length (`Stream::feed`). It holds the last n_fft - 1 samples. It needs `center` to be false, since centred
/// frames see n_fft / 2 later samples. `context.lengths` are those of the signals: samples beyond a row's length count
/// as padding. Throws ValueError for lengths unless the padding is zeros, and for a reset mask.
///
/// Throws ShapeError for another rank, another number of channels, and a signal too short for its padding or one frame;
/// DtypeError unless x has the dtype of the window.
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

  Buffer taper;  ///< the window, named `window` in files
};

/// Options of InverseStft: sizes of frames and window. All mean what they mean in StftLayerOptions, and have the values
/// that the Stft had whose spectra are inverted.
struct InverseStftOptions {
  std::int64_t n_fft = 0;
  std::int64_t hop_length = 0;  ///< samples from frame to frame; 0: n_fft / 4
  std::int64_t win_length = 0;
  SpectralWindow window = SpectralWindow::hann;
  bool center = true;
  bool normalized = false;
  std::int64_t channels = 1;
};

/// Computes the signal whose spectra are nearest to given ones, as torch.istft: frames are transformed back, multiplied
/// by the window, added up where they overlap, and divided by the sum of the squared windows. x
/// [B, T, C (n_fft / 2 + 1) 2] as `Stft` gives them -> [B, T', hop C]: each step is a block of `hop` samples of C
/// channels, so that reshape(y, {B, -1, C}) is the signal. f32 or f64.
///
/// With `center` T' = T - 1: samples 0..(T - 1) hop - 1, as torch.istft gives. Without it, the samples that the full
/// number of frames cover: with n = n_fft / hop, rounded up, T' = T - n + 1 blocks, and block u holds the samples from
/// (n - 1 + u) hop on, counted from the first one of frame 0. (torch.istft adds the ends, which fewer frames cover.)
///
/// Without `center` a stream takes frames and gives a block with each from the n-th on; it holds the last n - 1 frames.
/// `context.lengths` are then numbers of frames. Throws ValueError for lengths with `center`, for a reset mask and a
/// carry.
///
/// Throws ShapeError for another rank, another number of values in a frame, and too few frames for a block; DtypeError
/// unless x has the dtype of the window; ValueError if the sum of the squared windows is below 1e-11 at a sample, which
/// the windows then leave out.
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

  Buffer taper;  ///< the window, named `window` in files
};

extern template class LayerOf<Stft, StftLayerOptions, Windowed>;
extern template class LayerOf<InverseStft, InverseStftOptions, Windowed>;

}  // namespace ferrite::nn
