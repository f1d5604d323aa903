#pragma once
/// What the layers of short-time Fourier transforms and their steps share: the operations around the transforms.
#include <cmath>

#include "ferrite/nn/layers/spectrograms.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

/// Both options with nothing left to a default.
template <class Options>
Options with_lengths(Options o) {
  if (o.hop_length == 0) o.hop_length = o.n_fft / 4;
  if (o.win_length == 0) o.win_length = o.n_fft;
  return o;
}
inline std::int64_t frequencies_of(std::int64_t n_fft) { return n_fft / 2 + 1; }
/// What a transform is multiplied by, there and back.
inline double forward_scale(std::int64_t n_fft, bool normalized) {
  return normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1;
}
inline double backward_scale(std::int64_t n_fft, bool normalized) {
  return normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1 / static_cast<double>(n_fft);
}

/// The window in the middle of a frame [n_fft], zeros around it.
inline Tensor whole_window(const Tensor& taper, std::int64_t n_fft) {
  const std::int64_t n = taper.shape()[0], left = (n_fft - n) / 2;
  return n == n_fft ? taper : pad(taper, {left}, {n_fft - n - left});
}

/// Spectra [B, C, ..., F, 2] as what a layer gives of them, the parts last: [B, C, ..., F, 2] or [B, C, ..., F, 1].
inline Tensor given_of(const Tensor& spectra, Spectrum spectrum) {
  if (spectrum == Spectrum::complex) return spectra;
  const Tensor re = select(spectra, -1, 0), im = select(spectra, -1, 1);
  return unsqueeze(spectrum == Spectrum::magnitude ? hypot(re, im) : square(re) + square(im), -1);
}

/// Blocks of `hop` samples that all their frames cover, of frames [B, C, T, n_fft] in time, which the window has not
/// met yet: [B, T - n + 1, hop C], n the frames that cover a sample.
Tensor covered_blocks(const Tensor& frames, const Tensor& taper, std::int64_t hop);

}  // namespace ferrite::nn::detail
