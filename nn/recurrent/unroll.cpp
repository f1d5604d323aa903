/// The loop over the steps of a recurrence: the definition of lengths and resets.
#include "ferrite/nn/recurrent/detail/resets.h"

namespace ferrite::nn {
namespace {

/// bool [T, B]: whether a step lies within its row's length.
Tensor valid_steps(const Tensor& lengths, std::int64_t steps) {
  return reshape(arange(steps), {steps, 1}) < reshape(lengths, {1, -1});
}

/// A mask [T, B] as [B, 1] for every step.
Tensors by_step(const Tensor& mask) { return unbind(unsqueeze(mask, 2), 0); }

}  // namespace

Tensor detail::reset_steps(const SequenceOptions& o, std::int64_t steps) {
  Tensor resets = transpose(o.resets);
  if (o.lengths.defined()) resets = resets && valid_steps(o.lengths, steps);
  if (!o.reverse) return resets;
  const Tensor none = slice(resets, 0, 0, 1) && !slice(resets, 0, 0, 1);
  return concat({slice(resets, 0, 1, steps), none}, 0);
}

RecurrentState detail::reset_where(const Tensor& mask, const RecurrentState& s) {
  return {where(mask, 0, s.h), s.c.defined() ? where(mask, 0, s.c) : Tensor()};
}

Tensors unroll(const Tensor& i, const RecurrentState& before, const RecurrentStep& step, const SequenceOptions& o) {
  if (!step) throw ValueError("unroll: the step is null");
  const std::int64_t time = o.batch_first ? 1 : 0;
  const Tensors inputs = unbind(i, time);
  const std::size_t T = inputs.size();
  const auto steps = static_cast<std::int64_t>(T);
  const Tensors valid = o.lengths.defined() ? by_step(valid_steps(o.lengths, steps)) : Tensors();
  const Tensors resets = o.resets.defined() ? by_step(detail::reset_steps(o, steps)) : Tensors();
  RecurrentState state = before;
  Tensors outputs(T);
  for (std::size_t n = 0; n < T; ++n) {
    const std::size_t t = o.reverse ? T - 1 - n : n;
    if (!resets.empty()) state = detail::reset_where(resets[t], state);
    RecurrentState next = step(inputs[t], state);
    if (valid.empty()) {
      outputs[t] = next.h;
      state = std::move(next);
      continue;
    }
    outputs[t] = where(valid[t], next.h, 0);
    state.h = where(valid[t], next.h, state.h);
    if (state.c.defined()) state.c = where(valid[t], next.c, state.c);
  }
  Tensors out = {stack(outputs, time), state.h};
  if (state.c.defined()) out.push_back(state.c);
  return out;
}

}  // namespace ferrite::nn
