#pragma once
/// Frames of signals, windows and short-time Fourier transforms. Semantics are those of torch.stft, torch.istft and
/// torch's windows; docs/signal.md has an introduction.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

// ---- frames ----------------------------------------------------------------------------------------------

/// Cuts the last axis into overlapping frames of `size` elements that begin at 0, hop, 2 hop, ..., as long as they fit:
/// [..., L] -> [..., 1 + (L - size) / hop, size]. f32 or f64. Throws ShapeError where none fits, ValueError for a size
/// or hop below 1, DtypeError for other dtypes.
Tensor frame(const Tensor& x, std::int64_t size, std::int64_t hop);
/// Adds up overlapping frames, each `hop` elements after the one before: [..., T, size] -> [..., size + (T - 1) hop].
/// Earlier frames are added first. Throws as `frame` does.
Tensor overlap_add(const Tensor& frames, std::int64_t hop);

// ---- windows ---------------------------------------------------------------------------------------------

/// Options of `hann_window` and the other windows: whether they are periodic, and their dtype.
struct WindowOptions {
  /// Whether the window has period n, for spectra; false: it is symmetric, for filters. N is n or n - 1.
  bool periodic = true;
  Dtype dtype = Dtype::f32;
};
/// Returns the Hann window 1/2 - 1/2 cos(2 pi i / N) [n], where N is n for a periodic window and n - 1 for a symmetric
/// one; 1 for n = 1, as all windows. All windows throw ValueError for a negative n, DtypeError for a dtype that is not
/// a float.
Tensor hann_window(std::int64_t n, const WindowOptions& options = {});
/// Returns the Hamming window alpha - beta cos(2 pi i / N) [n], N as for `hann_window`.
Tensor hamming_window(std::int64_t n, const WindowOptions& options = {}, double alpha = 0.54, double beta = 0.46);
/// Returns the Blackman window 0.42 - 1/2 cos(2 pi i / N) + 0.08 cos(4 pi i / N) [n], N as for `hann_window`.
Tensor blackman_window(std::int64_t n, const WindowOptions& options = {});
/// Returns the Bartlett window, a triangle: 1 - |2 i / N - 1| [n], N as for `hann_window`.
Tensor bartlett_window(std::int64_t n, const WindowOptions& options = {});
/// Returns the Kaiser window I_0(beta sqrt(1 - (2 i / N - 1)^2)) / I_0(beta) [n], I_0 the modified Bessel function, N
/// as for `hann_window`. Throws ValueError for a beta beyond +-700.
Tensor kaiser_window(std::int64_t n, const WindowOptions& options = {}, double beta = 12);

// ---- spectrograms ----------------------------------------------------------------------------------------

/// What `stft` adds at both ends of a signal: its reflection without the end element (reflect), zeros (constant), its
/// end element repeated (replicate), or its other end (circular).
enum class StftPadding : std::uint8_t { reflect, constant, replicate, circular };

/// Options of `stft`: where the frames lie, their window, and the form of the results.
struct StftOptions {
  /// Number of samples from frame to frame. 0: n_fft / 4.
  std::int64_t hop_length = 0;
  /// Number of samples of a frame that the window covers, in its middle. 0: the length of the window, or n_fft without
  /// one.
  std::int64_t win_length = 0;
  /// Whether frame t is centred at sample t hop: the signal is padded with n_fft / 2 samples at both ends.
  bool center = true;
  StftPadding padding = StftPadding::reflect;
  /// Whether results are multiplied by 1 / sqrt(n_fft).
  bool normalized = false;
  /// Whether the frequencies are 0..n_fft / 2; false: all n_fft.
  bool onesided = true;
};

/// Returns the Fourier transforms of windowed, overlapping frames: x [..., L] -> [..., F, T, 2] with F = n_fft / 2 + 1
/// frequencies (n_fft unless `onesided`), T = 1 + L / hop frames (centred) or 1 + (L - n_fft) / hop, the last axis real
/// and imaginary parts. The window [win_length] has x's dtype; undefined: ones. f32 or f64; gradients reach signal and
/// window. Throws ValueError for lengths below 1 and a win_length beyond n_fft; ShapeError for a signal that is too
/// short for one frame or its padding, or a window of another shape; DtypeError for other or different dtypes.
Tensor stft(const Tensor& x, std::int64_t n_fft, const Tensor& window = {}, const StftOptions& options = {});

/// Options of `istft`: those of the stft that is inverted, and the length of the signal.
struct IstftOptions {
  std::int64_t hop_length = 0;  ///< as in StftOptions, like the next four
  std::int64_t win_length = 0;
  bool center = true;
  bool normalized = false;
  bool onesided = true;
  /// Length of the signal, which is cut or filled with zeros at its end. 0: the length that the frames give, with
  /// `center` (T - 1) hop.
  std::int64_t length = 0;
};

/// Returns the signal whose stft is nearest to a spectrogram in the sense of least squares (Griffin and Lim 1984): the
/// inverse of stft for the same window and lengths. [..., F, T, 2] -> [..., L]. Where windows overlap, w frames are
/// added up and divided by the sum of w^2. Throws as stft does, and ValueError where that sum is below 1e-11: the
/// windows leave a sample out. (Periodic Hann and Hamming windows with hop_length <= win_length / 2 do not, given
/// `center`.)
Tensor istft(const Tensor& spectrogram, std::int64_t n_fft, const Tensor& window = {},
             const IstftOptions& options = {});

}  // namespace ferrite
