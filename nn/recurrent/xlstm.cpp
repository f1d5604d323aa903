/// The layers of an xLSTM: the mLSTM, with its memory step by step and in chunks of steps, and the sLSTM, with its
/// gates and the scan over the steps.
#include <cmath>
#include <limits>
#include <string>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/init.h"
#include "ferrite/nn/recurrent/mlstm.h"
#include "ferrite/nn/recurrent/slstm.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
namespace {

constexpr std::int64_t kNoReset = -(std::int64_t{1} << 40);

// ---- what both share: products and norms of heads, the convolution and its memory ----------------------

/// Multiplies each head of x [..., H I] by its weight [H, O, I] and adds the bias [H O] unless undefined -> [..., H O].
Tensor headwise(const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  const std::int64_t H = weight.shape()[0], O = weight.shape()[1], I = weight.shape()[2];
  const Tensor rows = transpose(reshape(x, {-1, H, I}), 0, 1);
  Shape shape = x.shape();
  shape[-1] = H * O;
  const Tensor y = reshape(transpose(matmul(rows, transpose(weight)), 0, 1), shape);
  return bias.defined() ? y + bias : y;
}

/// Normalises each of the `heads` parts of x [..., N] by itself (layer_norm), times 1 + weight [N] unless undefined.
Tensor head_norm(const Tensor& x, std::int64_t heads, const Tensor& weight) {
  Shape by_head = x.shape();
  by_head[-1] = heads;
  by_head.push_back(x.shape()[-1] / heads);
  const Tensor y = reshape(layer_norm(reshape(x, by_head)), x.shape());
  return weight.defined() ? y * (1 + weight) : y;
}

/// Returns for each step the last step up to it before which states start over, i64 [B, T], or `kNoReset`. The result
/// is undefined without resets, which are batch first; those beyond the lengths are ignored.
Tensor last_resets(const SequenceOptions& o) {
  if (!o.resets.defined()) return {};
  const Tensor steps = arange(o.resets.shape()[1]);
  Tensor resets = o.resets;
  if (o.lengths.defined()) resets = resets && lt(steps, unsqueeze(o.lengths, 1));
  return cummax(where(resets, steps, full({}, kNoReset, Dtype::i64)), 1).values;
}

/// Returns the sum over k of tap k, each [..., C], times the weights of k, + bias.
Tensor sum_of_taps(const Tensors& taps, const Tensor& weight, const Tensor& bias) {
  const Tensors w = unbind(contiguous(transpose(select(weight, 1, 0))), 0);  // [C] each
  Tensor y = taps[0] * w[0];
  for (std::size_t k = 1; k < taps.size(); ++k) y = y + taps[k] * w[k];
  return y + bias;
}

/// Computes a causal convolution of each channel by itself, x [B, T, C] by weight [C, 1, K] + bias [C]. `past`
/// [B, K - 1, C], the inputs before the first step, becomes those up to the last one within the lengths; neither looks
/// back beyond `resets`, which are those of last_resets.
Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const SequenceOptions& o,
                   const Tensor& resets, Tensor& past) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1], C = x.shape()[2], before = weight.shape()[2] - 1;
  if (before == 0) return sum_of_taps({x}, weight, bias);
  const Tensor padded = concat({past, x}, 1);
  Tensors taps;
  for (std::int64_t at = 0; at <= before; ++at) {
    const Tensor tap = slice(padded, 1, at, at + T);
    const bool cut = resets.defined() && at < before;
    taps.push_back(cut ? where(unsqueeze(lt(arange(T) - (before - at), resets), 2), 0, tap) : tap);
  }
  if (o.lengths.defined()) {
    const Tensor steps = unsqueeze(o.lengths, 1) + arange(before);  // [B, K - 1], those of `padded`
    past = gather(padded, 1, expand(unsqueeze(steps, 2), {B, before, C}));
    if (resets.defined())
      past = where(unsqueeze(lt(steps - before, gather(resets, 1, unsqueeze(o.lengths - 1, 1))), 2), 0, past);
  } else {
    past = slice(padded, 1, T);
    if (resets.defined())
      past = where(unsqueeze(lt(arange(before) + (T - before), slice(resets, 1, T - 1)), 2), 0, past);
  }
  return sum_of_taps(taps, weight, bias);
}

