/// Lowers attention, its linear form, rotary positions, and the causal convolution with a state that precedes them.
#include <cmath>
#include <limits>
#include <optional>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/attention.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::onnx::detail {
namespace {

/// Splits heads: [B, T, heads D] -> [B, heads, T, D].
Tensor unpacked(const Call& call, const Tensor& x, std::int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    call.refuse(std::to_string(heads) + " heads do not divide " + x.shape().str());
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}
/// Joins heads: [B, heads, T, D] -> [B, T, heads D].
Tensor packed(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

/// Returns the numbers of n steps as a column, [n, 1], or as a row, [1, n].
Tensor steps(std::int64_t n, bool column) {
  return reshape(arange(0, n, 1, Dtype::i64), column ? Shape{n, 1} : Shape{1, n});
}

/// The two parts of a mask: which keys are visible, and what is added to the scores; either may be undefined.
struct Masks {
  Tensor seen{}, added{};
};
void restrict(Masks& m, const Tensor& seen) { m.seen = m.seen.defined() ? m.seen && seen : seen; }

Masks masks_of(const Call& call, std::int64_t queries, std::int64_t keys, std::int64_t past) {
  Masks m;
  if (call.has(3)) {
    Tensor mask = call.tensor(3);
    const std::int64_t missing = keys - mask.size(-1);
    const bool logical = mask.dtype() == Dtype::boolean;
    if (missing > 0) {  // keys beyond the mask are hidden
      Shape shape = mask.shape();
      shape[shape.rank() - 1] = missing;
      const double hidden = -std::numeric_limits<double>::infinity();
      mask = concat({mask, logical ? zeros(shape, Dtype::boolean) : full(shape, hidden, mask.dtype())}, -1);
    }
    (logical ? m.seen : m.added) = mask;
  }
  Tensor offset = full({}, past, Dtype::i64);
  if (call.has(6)) {
    const Tensor valid = reshape(cast(call.tensor(6), Dtype::i64), {-1, 1, 1, 1});
    offset = valid - queries;
    restrict(m, lt(reshape(steps(keys, false), {1, 1, 1, keys}), valid));
  }
  const std::int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  if (left < -1 || right < -1) call.refuse("window sizes must be -1 or more");
  const Tensor ahead = steps(keys, false) - (steps(queries, true) + offset);
  if (call.integer("is_causal", 0) != 0) restrict(m, le(ahead, 0));
  if (left >= 0) restrict(m, ge(ahead, -left));
  if (right >= 0) restrict(m, le(ahead, right));
  return m;
}

Values attention(const Call& call) {
  const ElementType type = call.type(0);
  const bool flat = call.tensor(0).rank() == 3;
  Tensor q = call.tensor(0), k = call.tensor(1), v = call.tensor(2);
  if (flat) {
    const std::int64_t heads = call.integer("kv_num_heads");
    q = unpacked(call, q, call.integer("q_num_heads"));
    k = unpacked(call, k, heads);
    v = unpacked(call, v, heads);
  } else {  // the axis gives the number of heads
    call.without_effect("q_num_heads");
    call.without_effect("kv_num_heads");
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) call.refuse("its inputs must be of rank 3 or 4");
  std::int64_t past = 0;
  if (call.has(4) != call.has(5)) call.refuse("past_key and past_value come together");
  if (call.has(4)) {
    if (call.has(6)) call.refuse("nonpad_kv_seqlen does not go with past_key");
    past = call.tensor(4).size(2);
    k = concat({call.tensor(4), k}, 2);
    v = concat({call.tensor(5), v}, 2);
  }
  const Values present{{k, call.type(1)}, {v, call.type(2)}};
  const std::int64_t queries = q.size(2), keys = k.size(2);
  const Masks masks = masks_of(call, queries, keys, past);
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.size(3))));
  const double softcap = call.number("softcap", 0.0);
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  const auto precision = static_cast<ElementType>(call.integer("softmax_precision", static_cast<std::int64_t>(type)));
  if (q.size(1) % k.size(1) != 0) call.refuse("heads of keys do not divide those of queries");
  const bool plain = (type == ElementType::f32 || type == ElementType::f64) && precision == type && softcap == 0;
  if (plain && !call.wants(3)) {
    Tensor mask = masks.added;
    if (masks.seen.defined())
      mask =
          masks.added.defined() ? where(masks.seen, masks.added, -std::numeric_limits<double>::infinity()) : masks.seen;
    AttentionOptions options{.mask = mask, .scale = scale, .enable_gqa = q.size(1) != k.size(1)};
    const Tensor y = scaled_dot_product_attention(q, k, v, options);
    return {{flat ? packed(y) : y, type}, present[0], present[1], {}};
  }
  const std::int64_t share = q.size(1) / k.size(1);
  if (share > 1) {
    k = repeat_interleave(k, share, 1);
    v = repeat_interleave(v, share, 1);
  }
  const auto rounded = [&](const Tensor& x) { return narrowed(x, type).tensor; };
  const Tensor root = rounded(full({}, std::sqrt(scale), q.dtype()));
  const Tensor product = rounded(matmul(rounded(q * root), transpose(rounded(k * root))));
  const Tensor capped = softcap > 0 ? rounded(tanh(product / softcap) * softcap) : product;
  Tensor biased = masks.added.defined() ? rounded(capped + masks.added) : capped;
  if (masks.seen.defined()) biased = where(masks.seen, biased, -std::numeric_limits<double>::infinity());
  // A query that sees no key has weights of 0.
  Tensor bias = masks.added.defined() ? masks.added : zeros({1, 1}, biased.dtype());
  if (masks.seen.defined()) bias = where(masks.seen, bias, -std::numeric_limits<double>::infinity());
  const Tensor blind = eq(amax(bias, {-1}, true), -std::numeric_limits<double>::infinity());
  const Tensor scores = cast(where(blind, zeros_like(biased), biased), dtype_for(precision));
  const Tensor probabilities = softmax_of(scores, 3, precision);
  const Tensor weights = rounded(cast(where(blind, zeros_like(probabilities), probabilities), q.dtype()));
  const Tensor y = rounded(matmul(weights, v));
  const Tensor shown = mode == 0 ? product : mode == 1 ? capped : mode == 2 ? biased : weights;
  if (mode < 0 || mode > 3) call.refuse("qk_matmul_output_mode " + std::to_string(mode) + " is not supported");
  return {{flat ? packed(y) : y, type}, present[0], present[1], {shown, type}};
}

