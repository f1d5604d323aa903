#pragma once
/// The recurrence of layers without a product in their loop.
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::nn::detail {

/// h [B, T, ...] of all steps, h[t] = a[t] h[t-1] + b[t]; `state` [B, ...] goes from the initial to the last (valid)
/// one.
Tensor run_linear(const Tensor& a, const Tensor& b, const SequenceOptions& options, Tensor& state);

/// The last (valid) step of h [B, T, ...]: [B, ...].
Tensor last_of(const Tensor& h, const SequenceOptions& options);

/// [..., D] by a matrix for each block of features, w [blocks, in, out] -> [..., blocks * out].
Tensor by_blocks(const Tensor& x, const Tensor& w);

}  // namespace ferrite::nn::detail
