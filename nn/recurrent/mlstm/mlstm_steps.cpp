/// The memory of an mLSTM step by step: the definition, and the same as a scan.
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/detail/matrix_memory.h"
#include "ferrite/nn/recurrent/mlstm/mlstm_memory.h"

namespace ferrite::nn::detail {

Tensor matrix_memory_step(const MatrixSteps& x, MatrixMemory& memory) {
  const std::int64_t d = x.q.shape()[2];
  const Tensor decayed = x.log_f + where(ne(memory.started, 0), memory.m, kNewMemory);  // [B, H]
  const Tensor m = maximum(decayed, x.i);
  const auto wide = [](const Tensor& t) { return unsqueeze(unsqueeze(t, 2), 3); };
  const Tensor v1 = unsqueeze(with_one(x.v), 2);  // [B, H, 1, d + 1]
  memory.c = wide(exp(decayed - m)) * memory.c + wide(exp(x.i - m)) * (unsqueeze(x.k, 3) * v1);
  memory.m = m;
  memory.started = ones_like(memory.started);
  const Tensor seen = squeeze(matmul(unsqueeze(x.q, 2), memory.c), 2);  // [B, H, d + 1]
  return slice(seen, 2, 0, d) / normaliser(slice(seen, 2, d), unsqueeze(m, 2));
}

Tensor matrix_memory_by_steps(const MatrixSteps& x, const SequenceOptions& o, MatrixMemory& memory) {
  const auto by_time = [](const Tensor& t) { return transpose(t, 0, 1); };
  Tensors xs = {by_time(x.q), by_time(x.k), by_time(x.v), by_time(x.i), by_time(x.log_f)};
  if (o.resets.defined()) xs.push_back(by_time(o.resets));
  const ScanResult r = scan(
      [](const Tensors& carry, const Tensors& in) -> ScanStep {
        MatrixMemory now{carry[0], carry[1], carry[2]};
        if (in.size() > 5) {
          const Tensor reset = unsqueeze(in[5], 1);
          now = {where(unsqueeze(unsqueeze(reset, 2), 3), 0, now.c), where(reset, 0, now.m),
                 where(reset, 0, now.started)};
        }
        const Tensor h = matrix_memory_step({in[0], in[1], in[2], in[3], in[4]}, now);
        return {{now.c, now.m, now.started}, {h}};
      },
      {memory.c, memory.m, memory.started}, xs, {.lengths = o.lengths});
  memory = {r.carry[0], r.carry[1], r.carry[2]};
  return by_time(r.y[0]);
}

}  // namespace ferrite::nn::detail
