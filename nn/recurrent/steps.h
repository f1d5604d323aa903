#pragma once
/// The states and options of a recurrence, and the loop over its steps, which defines lengths and resets. The steps and
/// operations of the cells are in nn/recurrent/gru.h and its like.
#include <functional>
#include <span>

#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::nn {

/// The state that passes from one step of a recurrent layer to the next.
struct RecurrentState {
  Tensor h;    ///< the hidden state [B, H]
  Tensor c{};  ///< an LSTM's memory [B, H]; else undefined
};

/// Options of `unroll`, gru_sequence and its like: order, axes, lengths and resets of a recurrence over a sequence.
struct SequenceOptions {
  bool reverse = false;      ///< whether the steps run from the last to the first
  bool batch_first = false;  ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Tensor lengths{};          ///< valid steps of each row, i64 [B] in 0..T: y is 0 beyond, states stay; undefined: all T
  Tensor resets{};           ///< steps before (reversed: after) which states become 0, bool [B, T]; undefined: none
  bool recompute = false;    ///< the gradient recomputes the gates instead of keeping them: less memory, more time
};

/// One step of a recurrence, from its projected input [B, G H] and the state before to the state after.
using RecurrentStep = std::function<RecurrentState(const Tensor& i, const RecurrentState& before)>;
/// Applies `step` to the projected inputs i [T, B, G H] (or batch first) one after the other, in operations, from the
/// states `before`, and returns {y, last h} or, if there is a c, {y, last h, last c}; y holds the h of all steps. It
/// defines the meaning of lengths and resets.
Tensors unroll(const Tensor& i, const RecurrentState& before, const RecurrentStep& step,
               const SequenceOptions& options = {});

namespace detail {
/// While an object lives, this thread composes operations on sequences as scans instead of unrolled steps, so that the
/// number of steps of a program stays open.
class ComposeAsScans {
 public:
  using Compose = Tensors (*)(RecurrentStep step, const Tensor& i, const RecurrentState& before,
                              const SequenceOptions& options);
  ComposeAsScans() : before_(compose_()) { compose_() = as_scan; }
  ~ComposeAsScans() { compose_() = before_; }
  ComposeAsScans(const ComposeAsScans&) = delete;
  ComposeAsScans& operator=(const ComposeAsScans&) = delete;
  /// Returns the function that composes a scan, or null if no object lives.
  static Compose compose() { return compose_(); }

 private:
  static Tensors as_scan(RecurrentStep step, const Tensor& i, const RecurrentState& before,
                         const SequenceOptions& options);
  FERRITE_PER_THREAD static constinit ferrite::detail::PerThread<Compose> compose_;
  Compose before_;
};

/// Returns the operations of all cells on sequences and their gradients; `recurrent_composites` returns their steps.
std::span<const Primitive* const> recurrent_operations();
std::span<const Primitive* const> recurrent_composites();
}  // namespace detail

}  // namespace ferrite::nn

// Functions of tensors, which users call without a prefix like all others.
namespace ferrite {
using nn::RecurrentState, nn::RecurrentStep, nn::RecurrentWeights, nn::SequenceOptions, nn::unroll;
}  // namespace ferrite
