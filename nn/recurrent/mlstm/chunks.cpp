/// The memory of an mLSTM in chunks of steps: masked products within a chunk, C and m from one to the next.
///
/// With F the sums of log f within a chunk and a = i - F, the exponent of step s at step t is F_t + a_s, the stabiliser
/// m_t = F_t + A_t, A_t the largest a up to t or the m that the chunk begins with; F_t cancels in their difference.
/// Exponents are f64: F may be large where differences of it are small.
#include "ferrite/nn/recurrent/detail/matrix_memory.h"
#include "ferrite/nn/recurrent/detail/xlstm.h"
#include "ferrite/nn/recurrent/mlstm/mlstm_memory.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::nn::detail {
namespace {

Tensor last(const Tensor& x) { return slice(x, -1, x.shape()[-1] - 1); }

/// x [..., n] k places further along its last axis, `fill` before it.
Tensor shifted(const Tensor& x, std::int64_t k, double fill) {
  Shape before = x.shape();
  before[-1] = k;
  return concat({full(before, fill, x.dtype()), slice(x, -1, 0, x.shape()[-1] - k)}, -1);
}

/// x in f64 as a number of another dtype and the exponential of what is left of it, whose gradient is 0.
struct Rounded {
  Tensor value, rest;

  Rounded(const Tensor& x, Dtype dtype) : value(cast(x, dtype)) {
    if (dtype == Dtype::f64) return;
    const Tensor of = detach(x);
    rest = exp(clamp(cast(of - cast(detach(value), Dtype::f64), dtype), -1, 1));  // -1e30 leaves more than it should
  }
};

/// How the steps of a sequence stand in N chunks of C, the last ones behind its end.
struct Chunks {
  std::int64_t T, N, C;
  Tensor steps;   ///< i64 [N, C]
  Tensor resets;  ///< i64 [B, 1, N, C], or undefined

  Chunks(std::int64_t steps_in_all, std::int64_t most, const Tensor& last_resets)
      : T(steps_in_all), N((T + most - 1) / most), C((T + N - 1) / N), steps(reshape(arange(N * C), {N, C})) {
    if (!last_resets.defined()) return;
    const std::int64_t B = last_resets.shape()[0];
    const Tensor behind = expand(slice(last_resets, 1, T - 1), {B, N * C - T});
    resets = reshape(concat({last_resets, behind}, 1), {B, 1, N, C});
  }

  /// [B, T, H, ...] -> [B, H, N, C, ...].
  Tensor cut(const Tensor& x, double fill) const {
    Shape after = Shape::filled(x.rank(), 0), shape = x.shape(), order = {0, 3, 1, 2};
    after[1] = N * C - T;
    shape[1] = C;
    shape.insert(1, N);
    if (x.rank() == 4) order.push_back(4);
    const Shape none = Shape::filled(x.rank(), 0);
    return contiguous(permute(reshape(after[1] ? pad(x, none, after, fill) : x, shape), order));
  }
  /// [B, H, N, C, d] -> [B, T, H, d].
  Tensor joined(const Tensor& x) const {
    const Shape& s = x.shape();
    return slice(reshape(permute(x, {0, 2, 3, 1, 4}), {s[0], N * C, s[1], s[4]}), 1, 0, T);
  }
  /// Where a reset parts step t from the start of its chunk: [B, 1, N, C].
  Tensor parted_from_start() const { return ge(resets, slice(steps, 1, 0, 1)); }
  /// What hides from step t of a chunk the steps s that it does not see: [C, C] or [B, 1, N, C, C].
  Tensor hiding(Dtype dtype) const {
    Tensor shown = le(unsqueeze(arange(C), 0), unsqueeze(arange(C), 1));
    if (resets.defined()) shown = shown && ge(unsqueeze(steps, 1), unsqueeze(resets, 4));
    return where(shown, zeros({}, dtype), kNewMemory);
  }
  /// The largest x [B, H, N, C] up to each step of a chunk, from its last reset on.
  Tensor running_max(Tensor x) const {
    for (std::int64_t n = 1; n < C; n *= 2) {
      Tensor further = shifted(x, n, kNewMemory);
      if (resets.defined()) further = where(lt(steps - n, resets), kNewMemory, further);
      x = maximum(x, further);
    }
    return x;
  }
};

/// a_s - b_t for all t and s, [..., C] -> [..., t, s]: a product, which is quicker than a difference of broadcast ones.
Tensor differences(const Tensor& a, const Tensor& b) {
  const Tensor one = ones_like(a);
  return matmul(stack({one, -b}, -1), stack({a, one}, -2));
}

/// Sums along the last axis up to each step.
Tensor running_sum(Tensor x) {
  for (std::int64_t n = 1; n < x.shape()[-1]; n *= 2) x = x + shifted(x, n, 0);
  return x;
}

/// m_0 = m[0], m_j = max(m_(j-1) + g[j], m[j]) along the last axis.
Tensor stabilisers(Tensor g, Tensor m) {
  for (std::int64_t n = 1; n < m.shape()[-1]; n *= 2) {
    m = maximum(m, shifted(m, n, kNewMemory) + g);
    g = g + shifted(g, n, 0);
  }
  return m;
}

}  // namespace