Values rotary(const Call& call) {
  Tensor x = call.tensor(0);
  const bool flat = x.rank() == 3;
  const std::int64_t heads = call.integer("num_heads", 0);
  if (flat)
    x = reshape(x, {x.size(0), x.size(1), heads > 0 ? heads : 1, heads > 0 ? x.size(2) / heads : x.size(2)});
  else
    x = permute(x, {0, 2, 1, 3});  // [B, T, heads, D]
  if (flat && heads < 1) call.refuse("num_heads is missing");
  std::int64_t turned = call.integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = x.size(3);
  if (turned < 2 || turned % 2 != 0 || turned > x.size(3)) call.refuse("rotary_embedding_dim does not fit");
  const auto cache = [&](std::size_t i) {
    Tensor t = call.tensor(i);
    if (call.has(3)) {
      const Tensor& places = call.tensor(3);
      t = reshape(index_select(t, 0, reshape(places, {places.numel()})), {places.size(0), places.size(1), t.size(-1)});
    }
    if (t.size(-1) != turned / 2) call.refuse("the caches do not fit rotary_embedding_dim");
    return unsqueeze(t, 2);
  };
  const Tensor cosine = cache(1), sine = cache(2);
  const Tensor part = slice(x, 3, 0, turned), rest = slice(x, 3, turned);
  const bool interleaved = call.integer("interleaved", 0) != 0;
  const Tensor a = interleaved ? slice(part, 3, 0, kEnd, 2) : slice(part, 3, 0, turned / 2);
  const Tensor b = interleaved ? slice(part, 3, 1, kEnd, 2) : slice(part, 3, turned / 2);
  const Tensor real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  Tensor y = interleaved ? reshape(stack({real, imaginary}, 4), part.shape()) : concat({real, imaginary}, 3);
  if (rest.size(3) > 0) y = concat({y, rest}, 3);
  y = flat ? reshape(y, call.tensor(0).shape()) : permute(y, {0, 2, 1, 3});
  return {narrowed(y, call.type(0))};
}

