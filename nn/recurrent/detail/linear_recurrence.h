#pragma once
/// The recurrences of layers without a product in their loop, on sequences and as steps of streams.
#include <functional>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/minimal.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::nn::detail {

/// Returns h [B, T, ...] of all steps, h[t] = a[t] h[t-1] + b[t]; `state` [B, ...] changes from the initial to the last
/// (valid) one.
Tensor run_linear(const Tensor& a, const Tensor& b, const SequenceOptions& options, Tensor& state);

/// Returns the last (valid) step of h [B, T, ...], [B, ...].
Tensor last_of(const Tensor& h, const SequenceOptions& options);

/// Multiplies each block of the features of x [..., D] by its own matrix: w [blocks, in, out] -> [..., blocks * out].
Tensor by_blocks(const Tensor& x, const Tensor& w);

/// A diagonal recurrence of complex numbers between two products: h_t = decay h_(t-1) + x_t in, y_t = h_t out + skip
/// x_t. A complex number is stored as two adjacent real ones.
struct Diagonal {
  Tensor in;     ///< matrix from inputs to states, [D, 2P]
  Tensor decay;  ///< factors of the states, [P, 2]
  Tensor out;    ///< matrix from states to outputs, [2P, N]
  Tensor skip;   ///< factors of the inputs in the outputs, [N]; undefined: none
};

/// Runs all steps, x [B, T, D] -> [B, T, N]; `state` [B, P, 2] changes from the initial to the last one.
Tensor run_diagonal(const Diagonal& d, const Tensor& x, const SequenceOptions& options, Tensor& state);

/// Returns the step of a minimal layer's recurrence, on rows of its gates.
std::unique_ptr<Step> minimal_step(MinimalCell cell, std::int64_t H, const StepRows& gates);

/// Returns a step of the recurrence that `compute` gives, now and after each `refresh`. `compute` reads `parameters`.
std::unique_ptr<Step> diagonal_step(std::function<Diagonal()> compute, std::vector<Parameter> parameters,
                                    const StepRows& in);

}  // namespace ferrite::nn::detail