Tensor matrix_memory_by_chunks(const MatrixSteps& x, const SequenceOptions& o, const Tensor& resets, std::int64_t chunk,
                               MatrixMemory& memory) {
  const Chunks chunks(x.q.shape()[1], chunk, resets);
  const std::int64_t B = x.q.shape()[0], H = x.q.shape()[2], d = x.q.shape()[3], N = chunks.N;
  const auto within = [&](const Tensor& gate, double beyond) {
    return o.lengths.defined() ? where(unsqueeze(ge(arange(chunks.T), unsqueeze(o.lengths, 1)), 2), beyond, gate)
                               : gate;
  };
  const Tensor q = chunks.cut(x.q, 0), k = chunks.cut(x.k, 0), v1 = with_one(chunks.cut(x.v, 0));
  const Dtype dtype = q.dtype();
  const auto exponents = [&](const Tensor& gate, double beyond) {
    return cast(chunks.cut(within(gate, beyond), beyond), Dtype::f64);
  };
  const auto exp_of = [&](const Tensor& exponent) { return exp(cast(exponent, dtype)); };

  const Tensor F = running_sum(exponents(x.log_f, 0)), a = exponents(x.i, kNewMemory) - F,
               largest = chunks.running_max(a);  // [B, H, N, C]
  const Tensor all_f = last(F);
  Tensor passing = squeeze(all_f, 3);  // [B, H, N], what the memory of a chunk's start falls by to its end
  if (chunks.resets.defined()) passing = where(squeeze(last(chunks.parted_from_start()), 3), kNewMemory, passing);
  const Tensor m0 = cast(unsqueeze(where(ne(memory.started, 0), memory.m, kNewMemory), 2), Dtype::f64);
  const Tensor m = stabilisers(concat({zeros({B, H, 1}, Dtype::f64), passing}, 2),
                               concat({m0, squeeze(all_f + last(largest), 3)}, 2));  // [B, H, N + 1]
  const Tensor m_before = slice(m, 2, 0, N), m_after = slice(m, 2, 1);

  // From chunk to chunk.
  Tensor leaving = all_f + a - unsqueeze(m_after, 3);
  if (chunks.resets.defined()) leaving = where(lt(chunks.steps, last(chunks.resets)), kNewMemory, leaving);
  const Tensor added = matmul(transpose(k * unsqueeze(exp_of(leaving), 4)), v1);
  const std::int64_t elements = d * (d + 1);
  const Tensor kept = reshape(exp_of(m_before + passing - m_after), {B * H, N, 1});
  const Tensor states = linear_scan(expand(kept, {B * H, N, elements}), reshape(added, {B * H, N, elements}),
                                    reshape(memory.c, {B * H, elements}));
  const Tensor c = concat({unsqueeze(memory.c, 2), reshape(states, {B, H, N, d, d + 1})}, 2);

  // Within chunks.
  Tensor start = unsqueeze(m_before, 3);
  if (chunks.resets.defined()) start = where(chunks.parted_from_start(), kNewMemory, start);
  const Tensor A = maximum(largest, start);
  const Rounded from(a, dtype), to(A, dtype);
  const Tensor weights = exp(differences(from.value, to.value) + chunks.hiding(dtype));
  Tensor share = exp_of(start - A), floor = exp(minimum(-cast(F + A, dtype), 80)), epsilon = full({}, 1e-6, dtype);
  if (to.rest.defined()) share = share * to.rest, floor = floor * to.rest, epsilon = to.rest * 1e-6;
  const Tensor seen =
      matmul(matmul(q, transpose(k)) * weights, from.rest.defined() ? v1 * unsqueeze(from.rest, 4) : v1) +
      matmul(q * unsqueeze(share, 4), slice(c, 2, 0, N));  // [B, H, N, C, d + 1]
  memory = {select(c, 2, N), cast(select(m, 2, N), dtype), ones_like(memory.started)};
  const Tensor by = maximum(abs(select(seen, 4, d)), floor) + epsilon;
  return chunks.joined(slice(seen, 4, 0, d) / unsqueeze(by, 4));
}

}  // namespace ferrite::nn::detail
