#pragma once
/// States of a model's layers between calls.
#include <span>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// The states of a model's layers between calls, of recurrent ones and causal convolutions: truncated back-propagation
/// through time, and any sequence that comes in pieces. What is left here is cut off from every tape: gradients stop at
/// the border of a piece.
///
///   const nn::Carry carry(net, batch_size);
///   for (int epoch = 0; epoch < epochs; ++epoch) {
///     carry.reset();
///     for (const Tensor& piece : nn::pieces(x, 35)) {  // [B, 35, D] at a time
///       Tape tape;
///       const Tensor loss = nn::mse_loss(net(piece, {.carry = &carry}), ...);
///       adam.step(tape.grad(loss, net.parameters()));
///     }
///   }
///
/// The states are variables, made with the carry and only assigned from then on, so a compiled function follows
/// `reset` and `restore`. Where another carry may be used from call to call, make it an argument of the compiled
/// function: `compile([&](const Tensor& x, const nn::Carry& carry) { ... })`. A carry belongs to one model, which may
/// be moved; a clone needs its own. Layers of two directions take no part. Not for use by several threads at once.
class Carry {
 public:
  /// Zeros for so many rows of a batch, for every state that layers of the model have registered (Module::carries).
  /// Throws ValueError for a batch below 0.
  Carry(const Module& model, std::int64_t batch);
  Carry(Carry&&) = default;
  Carry& operator=(Carry&&) = delete;  // a compiled function refers to the variables: assign their values

  /// All states become zeros.
  void reset() const;
  /// Those of one row of the batch become zeros. Throws ValueError for a row outside 0..batch - 1.
  void reset(std::int64_t row) const;
  /// The states, layer by layer as the model has registered them: h, then of an LSTM c, each [L, B, H]; of a causal
  /// convolution its last steps [(kernel_size - 1) * dilation, B, C].
  std::vector<Tensor> save() const;
  /// Takes over states that `save` gave, of this carry or of that of a like model. Throws ValueError for another number
  /// of them, ShapeError and DtypeError for other types; nothing has changed then.
  void restore(std::span<const Tensor> states) const;
  /// The variables, in the order of `save`.
  std::span<const State> variables() const { return states_; }
  /// Those of one layer, in the order in which it has registered them: what its `forward` reads and assigns. Throws
  /// ValueError for a layer that is not in the model or has registered none, ShapeError for another batch.
  std::span<const State> states_of(const Layer& layer, std::int64_t batch) const;

 private:
  std::vector<CarriedState> of_;  ///< by state: whose it is
  std::vector<State> states_;
  std::int64_t batch_;
};

/// x [B, T, ...] cut along its steps into views of n, the last one shorter. Throws ValueError for n below 1.
std::vector<Tensor> pieces(const Tensor& x, std::int64_t n);

}  // namespace ferrite::nn
