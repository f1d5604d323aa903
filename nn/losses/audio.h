#pragma once
/// Losses of audio signals (Wright and Valimaki 2020, arXiv 1911.08922), as auraloss has them.
#include <vector>

#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// What the losses of signals take.
struct AudioLossParameters {
  double pre_emphasis = 0;  ///< c of the filter y[t] = x[t] - c x[t - 1] that both signals pass first; 0.85 at 44.1 kHz
  std::int64_t axis = 1;    ///< time: 1 for [B, T, ...], -1 for [..., T]
  double epsilon = 1e-8;    ///< added below
};

/// Error-to-signal ratio: sum of (target - prediction)^2 / (sum of target^2 + epsilon), sums over time. Signals of one
/// shape and dtype; losses have their shape without time. Of LossOptions, weight and mask belong to the losses and
/// `lengths` [B] to the signals, for axis 1. Throws ShapeError, DtypeError, and ValueError for parameters that are not
/// finite and a negative epsilon.
Tensor esr_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters = {},
                const LossOptions& options = {});

/// How far the signals' means are apart: (mean of target - prediction)^2 / (mean of target^2 + epsilon). Operands,
/// options and errors as esr_loss.
Tensor dc_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters = {},
               const LossOptions& options = {});

/// One short-time Fourier transform, with a Hann window.
struct StftResolution {
  std::int64_t n_fft = 1024, hop_length = 120, win_length = 600;
};
/// What multi_resolution_stft_loss takes.
struct StftLossParameters {
  std::vector<StftResolution> resolutions{{1024, 120, 600}, {2048, 240, 1200}, {512, 50, 240}};
  double convergence = 1;    ///< weight of |Y - X| / |Y|, Frobenius norms of the magnitudes of all signals
  double log_magnitude = 1;  ///< weight of the mean of |ln X - ln Y|
  double magnitude = 0;      ///< weight of the mean of |X - Y|
  double epsilon = 1e-8;     ///< squares of magnitudes are at least so large
  std::int64_t axis = 1;     ///< time: 1 for [B, T, ...], -1 for [..., T]
  Tensor lengths{};          ///< i64 [B], for axis 1: where the signals of a row end; those of length 0 do not count
};
/// Mean over resolutions of distances between magnitudes X of the prediction and Y of the target (Yamamoto et al. 2019,
/// arXiv 1910.11480; auraloss.freq.MultiResolutionSTFTLoss): signals of one shape and dtype -> []. Throws ShapeError
/// and DtypeError for signals that do not fit or are too short for a transform (tensor/signal.h), by their lengths
/// where these are given (in compiled functions, too), ValueError for no resolution, extents below 1, weights that are
/// not finite or negative and an epsilon that is not positive. With `lengths` a signal is reflected at its own end and
/// has its own frames, as if it stood alone; sums and means go over the frames of all signals, and what lies beyond an
/// end may be anything. Losses are not per signal, so there are no weights and no other reduction; a mask of rows is a
/// length of 0.
Tensor multi_resolution_stft_loss(const Tensor& prediction, const Tensor& target,
                                  const StftLossParameters& parameters = {});

}  // namespace ferrite::nn
