#pragma once
/// The states of a model's layers between calls.
#include <span>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Holds the states of a model's recurrent layers and causal convolutions between calls, for truncated back-propagation
/// through time and for any sequence that comes in pieces. A call reads and assigns them if it is given the carry in
/// its Context. The states are detached from every tape: gradients stop at the border of a piece.
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
/// `reset` and `restore`. To use different carries from call to call, make the carry an argument of the compiled
/// function: `compile([&](const Tensor& x, const nn::Carry& carry) { ... })`. A carry belongs to one model, which may
/// be moved; a clone needs its own. Bidirectional layers carry nothing. Several threads must not use it at once.
class Carry {
 public:
  /// Creates a carry for batches of `batch` rows, with zeros for every state that layers of the model have registered
  /// (Module::carries). Throws ValueError for a batch below 0.
  Carry(const Module& model, std::int64_t batch);
  Carry(Carry&&) = default;
  Carry& operator=(Carry&&) = delete;  // a compiled function refers to the variables: assign their values

  /// Sets all states to zeros.
  void reset() const;
  /// Sets the states of one row of the batch to zeros. Throws ValueError for a row outside 0..batch - 1.
  void reset(std::int64_t row) const;
  /// Returns the states, layer by layer in the order in which the model has registered them: h [L, B, H], for an LSTM
  /// followed by c [L, B, H]; the last steps [(kernel_size - 1) * dilation, B, C] of a causal convolution.
  std::vector<Tensor> save() const;
  /// Restores states that `save` returned, of this carry or of one for a model of the same layers. Throws ValueError
  /// for another number of states, ShapeError and DtypeError for other types; nothing has changed then.
  void restore(std::span<const Tensor> states) const;
  /// Returns the variables that hold the states, in the order of `save`.
  std::span<const State> variables() const { return states_; }
  /// Returns the states of one layer, which its `forward` reads and assigns, in the order in which it has registered
  /// them. Throws ValueError for a layer that is not in the model or has registered none, ShapeError for another batch.
  std::span<const State> states_of(const Layer& layer, std::int64_t batch) const;

 private:
  std::vector<CarriedState> of_;  ///< the registration of each state
  std::vector<State> states_;
  std::int64_t batch_;
};

/// Cuts sequences x [B, T, ...] along time, axis 1, into views [B, n, ...]; the last one may be shorter. Throws
/// ValueError for n below 1, ShapeError for an x of fewer than two axes.
std::vector<Tensor> pieces(const Tensor& x, std::int64_t n);

}  // namespace ferrite::nn