/// Computes one step of `causal_conv`, x [B, C] -> [B, C].
Tensor causal_conv_step(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& past) {
  if (!past.defined()) return sum_of_taps({x}, weight, bias);
  const Tensor padded = concat({past, unsqueeze(x, 1)}, 1);
  past = slice(padded, 1, 1);
  return sum_of_taps(unbind(padded, 1), weight, bias);
}

/// Returns the initialiser of weights and bias of a convolution with a kernel of k steps, as in torch.nn.Conv1d.
Fill conv_fill(std::int64_t k) {
  const double bound = 1 / std::sqrt(static_cast<double>(k));
  return init::uniform(-bound, bound);
}

/// Returns the initialiser of normal weights of deviation sqrt(2 / (5 n)) (arXiv 1910.05895).
Fill small_fill(std::int64_t n) { return init::normal(0, std::sqrt(2 / (5 * static_cast<double>(n)))); }

/// Throws ValueError, whose text begins with the layer's name, for an option below the least allowed.
void check_least(const char* layer, const char* option, std::int64_t value, std::int64_t least = 1) {
  if (value < least)
    throw ValueError(std::string(layer) + ": " + option + " must be at least " + std::to_string(least) + ", got " +
                     std::to_string(value));
}

/// Throws ValueError, whose text begins with the layer's name, for a probability outside [0, 1].
void check_probability(const char* layer, const char* option, double value) {
  if (!(value >= 0 && value <= 1))
    throw ValueError(std::string(layer) + ": " + option + " must lie in [0, 1], got " + Scalar(value).str());
}

}  // namespace

// ---- the mLSTM -----------------------------------------------------------------------------------------

/// The memory of an mLSTM from step to step; a new one is all 0.
struct MatrixMemory {
  Tensor c;        ///< C, with n as its last column, [B, H, d, d + 1]
  Tensor m;        ///< the largest exponent so far, by which C and n are scaled down, [B, H]
  Tensor started;  ///< 1 where a step has been made, so that m is valid, [B, 1]
};

/// The inputs of the memory: q, k (already divided by sqrt(d)) and v [..., H, d]; i and log f [..., H].
struct MatrixSteps {
  Tensor q, k, v, i, log_f;
};

namespace {

/// The exponent of an empty memory and of a hidden step: minus infinity in effect, but finite, so that differences are
/// not NaN.
constexpr double kNewMemory = -1e30;

/// Appends a column of ones, which adds up to n: v [..., d] -> [..., d + 1].
inline Tensor with_one(const Tensor& v) {
  Shape shape = v.shape();
  shape[-1] = 1;
  return concat({v, ones(shape, v.dtype())}, -1);
}

/// Returns the divisor of what a query reads, max(|n|, exp(-m)) + 1e-6, with exp(-m) bounded so that it stays finite.
inline Tensor normaliser(const Tensor& n, const Tensor& m) {
  const Tensor least = exp(minimum(-m, 80));
  return maximum(abs(n), least) + 1e-6;
}

// The memory of an mLSTM step by step: the definition, and its scan.

/// Computes one step, [B, H, d] -> h [B, H, d], which defines the memory.
Tensor matrix_memory_step(const MatrixSteps& x, MatrixMemory& memory) {
  const std::int64_t d = x.q.shape()[2];
  const Tensor decayed = x.log_f + where(ne(memory.started, 0), memory.m, kNewMemory);  // [B, H]
  const Tensor m = maximum(decayed, x.i);
  const auto wide = [](const Tensor& t) { return unsqueeze(unsqueeze(t, 2), 3); };
  const Tensor v1 = unsqueeze(with_one(x.v), 2);  // [B, H, 1, d + 1]
  // Terms have names in the order of docs/numerics.md, rule 13.
  const Tensor added = unsqueeze(x.k, 3) * v1, entering = wide(exp(x.i - m)) * added;
  memory.c = wide(exp(decayed - m)) * memory.c + entering;
  memory.m = m;
  memory.started = ones_like(memory.started);
  const Tensor seen = squeeze(matmul(unsqueeze(x.q, 2), memory.c), 2);  // [B, H, d + 1]
  const Tensor by = normaliser(slice(seen, 2, d), unsqueeze(m, 2));
  return slice(seen, 2, 0, d) / by;
}

/// Runs all steps in order, [B, T, H, d] -> h [B, T, H, d]. Lengths and resets are batch first.
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

// The memory of an mLSTM in chunks of steps: masked products within a chunk, C and m from one chunk to the next.
//
// Let F be the sums of log f within a chunk and a = i - F. Then the exponent of step s at step t is F_t + a_s and the
// stabiliser is m_t = F_t + A_t, where A_t is the largest a up to t or the m with which the chunk begins; F_t cancels
// in their difference. Exponents are f64, because F may be large where its differences are small.

Tensor last(const Tensor& x) { return slice(x, -1, x.shape()[-1] - 1); }

/// Moves x [..., n] by k places along its last axis, with `fill` before it.
Tensor shifted(const Tensor& x, std::int64_t k, double fill) {
  Shape before = x.shape();
  before[-1] = k;
  return concat({full(before, fill, x.dtype()), slice(x, -1, 0, x.shape()[-1] - k)}, -1);
}

/// A tensor in f64, rounded to another dtype, and the exponential of the rounding error, whose gradient is 0.
struct Rounded {
  Tensor value, rest;

