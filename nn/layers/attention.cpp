/// Attention of several heads as a layer: projections, masks, positions, and its step.
#include "ferrite/nn/layers/attention.h"

#include <cmath>
#include <limits>

#include "ferrite/nn/detail/lengths.h"
#include "ferrite/nn/detail/value_of.h"
#include "ferrite/nn/layers/detail/alibi.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

std::string text(std::int64_t n) { return std::to_string(n); }

void check(const MultiheadAttentionOptions& o) {
  const auto refuse = [](const std::string& what) { throw ValueError("multihead_attention: " + what); };
  if (o.embed_dim < 1 || o.num_heads < 1 || o.kv_heads < 0 || o.kdim < 0 || o.vdim < 0 || o.capacity < 1)
    refuse("embed_dim, num_heads and capacity must be positive, kv_heads, kdim and vdim not negative, got " +
           text(o.embed_dim) + ", " + text(o.num_heads) + ", " + text(o.capacity) + ", " + text(o.kv_heads) + ", " +
           text(o.kdim) + " and " + text(o.vdim));
  if (o.embed_dim % o.num_heads != 0)
    refuse("num_heads must divide embed_dim, got " + text(o.num_heads) + " heads of " + text(o.embed_dim));
  if (o.kv_heads > 0 && o.num_heads % o.kv_heads != 0)
    refuse("kv_heads must divide num_heads, got " + text(o.kv_heads) + " and " + text(o.num_heads));
  if (o.positions == Positions::rotary && o.embed_dim / o.num_heads % 2 != 0)
    refuse("rotary positions need heads of even width, got " + text(o.embed_dim / o.num_heads));
  if (!(o.dropout >= 0 && o.dropout <= 1)) refuse("dropout must lie in [0, 1], got " + Scalar(o.dropout).str());
}

/// From each of L queries back to each of S keys [L, S].
Tensor distances_of(std::int64_t L, std::int64_t S) { return reshape(arange(L), {L, 1}) - arange(S); }

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& o, const Init& init) : LayerOf(o, init) {
  check(o);
  const std::int64_t E = o.embed_dim, K = kv_width();
  const Fill xavier = init::xavier_uniform();
  const auto matrix = [&](const char* what, std::int64_t in, std::int64_t out) {
    return parameter(what, {in, out}, xavier, init, FileLayout::transposed);
  };
  if (kdim() == E && vdim() == E) {
    in_proj_weight = matrix("in_proj_weight", E, E + 2 * K);
  } else {
    q_proj_weight = matrix("q_proj_weight", E, E);
    k_proj_weight = matrix("k_proj_weight", kdim(), K);
    v_proj_weight = matrix("v_proj_weight", vdim(), K);
  }
  if (o.bias) in_proj_bias = parameter("in_proj_bias", {E + 2 * K}, init::constant(0), init);
  if (o.add_bias_kv) {
    bias_k = parameter("bias_k", {1, 1, K}, init::xavier_normal(), init);
    bias_v = parameter("bias_v", {1, 1, K}, init::xavier_normal(), init);
  }
  const double bound = 1 / std::sqrt(static_cast<double>(E));
  out_proj_weight = parameter("out_proj.weight", {E, E}, init::uniform(-bound, bound), init, FileLayout::transposed);
  if (o.bias) out_proj_bias = parameter("out_proj.bias", {E}, init::constant(0), init);
  if (o.dropout > 0) adopt("dropout", dropout_.emplace(o.dropout, init.child("dropout")));
}

std::string MultiheadAttention::summary() const {
  std::string s = LayerOf::summary();
  if (options().positions != Positions::none)
    s.insert(s.size() - 1, options().positions == Positions::rotary ? ", positions=rotary" : ", positions=alibi");
  return s;
}

// ---- products --------------------------------------------------------------------------------------------

void MultiheadAttention::check_input(const char* what, const Tensor& x, std::int64_t width) const {
  if (x.rank() != 3 || x.shape()[2] != width)
    throw ShapeError("multihead_attention: expects " + std::string(what) + " [B, T, " + text(width) + "], got " +
                     x.shape().str());
  if (x.shape()[1] == 0)
    throw ShapeError("multihead_attention: the " + std::string(what) + " has no steps: " + x.shape().str());
  if (x.dtype() != out_proj_weight.dtype())
    throw DtypeError("multihead_attention: the weights are " + std::string(name_of(out_proj_weight.dtype())) +
                     ", got " + what + " " + x.spec().str() + "; cast the input");
}

