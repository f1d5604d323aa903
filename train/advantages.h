#pragma once
/// Advantages in reinforcement learning: how much better actions were than expected.
#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

/// The options of `advantages`: the discount and the decay of the trace.
struct AdvantageOptions {
  double discount = 0.99;  ///< discount of rewards per step, gamma
  double trace = 0.95;     ///< decay of the trace, lambda: 0 trusts the values alone, 1 the rewards alone
};

/// Returns generalised advantage estimates (arXiv 1506.02438, equation 16) for T steps of parallel environments:
///
///   delta[t] = rewards[t] + discount goes_on[t] values[t + 1] - values[t]
///   a[t] = delta[t] + discount trace goes_on[t] a[t + 1],  a[T] = 0
///
/// rewards and goes_on [T, ...] (0 where an episode ended with that step, else 1), values [T + 1, ...] of the states
/// before each step and after the last -> [T, ...]. The returns, which are the targets of the values, are
/// a + values[0 : T]. Throws ShapeError for shapes that do not fit, DtypeError for different dtypes and integers,
/// ValueError for a discount or trace outside 0..1.
Tensor advantages(const Tensor& rewards, const Tensor& values, const Tensor& goes_on,
                  const AdvantageOptions& options = {});

}  // namespace ferrite::train