  Rounded(const Tensor& x, Dtype dtype) : value(cast(x, dtype)) {
    if (dtype == Dtype::f64) return;
    const Tensor of = detach(x);
    rest = exp(clamp(cast(of - cast(detach(value), Dtype::f64), dtype), -1, 1));  // rounding -1e30 leaves a large error
  }
};

/// The layout of T steps in N chunks of C steps; the last steps may lie after the end of the sequence.
struct Chunks {
  std::int64_t T, N, C;
  Tensor steps;   ///< the steps of each chunk, i64 [N, C]
  Tensor resets;  ///< the last reset up to each step, i64 [B, 1, N, C], or undefined

  Chunks(std::int64_t steps_in_all, std::int64_t most, const Tensor& last_resets)
      : T(steps_in_all), N((T + most - 1) / most), C((T + N - 1) / N), steps(reshape(arange(N * C), {N, C})) {
    if (!last_resets.defined()) return;
    const std::int64_t B = last_resets.shape()[0];
    const Tensor behind = expand(slice(last_resets, 1, T - 1), {B, N * C - T});
    resets = reshape(concat({last_resets, behind}, 1), {B, 1, N, C});
  }

  /// Cuts a sequence into chunks, with `fill` after its end: [B, T, H, ...] -> [B, H, N, C, ...].
  Tensor cut(const Tensor& x, double fill) const {
    Shape after = Shape::filled(x.rank(), 0), shape = x.shape(), order = {0, 3, 1, 2};
    after[1] = N * C - T;
    shape[1] = C;
    shape.insert(1, N);
    if (x.rank() == 4) order.push_back(4);
    const Shape none = Shape::filled(x.rank(), 0);
    return contiguous(permute(reshape(after[1] ? pad(x, none, after, fill) : x, shape), order));
  }
  /// Joins the chunks of a sequence: [B, H, N, C, d] -> [B, T, H, d].
  Tensor joined(const Tensor& x) const {
    const Shape& s = x.shape();
    return slice(reshape(permute(x, {0, 2, 3, 1, 4}), {s[0], N * C, s[1], s[4]}), 1, 0, T);
  }
  /// Returns whether a reset lies between the start of a chunk and each of its steps, bool [B, 1, N, C].
  Tensor parted_from_start() const { return ge(resets, slice(steps, 1, 0, 1)); }
  /// Returns the exponent that hides from step t of a chunk the steps s that it does not see, 0 for those that it sees:
  /// [C, C] or [B, 1, N, C, C].
  Tensor hiding(Dtype dtype) const {
    Tensor shown = le(unsqueeze(arange(C), 0), unsqueeze(arange(C), 1));
    if (resets.defined()) shown = shown && ge(unsqueeze(steps, 1), unsqueeze(resets, 4));
    return where(shown, zeros({}, dtype), kNewMemory);
  }
  /// Returns the largest x [B, H, N, C] up to each step of a chunk, from its last reset on.
  Tensor running_max(Tensor x) const {
    for (std::int64_t n = 1; n < C; n *= 2) {
      Tensor further = shifted(x, n, kNewMemory);
      if (resets.defined()) further = where(lt(steps - n, resets), kNewMemory, further);
      x = maximum(x, further);
    }
    return x;
  }
};

/// Returns a_s - b_t for all t and s, [..., C] -> [..., t, s], by a product, which is faster than broadcasting.
Tensor differences(const Tensor& a, const Tensor& b) {
  const Tensor one = ones_like(a);
  return matmul(stack({one, -b}, -1), stack({a, one}, -2));
}

/// Returns the sums along the last axis up to each step.
Tensor running_sum(Tensor x) {
  for (std::int64_t n = 1; n < x.shape()[-1]; n *= 2) x = x + shifted(x, n, 0);
  return x;
}

/// Returns m_0 = m[0], m_j = max(m_(j-1) + g[j], m[j]) along the last axis.
Tensor stabilisers(Tensor g, Tensor m) {
  for (std::int64_t n = 1; n < m.shape()[-1]; n *= 2) {
    m = maximum(m, shifted(m, n, kNewMemory) + g);
    g = g + shifted(g, n, 0);
  }
  return m;
}

/// Runs all steps in chunks of at most `chunk` steps. All numbers must be finite, because hidden steps are multiplied
/// by 0. `resets` are those of last_resets.
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
  Tensor passing = squeeze(all_f, 3);  // [B, H, N], the log factor of a chunk's first memory at its end
  if (chunks.resets.defined()) passing = where(squeeze(last(chunks.parted_from_start()), 3), kNewMemory, passing);
  const Tensor m0 = cast(unsqueeze(where(ne(memory.started, 0), memory.m, kNewMemory), 2), Dtype::f64);
  const Tensor m = stabilisers(concat({zeros({B, H, 1}, Dtype::f64), passing}, 2),
                               concat({m0, squeeze(all_f + last(largest), 3)}, 2));  // [B, H, N + 1]
  const Tensor m_before = slice(m, 2, 0, N), m_after = slice(m, 2, 1);

