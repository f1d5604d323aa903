#pragma once
/// Losses of audio signals (Wright and Valimaki 2020, arXiv 1911.08922), as in auraloss.
#include <vector>

#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// Parameters of esr_loss and dc_loss.
struct AudioLossParameters {
  double pre_emphasis = 0;  ///< c of the filter y[t] = x[t] - c x[t - 1] that both signals pass first; 0.85 at 44.1 kHz
  std::int64_t axis = 1;    ///< axis of time: 1 for [B, T, ...], -1 for [..., T]
  double epsilon = 1e-8;    ///< added to the target's energy in the denominator (esr_loss: its sum; dc_loss: its mean)
};

/// Returns the error-to-signal ratio: sum of (target - prediction)^2 / (sum of target^2 + epsilon), with sums over
/// time. Both signals have one shape and dtype; the losses, reduced to their mean by default, have that shape without
/// time. Of LossOptions, weight and mask belong to the losses, and `lengths` [B] to the signals if time is axis 1.
/// Throws ShapeError, DtypeError, and ValueError for parameters that are not finite or a negative epsilon.
Tensor esr_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters = {},
                const LossOptions& options = {});

/// Returns the distance of the signals' means: (mean of target - prediction)^2 / (mean of target^2 + epsilon).
/// Operands, options and errors are those of esr_loss.
Tensor dc_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters = {},
               const LossOptions& options = {});

/// The sizes of one short-time Fourier transform, in samples: of the transform, from frame to frame, of the Hann
/// window.
struct StftResolution {
  std::int64_t n_fft = 1024, hop_length = 120, win_length = 600;
};
/// Parameters of the loss multi_resolution_stft_loss.
struct StftLossParameters {
  std::vector<StftResolution> resolutions{{1024, 120, 600}, {2048, 240, 1200}, {512, 50, 240}};
  double convergence = 1;    ///< weight of |Y - X| / |Y|, Frobenius norms of the magnitudes of all signals
  double log_magnitude = 1;  ///< weight of the mean of |ln X - ln Y|
  double magnitude = 0;      ///< weight of the mean of |X - Y|
  double epsilon = 1e-8;     ///< lower bound of squared magnitudes
  std::int64_t axis = 1;     ///< axis of time: 1 for [B, T, ...], -1 for [..., T]
  Tensor lengths{};          ///< i64 [B], if time is axis 1: lengths of the signals; signals of length 0 are ignored
};
/// Returns the mean over resolutions of distances between magnitudes X of the prediction and Y of the target (Yamamoto
/// et al. 2019, arXiv 1910.11480; auraloss.freq.MultiResolutionSTFTLoss): signals of one shape and dtype -> []. Throws
/// ShapeError and DtypeError for signals that do not fit or are too short for a transform (tensor/signal.h), by their
/// lengths if given (in compiled functions, too); ValueError for no resolution, extents below 1, weights that are
/// negative or not finite, and an epsilon that is not positive. With `lengths` each signal is reflected at its own end
/// and has its own frames, as if it were alone; sums and means cover the frames of all signals, and samples beyond an
/// end may hold anything. The loss is not per signal, so there are no weights and no other reduction; a length of 0
/// masks a row.
Tensor multi_resolution_stft_loss(const Tensor& prediction, const Tensor& target,
                                  const StftLossParameters& parameters = {});

}  // namespace ferrite::nn
