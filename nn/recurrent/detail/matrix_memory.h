#pragma once
/// The memory of an mLSTM, matrices C of each head, over steps and chunks of steps.
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn::detail {

/// What goes from step to step. In a new one all is 0.
struct MatrixMemory {
  Tensor c;        ///< [B, H, d, d + 1]: C, and n as its last column
  Tensor m;        ///< [B, H]: the largest exponent so far, which C and n are divided by
  Tensor started;  ///< [B, 1]: 1 where a step has been made, so that m counts
};

/// What comes in: q, k (already divided by sqrt(d)) and v [..., H, d]; i and log f [..., H].
struct MatrixSteps {
  Tensor q, k, v, i, log_f;
};

/// One step: [B, H, d] -> h [B, H, d]. The definition.
Tensor matrix_memory_step(const MatrixSteps& x, MatrixMemory& memory);
/// All steps, one after the other: [B, T, H, d] -> h [B, T, H, d]. Lengths and resets are batch first.
Tensor matrix_memory_by_steps(const MatrixSteps& x, const SequenceOptions& options, MatrixMemory& memory);
/// The same in chunks of at most `chunk` steps, of finite numbers: hidden steps are multiplied by 0. `resets`: the last
/// ones (last_resets).
Tensor matrix_memory_by_chunks(const MatrixSteps& x, const SequenceOptions& options, const Tensor& resets,
                               std::int64_t chunk, MatrixMemory& memory);

}  // namespace ferrite::nn::detail
