/// A layer's steps as a scan: the form that any cell can take.
#include "ferrite/nn/recurrent/detail/recurrent_scan.h"

#include "ferrite/nn/recurrent/detail/resets.h"

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
