/// What layers without a product in their loop share.
#include "ferrite/nn/recurrent/detail/linear_recurrence.h"

#include "ferrite/nn/recurrent/detail/scan_steps.h"

namespace ferrite::nn::detail {

Tensor last_of(const Tensor& h, const SequenceOptions& o) {
  if (!o.lengths.defined()) return select(h, 1, o.reverse ? 0 : -1);
  if (o.reverse) return select(h, 1, 0);
  Shape one = h.shape();
  one[1] = 1;
  Tensor at = unsqueeze(o.lengths - 1, 1);
  for (int k = 2; k < h.rank(); ++k) at = unsqueeze(at, -1);
  return squeeze(gather(h, 1, expand(at, one)), 1);
}

Tensor run_linear(const Tensor& a, const Tensor& b, const SequenceOptions& o, Tensor& state) {
  const Tensor h = linear_scan(a, b, state, {.reverse = o.reverse, .lengths = o.lengths, .resets = o.resets});
  state = last_of(h, o);
  return h;
}

Tensor run_diagonal(const Diagonal& d, const Tensor& x, const SequenceOptions& options, Tensor& state) {
  Shape pairs = x.shape(), flat = pairs;
  pairs[-1] = d.decay.shape()[0], flat[-1] = 2 * pairs[-1];
  pairs.push_back(2);
  const Tensor h = run_linear(d.decay, reshape(matmul(x, d.in), pairs), options, state);
  const Tensor y = matmul(reshape(h, flat), d.out);
  return d.skip.defined() ? y + d.skip * x : y;
}

Tensor by_blocks(const Tensor& x, const Tensor& w) {
  const std::int64_t blocks = w.shape()[0], in = w.shape()[1], out = w.shape()[2];
  if (blocks == 1) return matmul(x, select(w, 0, 0));
  Shape shape = x.shape();
  shape[-1] = blocks * out;
  const Tensor by_block = permute(reshape(x, {-1, blocks, in}), {1, 0, 2});  // [blocks, rows, in]
  return reshape(permute(matmul(by_block, w), {1, 0, 2}), shape);
}

}  // namespace ferrite::nn::detail
