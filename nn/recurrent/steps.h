#pragma once
/// The steps of recurrent layers in operations, and the loop over them: the definition of a recurrence.
#include <functional>
#include <span>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// What goes from one step of a recurrent layer to the next.
struct RecurrentState {
  Tensor h;    ///< [B, H]
  Tensor c{};  ///< an LSTM's memory [B, H]
};

/// One step of a GRU (arXiv 1406.1078, PyTorch's form) from i = x W_ih + b_ih [B, 3H], columns r, z, n: w_hh [H, 3H],
/// b_hh [3H] or undefined -> h' [B, H]. In operations: the definition.
Tensor gru_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh);
/// The same with the reset gate before the product: n = tanh(i_n + (r h) W_hn + b_hn), Cho's first form and Keras's
/// `reset_after=False`.
Tensor gru_step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh);
/// One step of an LSTM from i = x W_ih + b_ih [B, 4H], columns i, f, g, o. With w_hr [H, P] the new h is projected to
/// [B, P] (arXiv 1402.1128); w_hh is [P, 4H] then.
RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr = {});
/// One step of an Elman network: tanh (or relu) of i + h W_hh + b_hh.
Tensor rnn_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool with_relu = false);

/// How a sequence is walked.
struct SequenceOptions {
  bool reverse = false;      ///< from the last step to the first
  bool batch_first = false;  ///< x [B, T, D] -> y [B, T, H], else [T, B, ...]
  Tensor lengths{};          ///< i64 [B], each in 0..T: y is 0 beyond, states stay; undefined: all T
  Tensor resets{};           ///< bool [B, T]: before these steps (reversed: after them) states are 0; undefined: never
  bool recompute = false;    ///< gates are not kept for the gradient but computed again there: less memory, more time
};

/// One step of any recurrence from its projected input [B, G H].
using RecurrentStep = std::function<RecurrentState(const Tensor& i, const RecurrentState& before)>;
/// All steps of one direction, one after the other in operations -> {y, last h} and, where there is a c, last c. The
/// definition of lengths and resets.
Tensors unroll(const Tensor& i, const RecurrentState& before, const RecurrentStep& step,
               const SequenceOptions& options = {});

namespace detail {
/// The records of the steps.
std::span<const Primitive* const> step_composites();
}  // namespace detail

}  // namespace ferrite::nn

// Functions of tensors: called without a prefix, as all others are.
namespace ferrite {
using nn::gru_step, nn::gru_step_reset_before, nn::lstm_step, nn::rnn_step, nn::unroll;
using nn::RecurrentState, nn::RecurrentStep, nn::SequenceOptions;
}  // namespace ferrite
