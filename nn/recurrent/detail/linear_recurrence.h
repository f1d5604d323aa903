#pragma once
/// The recurrence of layers without a product in their loop, on sequences and as steps of streams.
#include <functional>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/minimal.h"
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

/// A diagonal recurrence of complex numbers between two products: h_t = decay h_(t-1) + x_t in, y_t = h_t out + skip
/// x_t, complex numbers as two real ones in turn.
struct Diagonal {
  Tensor in;     ///< [D, 2P]
  Tensor decay;  ///< [P, 2]
  Tensor out;    ///< [2P, N]
  Tensor skip;   ///< [N], or undefined: none
};

/// All steps of x [B, T, D] -> [B, T, N]; `state` [B, P, 2] goes from the initial to the last one.
Tensor run_diagonal(const Diagonal& d, const Tensor& x, const SequenceOptions& options, Tensor& state);

/// The recurrence of a minimal layer on rows of its gates.
std::unique_ptr<Step> minimal_step(MinimalCell cell, std::int64_t H, const StepRows& gates);

/// A step of what `compute` gives, now and after each `refresh`. `parameters` are what it reads.
std::unique_ptr<Step> diagonal_step(std::function<Diagonal()> compute, std::vector<Parameter> parameters,
                                    const StepRows& in);

}  // namespace ferrite::nn::detail