/// x times the columns begin..end of in_proj_weight, or the weight of its own.
Tensor MultiheadAttention::projected(const Tensor& x, std::int64_t begin, std::int64_t end,
                                     const Parameter& own) const {
  const bool whole_weight = own.defined() || (begin == 0 && end == in_proj_weight.shape()[1]);
  const Tensor weight = own.defined()  ? own.value()
                        : whole_weight ? in_proj_weight.value()
                                       : slice(in_proj_weight, 1, begin, end);
  return affine(x, weight, in_proj_bias.defined() ? slice(in_proj_bias, 0, begin, end) : Tensor());
}

/// [B, T, heads W] -> [B, heads, T, W].
Tensor MultiheadAttention::heads_of(const Tensor& x, std::int64_t heads) const {
  return permute(reshape(x, {x.shape()[0], x.shape()[1], heads, head_width()}), {0, 2, 1, 3});
}

Tensor MultiheadAttention::turned(const Tensor& x, const Tensor& positions) const {
  return options().positions == Positions::rotary ? rotary_embedding(x, positions, options().rotary) : x;
}

/// Keys or values [B, heads, S, W] behind the learned one and zeros.
Tensor MultiheadAttention::with_first(const Tensor& x, const Parameter& bias) const {
  if (first_keys() == 0) return x;
  const Shape row = {x.shape()[0], kv_heads(), 1, head_width()};
  Tensors all;
  if (bias.defined()) all.push_back(expand(reshape(bias, {1, kv_heads(), 1, head_width()}), row));
  if (options().add_zero_attn) all.push_back(zeros(row, x.dtype()));
  all.push_back(x);
  return concat(std::span<const Tensor>(all.data(), all.size()), 2);
}

// ---- masks -----------------------------------------------------------------------------------------------

MultiheadAttention::Mask MultiheadAttention::mask_of(const AttentionMasks& masks, std::int64_t B, std::int64_t L,
                                                     std::int64_t S) const {
  const std::int64_t H = options().num_heads;
  Mask all;
  const auto add = [&](const Tensor& mask, const Shape& shape) {
    if (mask.dtype() == Dtype::boolean) {
      const Tensor shown = !reshape(mask, shape);
      all.shown = all.shown.defined() ? all.shown && shown : shown;
    } else if (mask.dtype() == out_proj_weight.dtype()) {
      const Tensor added = reshape(mask, shape);
      all.added = all.added.defined() ? all.added + added : added;
    } else {
      throw DtypeError("multihead_attention: masks must be bool or " + std::string(name_of(out_proj_weight.dtype())) +
                       ", got " + mask.spec().str());
    }
  };
  if (masks.attn_mask.defined()) {
    const Shape& s = masks.attn_mask.shape();
    const auto fits = [](std::int64_t n, std::int64_t all_of) { return n == 1 || n == all_of; };
    if (s == Shape{L, S}) {
      add(masks.attn_mask, {1, 1, L, S});
    } else if (s == Shape{B * H, L, S}) {
      add(masks.attn_mask, {B, H, L, S});
    } else if (s.rank() == 4 && fits(s[0], B) && fits(s[1], H) && fits(s[2], L) && s[3] == S) {
      add(masks.attn_mask, s);
    } else {
      throw ShapeError("multihead_attention: expects attn_mask " + Shape{L, S}.str() + ", " + Shape{B * H, L, S}.str() +
                       " or " + Shape{B, H, L, S}.str() + ", got " + s.str());
    }
  }
  if (masks.key_padding_mask.defined()) {
    if (masks.key_padding_mask.shape() != Shape{B, S})
      throw ShapeError("multihead_attention: expects key_padding_mask " + Shape{B, S}.str() + ", got " +
                       masks.key_padding_mask.shape().str());
    add(masks.key_padding_mask, {B, 1, 1, S});
  }
  return all;
}