  // The memory between chunks.
  Tensor leaving = all_f + a - unsqueeze(m_after, 3);
  if (chunks.resets.defined()) leaving = where(lt(chunks.steps, last(chunks.resets)), kNewMemory, leaving);
  const Tensor added = matmul(transpose(k * unsqueeze(exp_of(leaving), 4)), v1);
  const std::int64_t elements = d * (d + 1);
  const Tensor kept = reshape(exp_of(m_before + passing - m_after), {B * H, N, 1});
  const Tensor states = linear_scan(expand(kept, {B * H, N, elements}), reshape(added, {B * H, N, elements}),
                                    reshape(memory.c, {B * H, elements}));
  const Tensor c = concat({unsqueeze(memory.c, 2), reshape(states, {B, H, N, d, d + 1})}, 2);

  // The steps within chunks.
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

/// The steps of a sequence that are not finite, and those after them up to a reset.
class Blemishes {
 public:
  /// Finds the steps of x [B, T, D] and the rows of states [B, ...] that are not finite, and replaces them by 0.
  /// `resets` are those of last_resets, or undefined.
  Blemishes(Tensor& x, Tensors& states, const Tensor& resets);
  /// Returns y [B, T, N] with NaN at steps that are not finite or come after one.
  Tensor in(const Tensor& y) const;
  /// Returns a state [B, ...] with NaN where the last step is not finite or comes after one.
  Tensor at_end(const Tensor& state) const;

 private:
  Tensor seen_;  ///< whether each step is not finite or comes after one, bool [B, T]
};

// The steps of a sequence that are not finite.

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Reshapes a mask [B] so that it broadcasts over rows [B, ...].
Tensor of_rows(const Tensor& mask, const Tensor& rows) {
  Shape shape = Shape::filled(rows.rank(), 1);
  shape[0] = rows.shape()[0];
  return reshape(mask, shape);
}

Blemishes::Blemishes(Tensor& x, Tensors& states, const Tensor& resets) {
  const Tensor bad = !isfinite(sum(x, {2}));
  x = where(unsqueeze(bad, 2), 0, x);
  Tensor before;
  for (const Tensor& s : states) {
    Shape row = s.shape();
    row[0] = 1;
    const Tensor of_s = !isfinite(sum(reshape(s, {s.shape()[0], row.numel()}), {1}));
    before = before.defined() ? before || of_s : of_s;
  }
  for (Tensor& s : states) s = where(of_rows(before, s), 0, s);
  const Tensor none = full({}, kNoReset - 1, Dtype::i64), start = full({}, kNoReset, Dtype::i64);
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  Tensor at = where(bad, arange(T), none);  // the last bad step up to each step; each round looks back twice as far
  for (std::int64_t n = 1; n < T; n *= 2) at = maximum(at, concat({expand(none, {B, n}), slice(at, 1, 0, T - n)}, 1));
  seen_ = ge(maximum(at, unsqueeze(where(before, start, none), 1)), resets.defined() ? resets : start);
}

Tensor Blemishes::in(const Tensor& y) const { return where(unsqueeze(seen_, 2), kNaN, y); }

Tensor Blemishes::at_end(const Tensor& state) const { return where(of_rows(select(seen_, 1, -1), state), kNaN, state); }

}  // namespace

}  // namespace ferrite::nn::detail

