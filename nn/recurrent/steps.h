#pragma once
/// The states and options of a recurrence, and the loop over its steps: the definition of lengths and resets. The steps
/// and the operations of the cells stand in nn/recurrent/gru.h and its like.
#include <functional>
#include <span>

#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// What goes from one step of a recurrent layer to the next.
struct RecurrentState {
  Tensor h;    ///< [B, H]
  Tensor c{};  ///< an LSTM's memory [B, H]
};

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
/// While one lives, what this thread composes of the operations on sequences are scans, not steps one after the other:
/// a program whose number of steps stays open.
class ComposeAsScans {
 public:
  using Compose = Tensors (*)(RecurrentStep step, const Tensor& i, const RecurrentState& before,
                              const SequenceOptions& options);
  ComposeAsScans() : before_(compose_) { compose_ = as_scan; }
  ~ComposeAsScans() { compose_ = before_; }
  ComposeAsScans(const ComposeAsScans&) = delete;
  ComposeAsScans& operator=(const ComposeAsScans&) = delete;
  /// How, or null: there is none.
  static Compose compose() { return compose_; }

 private:
  static Tensors as_scan(RecurrentStep step, const Tensor& i, const RecurrentState& before,
                         const SequenceOptions& options);
  inline static thread_local Compose compose_ = nullptr;
  Compose before_;
};

/// The operations of all cells on sequences, with their gradients; their steps.
std::span<const Primitive* const> recurrent_operations();
std::span<const Primitive* const> recurrent_composites();
}  // namespace detail

}  // namespace ferrite::nn

// Functions of tensors: called without a prefix, as all others are.
namespace ferrite {
using nn::RecurrentState, nn::RecurrentStep, nn::RecurrentWeights, nn::SequenceOptions, nn::unroll;
}  // namespace ferrite