/// `distances` from queries back to keys, which `causal` reads where keys stand before the first one, and ALiBi.
AttentionOptions MultiheadAttention::how(Mask mask, const Tensor& distances, bool causal) const {
  AttentionOptions o{.causal = causal && first_keys() == 0, .enable_gqa = kv_heads() != options().num_heads};
  const Dtype dtype = out_proj_weight.dtype();
  if (options().positions == Positions::alibi) {
    const std::int64_t H = options().num_heads;
    const Tensor slopes = cast(Tensor::from(detail::alibi_slopes(H), {H, 1, 1}), dtype);
    const Tensor fall = -(slopes * cast(abs(distances), dtype));
    mask.added = mask.added.defined() ? mask.added + fall : fall;
  }
  if (causal && first_keys() > 0) {
    const Tensor seen = ge(distances, 0);
    mask.shown = mask.shown.defined() ? mask.shown && seen : seen;
  }
  const auto with_first_shown = [&](Tensor& of, Scalar value) {
    if (first_keys() == 0 || !of.defined()) return;
    Shape before = Shape::filled(of.rank(), 0), after = before;
    before[-1] = first_keys();
    of = pad(of, before, after, value);
  };
  with_first_shown(mask.shown, true);
  with_first_shown(mask.added, 0);
  o.mask = !mask.added.defined()   ? mask.shown
           : !mask.shown.defined() ? mask.added
                                   : where(mask.shown, mask.added, kHidden);
  return o;
}

// ---- calls -----------------------------------------------------------------------------------------------

/// [B, L, E] of the heads' weighted values.
Tensor MultiheadAttention::joined(const Heads& h, const AttentionOptions& how) const {
  const std::int64_t B = h.q.shape()[0], H = options().num_heads, G = kv_heads(), L = h.q.shape()[2];
  Tensor y;
  if (dropout_ && training()) {
    const Tensor w = (*dropout_)(attention_weights(h.q, h.k, how));
    y = reshape(matmul(reshape(w, {B, G, H / G, L, w.shape()[3]}), unsqueeze(h.v, 2)), {B, H, L, head_width()});
  } else {
    y = scaled_dot_product_attention(h.q, h.k, h.v, how);
  }
  y = reshape(permute(y, {0, 2, 1, 3}), {B, L, options().embed_dim});
  return affine(y, out_proj_weight, detail::value_of(out_proj_bias));
}

Tensor MultiheadAttention::forward(const Tensor& given, const Context& context) const {
  const MultiheadAttentionOptions& o = options();
  if (!in_proj_weight.defined())
    throw ShapeError("multihead_attention: keys and values of " + text(kdim()) + " and " + text(vdim()) +
                     " features are not those of its queries, " + text(o.embed_dim) + "; call attend");
  check_input("x", given, o.embed_dim);
  const std::int64_t B = given.shape()[0], T = given.shape()[1], E = o.embed_dim, K = kv_width();
  Tensor x = given;
  Mask mask;
  if (context.lengths.defined()) {
    const Tensor lengths = detail::checked_lengths("multihead_attention: a length of", context.lengths, B, T);
    x = ferrite::detail::padding_replaced(given, lengths, true);
    mask.shown = lt(arange(T), reshape(lengths, {B, 1, 1, 1}));
  }
  if (context.reset_mask.defined()) {
    const Tensor& resets = context.reset_mask;
    if (resets.dtype() != Dtype::boolean || resets.shape() != Shape{B, T})
      throw ShapeError("multihead_attention: expects a reset mask bool[" + text(B) + ", " + text(T) + "], got " +
                       resets.spec().str());
    const Tensor part = cumsum(resets, 1);
    const Tensor same = eq(reshape(part, {B, 1, T, 1}), reshape(part, {B, 1, 1, T}));
    mask.shown = mask.shown.defined() ? mask.shown && same : same;
  }
  const Tensor all = projected(x, 0, E + 2 * K, {});
  const Tensor at = arange(T);
  const Tensor q = heads_of(slice(all, 2, 0, E), o.num_heads), k = heads_of(slice(all, 2, E, E + K), kv_heads()),
               v = heads_of(slice(all, 2, E + K), kv_heads());
  return joined({turned(q, at), with_first(turned(k, at), bias_k), with_first(v, bias_v)},
                how(mask, distances_of(T, T), o.causal));
}