// The mLSTM layer: the products around its memory.

namespace ferrite::nn {
namespace {

void check(const MLstmOptions& o) {
  const auto least = [](const char* option, std::int64_t value) { detail::check_least("mlstm", option, value); };
  least("embedding_dim", o.embedding_dim), least("num_heads", o.num_heads), least("round_up_to", o.round_up_to);
  least("conv1d_kernel_size", o.conv1d_kernel_size), least("qkv_proj_blocksize", o.qkv_proj_blocksize);
  least("num_blocks", o.num_blocks), least("chunk", o.chunk);
  detail::check_probability("mlstm", "dropout", o.dropout);
  if (!(o.proj_factor > 0 && o.proj_factor * static_cast<double>(o.embedding_dim) < 1e9))
    throw ValueError("mlstm: proj_factor must be positive and give less than 1e9 features, got " +
                     Scalar(o.proj_factor).str());
  const std::int64_t I = o.inner();
  if (I % o.num_heads != 0 || I % o.qkv_proj_blocksize != 0)
    throw ValueError("mlstm: num_heads and qkv_proj_blocksize must divide the " + std::to_string(I) +
                     " inner features, got " + std::to_string(o.num_heads) + " and " +
                     std::to_string(o.qkv_proj_blocksize));
}

std::vector<RowState> states_of(const MLstmOptions& o) {
  check(o);
  const std::int64_t H = o.num_heads, d = o.inner() / H;
  std::vector<RowState> all = {{"c", {H, d, d + 1}}, {"m", {H}}, {"started", {1}}};
  if (o.conv1d_kernel_size > 1) all.insert(all.begin(), {"conv", {o.conv1d_kernel_size - 1, o.inner()}});
  return all;
}

/// Returns the first bias of the forget gates, from 3 to 6 in even steps.
Tensor forget_bias(const Shape& shape, const RandomKey&, Dtype dtype) { return linspace(3, 6, shape[0], dtype); }

}  // namespace

std::int64_t MLstmOptions::inner() const {
  const double multiple = static_cast<double>(round_up_to);
  return round_up_to *
         static_cast<std::int64_t>(std::ceil(proj_factor * static_cast<double>(embedding_dim) / multiple));
}

MLstm::MLstm(const MLstmOptions& o, const Init& init) : LayerOf(o, name, o.embedding_dim, states_of(o), init) {
  const std::int64_t D = o.embedding_dim, I = o.inner(), H = o.num_heads, P = o.qkv_proj_blocksize;
  const Fill zero = init::constant(0), small = detail::small_fill(D), conv = detail::conv_fill(o.conv1d_kernel_size);
  const auto headwise = [&](const std::string& at, Parameter& weight, Parameter& bias) {
    weight = parameter(at + ".weight", {I / P, P, P}, small, init);
    if (o.bias) bias = parameter(at + ".bias", {I}, zero, init);
  };
  learnable_skip = parameter("learnable_skip", {I}, init::constant(1), init);
  proj_up_weight = parameter("proj_up.weight", {D, 2 * I}, small, init, FileLayout::transposed);
  if (o.bias) proj_up_bias = parameter("proj_up.bias", {2 * I}, zero, init);
  headwise("q_proj", q_proj_weight, q_proj_bias);
  headwise("k_proj", k_proj_weight, k_proj_bias);
  headwise("v_proj", v_proj_weight, v_proj_bias);
  conv1d_weight = parameter("conv1d.conv.weight", {I, 1, o.conv1d_kernel_size}, conv, init);
  conv1d_bias = parameter("conv1d.conv.bias", {I}, conv, init);
  igate_weight = parameter("mlstm_cell.igate.weight", {3 * I, H}, zero, init, FileLayout::transposed);
  igate_bias = parameter("mlstm_cell.igate.bias", {H}, init::normal(0, 0.1), init);
  fgate_weight = parameter("mlstm_cell.fgate.weight", {3 * I, H}, zero, init, FileLayout::transposed);
  fgate_bias = parameter("mlstm_cell.fgate.bias", {H}, Fill(forget_bias, /*random=*/false), init);
  outnorm_weight = parameter("mlstm_cell.outnorm.weight", {I}, zero, init);
  const Fill down = init::normal(0, 2 / (static_cast<double>(o.num_blocks) * std::sqrt(static_cast<double>(D))));
  proj_down_weight = parameter("proj_down.weight", {I, D}, down, init, FileLayout::transposed);
  if (o.bias) proj_down_bias = parameter("proj_down.bias", {D}, zero, init);
  if (o.dropout > 0) {
    dropout_.emplace(o.dropout, init.child("dropout"));
    adopt("dropout", *dropout_);
  }
}

/// The inputs of the memory, and the values that bypass it, [..., I] each.
struct MLstm::Inner {
  detail::MatrixSteps steps;
  Tensor skipped, gate;
};

/// Computes them from x proj_up [..., 2 I] and the convolution of its first half.
MLstm::Inner MLstm::inner_of(const Tensor& up, const Tensor& convolved) const {
  const std::int64_t I = options().inner(), H = options().num_heads;
  const Tensor u = silu(convolved);
  const Tensor q = detail::headwise(u, q_proj_weight, detail::value_of(q_proj_bias));
  const Tensor k = detail::headwise(u, k_proj_weight, detail::value_of(k_proj_bias));
  const Tensor v = detail::headwise(slice(up, -1, 0, I), v_proj_weight, detail::value_of(v_proj_bias));
  const Tensor qkv = concat({q, k, v}, -1);
  Shape by_head = q.shape();
  by_head[-1] = H;
  by_head.push_back(I / H);
  const Tensor scaled = k * (1 / std::sqrt(static_cast<double>(I / H)));
  return {{reshape(q, by_head), reshape(scaled, by_head), reshape(v, by_head), affine(qkv, igate_weight, igate_bias),
           log_sigmoid(affine(qkv, fgate_weight, fgate_bias))},
          learnable_skip * u,
          silu(slice(up, -1, I))};
}

/// Computes the layer's result from the memory's output: h [..., H, d] -> [..., D].
Tensor MLstm::result_of(const Tensor& h, const Inner& inner) const {
  const Tensor flat = reshape(h, inner.gate.shape());
  const Tensor normed = detail::head_norm(flat, options().num_heads, outnorm_weight);
  const Tensor y = affine((normed + inner.skipped) * inner.gate, proj_down_weight, detail::value_of(proj_down_bias));
  return dropout_ ? (*dropout_)(y) : y;
}

Tensor MLstm::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  const Tensor resets = detail::last_resets(o);
  if (options().chunk == 1) return run_finite(x, o, resets, states);
  Tensor finite = x;
  const detail::Blemishes blemishes(finite, states, resets);
  const Tensor y = run_finite(finite, o, resets, states);
  for (std::size_t i = states.size() - 3; i < states.size() - 1; ++i) states[i] = blemishes.at_end(states[i]);
  return blemishes.in(y);
}

