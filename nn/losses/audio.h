#pragma once
/// Losses of audio signals (Wright and Valimaki 2020, arXiv 1911.08922), as auraloss has them.
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

}  // namespace ferrite::nn
