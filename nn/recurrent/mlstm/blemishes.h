#pragma once
/// Steps of a sequence that are not finite, where steps before them and behind resets are computed together with them.
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn::detail {

/// Replaces by 0 the steps of x [B, T, D] and the rows of states [B, ...] that are not finite, and tells which steps
/// have seen one: it and those after it, up to a reset.
class Blemishes {
 public:
  /// `resets`: the last ones (last_resets), or undefined.
  Blemishes(Tensor& x, Tensors& states, const Tensor& resets);
  /// y [B, T, N] with NaN where a step has seen one.
  Tensor in(const Tensor& y) const;
  /// A state [B, ...] with NaN where the last step has seen one.
  Tensor at_end(const Tensor& state) const;

 private:
  Tensor seen_;  ///< bool [B, T]
};

}  // namespace ferrite::nn::detail