/// Runs a sequence; if it runs in chunks, x and states must be finite.
Tensor MLstm::run_finite(const Tensor& x, const SequenceOptions& o, const Tensor& resets, Tensors& states) const {
  const std::size_t at = states.size() - 3;  // the convolution's memory is first, if there is one
  Tensor past = at > 0 ? states[0] : Tensor();
  const Tensor up = affine(x, proj_up_weight, detail::value_of(proj_up_bias));
  const Tensor convolved =
      detail::causal_conv(slice(up, 2, 0, options().inner()), conv1d_weight, conv1d_bias, o, resets, past);
  const Inner inner = inner_of(up, convolved);
  detail::MatrixMemory memory{states[at], states[at + 1], states[at + 2]};
  const std::int64_t chunk = options().chunk;
  const Tensor h = chunk == 1 ? detail::matrix_memory_by_steps(inner.steps, o, memory)
                              : detail::matrix_memory_by_chunks(inner.steps, o, resets, chunk, memory);
  if (at > 0) states[0] = past;
  states[at] = memory.c, states[at + 1] = memory.m, states[at + 2] = memory.started;
  return result_of(h, inner);
}

Tensor MLstm::run_step(const Tensor& x, Tensors& states) const {
  const std::size_t at = states.size() - 3;
  Tensor past = at > 0 ? states[0] : Tensor();
  const Tensor up = affine(x, proj_up_weight, detail::value_of(proj_up_bias));
  const Tensor convolved =
      detail::causal_conv_step(slice(up, 1, 0, options().inner()), conv1d_weight, conv1d_bias, past);
  const Inner inner = inner_of(up, convolved);
  detail::MatrixMemory memory{states[at], states[at + 1], states[at + 2]};
  const Tensor h = detail::matrix_memory_step(inner.steps, memory);
  if (at > 0) states[0] = past;
  states[at] = memory.c, states[at + 1] = memory.m, states[at + 2] = memory.started;
  return result_of(h, inner);
}

