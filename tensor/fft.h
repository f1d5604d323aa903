#pragma once
/// Discrete Fourier transforms along an axis. A complex tensor is a real one whose last axis, of extent 2, holds real
/// and imaginary parts. Semantics are those of torch.fft (https://pytorch.org/docs/stable/fft.html); docs/signal.md has
/// an introduction.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The transform that is multiplied by 1 / n. `backward`: only the inverse one; `forward`: only the forward one;
/// `ortho`: neither, but both by 1 / sqrt(n).
enum class FftNorm : std::uint8_t { backward, ortho, forward };

/// Options of `rfft`, `irfft`, `fft` and `ifft`: length, axis and scale of the transform.
struct FftOptions {
  /// Points of the transform: the signal is cut or filled with zeros at its end. 0: the length of the signal; for irfft
  /// 2 (m - 1) with m frequencies, which is right for real signals of even length.
  std::int64_t n = 0;
  /// The axis of the signal. Negative axes count from the end, not counting the axis of real and imaginary parts.
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
};

/// Returns the frequencies X_k = sum over j of x_j e^(-2 pi i j k / n), k = 0..n / 2, of a real x: [..., n, ...] ->
/// [..., n / 2 + 1, ..., 2]. f32 or f64, computed in that precision; lengths with a prime factor above 31 in f64. Any n
/// > 0; the time grows as n log n. The error is below 1e-6 (f32) or 2e-15 (f64) of the largest |X_k| for n up to 4096.
/// The result does not depend on what else is in a batch. Throws DtypeError for other dtypes, ShapeError for an axis
/// that does not exist or has no elements, ValueError for a negative n.
Tensor rfft(const Tensor& x, const FftOptions& options = {});

/// Returns the real signal with the frequencies X_0..X_(n / 2) and their conjugates: [..., m, ..., 2] -> [..., n, ...].
/// The inverse of rfft if n is the length of the signal, which must be given when it is odd. Imaginary parts of X_0
/// and, for even n, of X_(n / 2) are ignored. Throws as rfft does, and ShapeError unless the last axis has extent 2.
Tensor irfft(const Tensor& x, const FftOptions& options = {});

/// Returns the frequencies X_k = sum over j of x_j e^(-2 pi i j k / n), k = 0..n - 1, of a complex x: [..., n, ..., 2]
/// -> [..., n, ..., 2]. Throws as irfft does.
Tensor fft(const Tensor& x, const FftOptions& options = {});

/// Returns x_j = 1 / n sum over k of X_k e^(2 pi i j k / n): the inverse of fft. Throws as irfft does.
Tensor ifft(const Tensor& x, const FftOptions& options = {});

/// Returns the frequencies of the results of fft [n], in cycles per unit, for samples `spacing` units apart: 0, 1, ...,
/// (n - 1) / 2, -(n / 2), ..., -1, divided by n spacing. Throws ValueError for n < 1 and for a spacing that is 0 or not
/// finite; DtypeError for a dtype that is not a float.
Tensor fftfreq(std::int64_t n, double spacing = 1, Dtype dtype = Dtype::f32);
/// Returns the frequencies of the results of rfft [n / 2 + 1]: 0, 1, ..., n / 2, divided by n spacing. Throws as
/// fftfreq does.
Tensor rfftfreq(std::int64_t n, double spacing = 1, Dtype dtype = Dtype::f32);

/// Orders the results of fft by ascending frequency: rotates each of the given axes by half its extent, so that
/// frequency 0 is in the middle. Empty: all axes, including that of real and imaginary parts, which is rarely what a
/// complex x needs. Any dtype. Throws ShapeError for axes that do not exist or are given twice.
Tensor fftshift(const Tensor& x, const Shape& axes = {});
/// Undoes fftshift, also for odd extents.
Tensor ifftshift(const Tensor& x, const Shape& axes = {});

}  // namespace ferrite
