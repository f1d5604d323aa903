/// Generalised advantage estimation, computed from the last step to the first.
#include "ferrite/train/advantages.h"

#include <string>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::train {

Tensor advantages(const Tensor& rewards, const Tensor& values, const Tensor& goes_on, const AdvantageOptions& o) {
  for (const double share : {o.discount, o.trace})
    if (!(share >= 0 && share <= 1))
      throw ValueError("advantages: discount and trace must be in 0..1, got " + Scalar(o.discount).str() + " and " +
                       Scalar(o.trace).str());
  const auto refuse = [&] {
    return "advantages: rewards and goes_on must be [T, ...] and values [T + 1, ...], got " + rewards.spec().str() +
           ", " + goes_on.spec().str() + " and " + values.spec().str();
  };
  if (rewards.rank() < 1 || rewards.shape()[0] < 1) throw ShapeError(refuse());
  const std::int64_t T = rewards.shape()[0];
  Shape with_last = rewards.shape();
  ++with_last[0];
  if (goes_on.shape() != rewards.shape() || values.shape() != with_last) throw ShapeError(refuse());
  if (!is_float(rewards.dtype()) || goes_on.dtype() != rewards.dtype() || values.dtype() != rewards.dtype())
    throw DtypeError(refuse());
  const Tensor next = goes_on * o.discount;
  const Tensor delta = rewards + next * slice(values, 0, 1) - slice(values, 0, 0, T);
  const Tensor fades = next * o.trace;
  std::vector<Tensor> all(static_cast<std::size_t>(T));
  Tensor trace = select(delta, 0, T - 1);
  for (std::int64_t t = T - 1;; --t) {
    all[static_cast<std::size_t>(t)] = trace;
    if (t == 0) return stack(all, 0);
    trace = select(delta, 0, t - 1) + select(fades, 0, t - 1) * trace;
  }
}

}  // namespace ferrite::train