template class LayerOf<MLstm, MLstmOptions, SequenceLayer>;

// ---- the sLSTM -----------------------------------------------------------------------------------------

namespace {

/// The exponent of an empty state: minus infinity in effect, but finite, so that differences are not NaN.
constexpr double kNew = -1e30;

void check(const SLstmOptions& o) {
  const auto least = [](const char* option, std::int64_t value, std::int64_t n) {
    detail::check_least("slstm", option, value, n);
  };
  least("embedding_dim", o.embedding_dim, 1), least("num_heads", o.num_heads, 1);
  least("conv1d_kernel_size", o.conv1d_kernel_size, 0), least("num_blocks", o.num_blocks, 1);
  detail::check_probability("slstm", "dropout", o.dropout);
  if (o.embedding_dim % o.num_heads != 0)
    throw ValueError("slstm: num_heads must divide embedding_dim, got " + std::to_string(o.num_heads) + " and " +
                     std::to_string(o.embedding_dim));
  if (o.block_index < 0 || o.block_index >= o.num_blocks)
    throw ValueError("slstm: block_index must lie in 0..num_blocks - 1, got " + std::to_string(o.block_index) + " of " +
                     std::to_string(o.num_blocks));
}

std::vector<RowState> states_of(const SLstmOptions& o) {
  check(o);
  const std::int64_t D = o.embedding_dim;
  std::vector<RowState> all = {{"h", {D}}, {"c", {D}}, {"n", {D}}, {"m", {D}}};
  if (o.conv1d_kernel_size > 1) all.insert(all.begin(), {"conv", {o.conv1d_kernel_size - 1, D}});
  return all;
}

/// Returns the initialiser of the bias [4 D]: 5 - 12 (j / (d - 1))^p in gate f for unit j of each head, else 0.
Fill bias_fill(const SLstmOptions& o) {
  const std::int64_t D = o.embedding_dim, d = D / o.num_heads;
  const double part = o.num_blocks > 1 ? static_cast<double>(o.block_index) / static_cast<double>(o.num_blocks - 1) : 0;
  std::vector<double> values(static_cast<std::size_t>(4 * D), 0.0);
  for (std::int64_t j = 0; j < D; ++j) {
    const double at = d > 1 ? static_cast<double>(j % d) / static_cast<double>(d - 1) : 0;
    values[static_cast<std::size_t>(D + j)] = 5 - 12 * std::pow(at, 0.3 + 1.3 * part);
  }
  return Fill(
      [values](const Shape& shape, const RandomKey&, Dtype dtype) { return cast(Tensor::from(values, shape), dtype); },
      /*random=*/false);
}

}  // namespace

SLstm::SLstm(const SLstmOptions& o, const Init& init) : LayerOf(o, name, o.embedding_dim, states_of(o), init) {
  const std::int64_t D = o.embedding_dim, H = o.num_heads, d = D / H, K = o.conv1d_kernel_size;
  const Fill zero = init::constant(0), small = detail::small_fill(D);
  if (K > 0) {
    conv1d_weight = parameter("conv1d.conv.weight", {D, 1, K}, detail::conv_fill(K), init);
    conv1d_bias = parameter("conv1d.conv.bias", {D}, detail::conv_fill(K), init);
  }
  fgate_weight = parameter("fgate.weight", {H, d, d}, small, init);
  igate_weight = parameter("igate.weight", {H, d, d}, small, init);
  zgate_weight = parameter("zgate.weight", {H, d, d}, small, init);
  ogate_weight = parameter("ogate.weight", {H, d, d}, small, init);
  recurrent_kernel = parameter("slstm_cell._recurrent_kernel_", {H, 4 * d, d}, zero, init);
  bias = parameter("slstm_cell._bias_", {4 * D}, bias_fill(o), init);
  if (o.group_norm_weight) group_norm_weight = parameter("group_norm.weight", {D}, zero, init);
  if (o.dropout > 0) {
    dropout_.emplace(o.dropout, init.child("dropout"));
    adopt("dropout", *dropout_);
  }
}

