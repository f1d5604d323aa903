/// The steps of a recurrence in order, in a loop and as a scan, with the definition of lengths and resets.
#include "ferrite/nn/recurrent/steps.h"

#include "ferrite/nn/recurrent/detail/recurrent_layers.h"

namespace ferrite::nn {
namespace {

/// Returns whether each step lies within its row's length, bool [T, B].
Tensor valid_steps(const Tensor& lengths, std::int64_t steps) {
  return reshape(arange(steps), {steps, 1}) < reshape(lengths, {1, -1});
}

}  // namespace

namespace detail {

FERRITE_PER_THREAD constinit ferrite::detail::PerThread<ComposeAsScans::Compose> ComposeAsScans::compose_(nullptr);

namespace {

/// Returns whether the state is set to 0 before each step is computed, bool [T, B], for options with resets. Resets
/// beyond the lengths are ignored; in reverse, a reset before step t + 1 acts before step t is computed.
Tensor reset_steps(const SequenceOptions& o, std::int64_t steps) {
  Tensor resets = transpose(o.resets);
  if (o.lengths.defined()) resets = resets && valid_steps(o.lengths, steps);
  if (!o.reverse) return resets;
  const Tensor none = slice(resets, 0, 0, 1) && !slice(resets, 0, 0, 1);
  return concat({slice(resets, 0, 1, steps), none}, 0);
}

/// Returns the state with zeros where the mask [B, 1] is set.
RecurrentState reset_where(const Tensor& mask, const RecurrentState& s) {
  return {where(mask, 0, s.h), s.c.defined() ? where(mask, 0, s.c) : Tensor()};
}

}  // namespace
}  // namespace detail

// ---- a loop --------------------------------------------------------------------------------------------

namespace {

/// Cuts a mask [T, B] into [B, 1] for every step.
Tensors by_step(const Tensor& mask) { return unbind(unsqueeze(mask, 2), 0); }

}  // namespace

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

// ---- a scan --------------------------------------------------------------------------------------------

namespace ferrite::nn::detail {
namespace {

RecurrentState state_of(const Tensors& carry) { return {carry[0], carry.size() > 1 ? carry[1] : Tensor()}; }

Tensors carry_of(const RecurrentState& s) { return s.c.defined() ? Tensors{s.h, s.c} : Tensors{s.h}; }

}  // namespace

Scan scan_of(RecurrentStep step) {
  return Scan([step = std::move(step)](const Tensors& carry, const Tensors& x) -> ScanStep {
    RecurrentState before = state_of(carry);
    if (x.size() > 1) before = reset_where(unsqueeze(x[1], 1), before);
    const RecurrentState next = step(x[0], before);
    return {carry_of(next), {next.h}};
  });
}

Tensors run_scan(const Scan& scan, const Tensor& x, const RecurrentState& before, const SequenceOptions& o) {
  const Tensor by_time = o.batch_first ? permute(x, {1, 0, 2}) : x;
  Tensors xs = {by_time};
  if (o.resets.defined()) xs.push_back(reset_steps(o, by_time.shape()[0]));
  ScanResult r = scan(carry_of(before), xs, {.reverse = o.reverse, .lengths = o.lengths});
  Tensors out = {o.batch_first ? permute(r.y[0], {1, 0, 2}) : r.y[0]};
  for (Tensor& c : r.carry) out.push_back(std::move(c));
  return out;
}

Tensors ComposeAsScans::as_scan(RecurrentStep step, const Tensor& i, const RecurrentState& before,
                                const SequenceOptions& options) {
  return run_scan(scan_of(std::move(step)), i, before, options);
}

constinit const ScanForm scan_form = {scan_of, run_scan, traced_step};

}  // namespace ferrite::nn::detail