/// Lowers LinearAttention step by step, in f32 where the inputs are narrower.
Values linear_attention(const Call& call) {
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") call.refuse("update_rule \"" + rule + "\" is not supported");
  if (gated != call.has(4)) call.refuse("decay does not go with update_rule \"" + rule + "\"");
  if (delta != call.has(5)) call.refuse("beta does not go with update_rule \"" + rule + "\"");
  call.without_effect("chunk_size");  // says how to compute, not what
  const std::int64_t q_heads = call.integer("q_num_heads"), heads = call.integer("kv_num_heads");
  if (heads < 1 || q_heads % heads != 0) call.refuse("q_num_heads is not a multiple of kv_num_heads");
  const Tensor q = unpacked(call, call.tensor(0), q_heads);
  const Tensor k = unpacked(call, call.tensor(1), heads), v = unpacked(call, call.tensor(2), heads);
  const std::int64_t B = q.size(0), T = q.size(2), width = k.size(3), share = q_heads / heads;
  double scale = call.number("scale", 0.0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  Tensor decay, beta;
  if (gated) {
    const Tensor& g = call.tensor(4);
    if (g.rank() != 3 || (g.size(2) != heads && g.size(2) != heads * width)) call.refuse("decay does not fit");
    decay = exp(unpacked(call, g, heads));
  }
  if (delta) beta = unpacked(call, call.tensor(5), call.tensor(5).size(2));
  Tensor state = call.has(3) ? call.tensor(3) : zeros({B, heads, width, v.size(3)}, q.dtype());
  std::vector<Tensor> rows;
  for (std::int64_t t = 0; t < T; ++t) {
    const Tensor key = select(k, 2, t);  // [B, heads, width]
    Tensor value = select(v, 2, t);
    if (gated) state = state * unsqueeze(select(decay, 2, t), 3);
    if (delta) value = select(beta, 2, t) * (value - squeeze(matmul(unsqueeze(key, 2), state), 2));
    state = state + unsqueeze(key, 3) * unsqueeze(value, 2);
    const Tensor read = share > 1 ? repeat_interleave(state, share, 1) : state;
    rows.push_back(squeeze(matmul(unsqueeze(select(q, 2, t), 2), read), 2) * scale);
  }
  if (rows.empty()) call.refuse("there are no steps");
  return {narrowed(packed(stack(rows, 2)), call.type(0)), narrowed(state, call.has(3) ? call.type(3) : call.type(0))};
}

Values causal_convolution(const Call& call) {
  const Tensor &x = call.tensor(0), &weight = call.tensor(1);
  if (x.rank() != 3 || weight.rank() != 3) call.refuse("its input and weight must be of rank 3");
  const std::int64_t before = weight.size(2) - 1;
  const Tensor past = call.has(3) ? call.tensor(3) : zeros({x.size(0), x.size(1), before}, x.dtype());
  const Tensor whole = before > 0 ? concat({past, x}, 2) : x;
  const Tensor bias = call.has(2) ? call.tensor(2) : Tensor{};
  Tensor y = narrowed(conv1d(whole, weight, bias, {.groups = x.size(1)}), call.type(0)).tensor;
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = silu(y);
  else if (activation != "none")
    call.refuse("activation \"" + activation + "\" is not supported");
  return {narrowed(y, call.type(0)), {slice(whole, 2, whole.size(2) - before), call.type(0)}};
}

constexpr Operation kOperations[] = {
    {.name = "Attention", .lower = attention},
    {.name = "RotaryEmbedding", .lower = rotary},
    {.name = "LinearAttention", .lower = linear_attention},
    {.name = "CausalConvWithState", .lower = causal_convolution},
};

}  // namespace

Operations attention_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