/// Returns the inputs' part of the gates [..., 4 D], with i, f, z, o in each head like the products with h. If
/// `convolved` is undefined, gates i and f see x.
Tensor SLstm::gates_of(const Tensor& x, const Tensor& convolved) const {
  const std::int64_t D = options().embedding_dim, H = options().num_heads, d = D / H;
  const Tensor u = convolved.defined() ? silu(convolved) : x;
  const Tensors by_gate = {detail::headwise(u, fgate_weight), detail::headwise(u, igate_weight),
                           detail::headwise(x, zgate_weight), detail::headwise(x, ogate_weight)};
  Shape by_head = x.shape(), shape = x.shape();
  by_head[-1] = H;
  by_head.push_back(d);
  shape[-1] = 4 * D;
  Tensors heads;
  for (std::size_t g = 0; g < 4; ++g) {
    const auto from = static_cast<std::int64_t>(g) * D;
    heads.push_back(reshape(by_gate[g] + slice(bias, 0, from, from + D), by_head));
  }
  return reshape(stack(std::span<const Tensor>(heads.data(), heads.size()), -2), shape);
}

/// Computes one step: the inputs' part of the gates [B, 4 D] and {h, c, n, m} [B, D] -> the states after it.
Tensors SLstm::cell(const Tensor& gates, const Tensors& before) const {
  const std::int64_t B = gates.shape()[0], D = options().embedding_dim, H = options().num_heads, d = D / H;
  const Tensor seen = transpose(matmul(transpose(reshape(before[0], {B, H, d}), 0, 1), transpose(recurrent_kernel)), 0,
                                1);  // [B, H, 4 d]
  const Tensor all = reshape(gates, {B, H, 4, d}) + reshape(seen, {B, H, 4, d});
  const auto gate = [&](std::int64_t g) { return reshape(select(all, 2, g), {B, D}); };
  const Tensor i = gate(0), &n = before[2];
  const Tensor decayed = log_sigmoid(gate(1)) + where(eq(n, 0), kNew, before[3]);
  const Tensor m_after = maximum(i, decayed);
  const Tensor in = exp(i - m_after), kept = exp(decayed - m_after);
  const Tensor c_after = kept * before[1] + in * tanh(gate(2)), n_after = kept * n + in;
  return {sigmoid(gate(3)) * c_after / n_after, c_after, n_after, m_after};
}

Tensor SLstm::result_of(const Tensor& h) const {
  return detail::head_norm(dropout_ ? (*dropout_)(h) : h, options().num_heads, detail::value_of(group_norm_weight));
}

Tensor SLstm::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  Tensor convolved;
  if (options().conv1d_kernel_size > 0) {
    Tensor past = states.size() > 4 ? states[0] : Tensor();
    convolved = detail::causal_conv(x, conv1d_weight, conv1d_bias, o, detail::last_resets(o), past);
    if (states.size() > 4) states[0] = past;
  }
  Tensors xs = {transpose(gates_of(x, convolved), 0, 1)};
  if (o.resets.defined()) xs.push_back(transpose(o.resets, 0, 1));
  const auto step = [this](const Tensors& carry, const Tensors& in) -> ScanStep {
    Tensors before = carry;
    if (in.size() > 1)
      for (Tensor& t : before) t = where(unsqueeze(in[1], 1), 0, t);
    Tensors after = cell(in[0], before);
    Tensor h = after[0];
    return {std::move(after), {std::move(h)}};
  };
  const ScanResult r = scan(step, Tensors(states.end() - 4, states.end()), xs, {.lengths = o.lengths});
  std::copy(r.carry.begin(), r.carry.end(), states.end() - 4);
  return result_of(transpose(r.y[0], 0, 1));
}

Tensor SLstm::run_step(const Tensor& x, Tensors& states) const {
  Tensor convolved;
  if (options().conv1d_kernel_size > 0) {
    Tensor past = states.size() > 4 ? states[0] : Tensor();
    convolved = detail::causal_conv_step(x, conv1d_weight, conv1d_bias, past);
    if (states.size() > 4) states[0] = past;
  }
  const Tensors after = cell(gates_of(x, convolved), Tensors(states.end() - 4, states.end()));
  std::copy(after.begin(), after.end(), states.end() - 4);
  return result_of(after[0]);
}

template class LayerOf<SLstm, SLstmOptions, SequenceLayer>;

}  // namespace ferrite::nn
