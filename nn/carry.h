#pragma once
#include <span>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

class Recurrent;

/// The states of a model's recurrent layers between calls: truncated back-propagation through time, and any sequence
/// that comes in pieces. What is left here is cut off from every tape: gradients stop at the border of a piece.
///
///   nn::Carry carry;
///   for (const Tensor& piece : nn::pieces(x, 35)) {  // [B, 35, D] at a time
///     Tape tape;
///     const Tensor loss = nn::mse_loss(net(piece, {.carry = &carry}), ...);
///     adam.step(tape.grad(loss, net.parameters()));
///   }
///
/// States are cells, so recorders see them. A carry belongs to one model, which must stay where it is; not for use
/// by several threads at once.
class Carry {
 public:
  Carry() = default;
  Carry(Carry&&) = default;
  Carry& operator=(Carry&&) = default;

  /// Forgets all states: the next call begins from zeros.
  void reset() { entries_.clear(); }
  /// The states, in the order in which the layers are first called: h, then of an LSTM c, each [L, B, H].
  std::vector<Tensor> save() const;
  /// Takes over states that `save` gave, of this model or a copy of it.
  void restore(const std::vector<Tensor>& states);

 private:
  friend class Recurrent;
  struct Entry {
    const void* owner;  ///< null until the layer that it belongs to calls
    std::vector<State> states;
  };
  /// The state cells of a layer, of these shapes; zeros where there were none yet. Throws ShapeError when they are of
  /// other shapes.
  const std::vector<State>& states_of(const void* owner, std::span<const Spec> wanted);
  Entry* find(const void* owner, std::size_t count);

  std::vector<Entry> entries_;
};

/// x [B, T, ...] cut along its steps into views of n, the last one shorter. Throws ValueError for n below 1.
std::vector<Tensor> pieces(const Tensor& x, std::int64_t n);

}  // namespace ferrite::nn