Tensor MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionMasks& masks) const {
  return inside([&] {
    const std::int64_t E = options().embed_dim, K = kv_width();
    check_input("query", query, E), check_input("key", key, kdim()), check_input("value", value, vdim());
    const std::int64_t B = query.shape()[0], L = query.shape()[1], S = key.shape()[1];
    if (key.shape()[0] != B || value.shape()[0] != B || value.shape()[1] != S)
      throw ShapeError("multihead_attention: query " + query.shape().str() + ", key " + key.shape().str() +
                       " and value " + value.shape().str() + " must have one batch, key and value as many steps");
    const Tensor q = heads_of(projected(query, 0, E, q_proj_weight), options().num_heads),
                 k = heads_of(projected(key, E, E + K, k_proj_weight), kv_heads()),
                 v = heads_of(projected(value, E + K, E + 2 * K, v_proj_weight), kv_heads());
    return joined({turned(q, arange(L)), with_first(turned(k, arange(S)), bias_k), with_first(v, bias_v)},
                  how(mask_of(masks, B, L, S), distances_of(L, S), options().causal));
  });
}

Tensor MultiheadAttention::weights(const Tensor& query, const Tensor& key, const AttentionMasks& masks) const {
  return inside([&] {
    const std::int64_t E = options().embed_dim, K = kv_width();
    check_input("query", query, E), check_input("key", key, kdim());
    const std::int64_t B = query.shape()[0], L = query.shape()[1], S = key.shape()[1];
    if (key.shape()[0] != B)
      throw ShapeError("multihead_attention: query " + query.shape().str() + " and key " + key.shape().str() +
                       " must have one batch");
    const Tensor q = heads_of(projected(query, 0, E, q_proj_weight), options().num_heads),
                 k = heads_of(projected(key, E, E + K, k_proj_weight), kv_heads());
    return attention_weights(turned(q, arange(L)), with_first(turned(k, arange(S)), bias_k),
                             how(mask_of(masks, B, L, S), distances_of(L, S), options().causal));
  });
}

// ---- streams ---------------------------------------------------------------------------------------------

std::vector<StepState> MultiheadAttention::states(const StepRows& in) const {
  if (!causal()) return {};
  const auto past = [&](const char* what) {
    return StepState{.name = what, .shape = {in.batch, kv_width()}, .dtype = in.dtype, .capacity = options().capacity};
  };
  return {past("keys"), past("values")};
}

StepResult MultiheadAttention::step(const Tensor& x, const Tensors& states) const {
  const MultiheadAttentionOptions& o = options();
  const std::int64_t B = x.shape()[0], C = o.capacity, E = o.embed_dim, K = kv_width(), W = head_width();
  const Tensor &steps = states[2], all = projected(x, 0, E + 2 * K, {});
  const Tensor at = reshape(steps, {B, 1, 1});
  const auto own_heads = [&](std::int64_t begin, std::int64_t end) {
    return reshape(slice(all, 1, begin, end), {B, (end - begin) / W, 1, W});
  };
  const Tensor k = reshape(turned(own_heads(E, E + K), at), {B, K}), v = slice(all, 1, E + K);
  const Tensor own = reshape(eq(arange(C), reshape(steps, {B, 1})), {B, C, 1});
  const auto with_own = [&](const Tensor& past, const Tensor& entry) {
    return heads_of(where(own, unsqueeze(entry, 1), past), kv_heads());
  };
  const Tensor distances = reshape(steps, {B, 1, 1, 1}) - arange(C);
  const Tensor y = joined({turned(own_heads(0, E), at), with_first(with_own(states[0], k), bias_k),
                           with_first(with_own(states[1], v), bias_v)},
                          how({ge(distances, 0), {}}, distances, false));
  return {reshape(y, {B, E}), {k, v}};
}

template class LayerOf<MultiheadAttention, MultiheadAttentionOptions>;

}  // namespace ferrite::nn
