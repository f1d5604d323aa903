/// Multi-head attention, and one step of causal attention for streams.
#include "ferrite/nn/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

/// Returns how much the scores of each head decrease per step: 2^(-8/H), 2^(-16/H), ... If H is not a power of two, the
/// slopes of the power below are followed by every other slope of the power above.
inline std::vector<double> alibi_slopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 0; i < heads; ++i) {
    const auto n = static_cast<double>(i < power ? i + 1 : 2 * (i - power) + 1);
    slopes.push_back(std::exp2(-8 * n / static_cast<double>(i < power ? power : 2 * power)));
  }
  return slopes;
}

}  // namespace

}  // namespace ferrite::nn::detail

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

/// Returns the distances from each of L queries back to each of S keys, [L, S].
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

/// Multiplies x by the columns begin..end of in_proj_weight, or by `own` if it is defined.
Tensor MultiheadAttention::projected(const Tensor& x, std::int64_t begin, std::int64_t end,
                                     const Parameter& own) const {
  const bool whole_weight = own.defined() || (begin == 0 && end == in_proj_weight.shape()[1]);
  const Tensor weight = own.defined()  ? own.value()
                        : whole_weight ? in_proj_weight.value()
                                       : slice(in_proj_weight, 1, begin, end);
  return affine(x, weight, in_proj_bias.defined() ? slice(in_proj_bias, 0, begin, end) : Tensor());
}

/// Splits the heads: [B, T, heads W] -> [B, heads, T, W].
Tensor MultiheadAttention::heads_of(const Tensor& x, std::int64_t heads) const {
  return permute(reshape(x, {x.shape()[0], x.shape()[1], heads, head_width()}), {0, 2, 1, 3});
}

Tensor MultiheadAttention::turned(const Tensor& x, const Tensor& positions) const {
  return options().positions == Positions::rotary ? rotary_embedding(x, positions, options().rotary) : x;
}

/// Returns keys or values [B, heads, S, W] after the learned one and the zeros, if any.
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

/// Returns the attention options. `distances` from queries back to keys serve ALiBi, and `causal` if there are first
/// keys.
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

/// Computes the weighted values of the heads and joins them by out_proj: [B, L, E].
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

// One step of causal attention for streams: keys and values are stored in place, and a step reads those made so far.

namespace {

using detail::StepMemory;

std::int64_t groups_of(const MultiheadAttentionOptions& o) { return o.kv_heads ? o.kv_heads : o.num_heads; }

/// The keys and values of the steps that each row has made. For each row and head, keys are stored by columns, so that
/// a query meets many at once, and values by rows; learned ones and zeros come first.
template <class T>
class Cache {
 public:
  Cache(const MultiheadAttentionOptions& o, std::int64_t batch)
      : batch_(batch),
        capacity_(o.capacity),
        groups_(groups_of(o)),
        W_(o.embed_dim / o.num_heads),
        first_((o.add_bias_kv ? 1 : 0) + (o.add_zero_attn ? 1 : 0)),
        places_(((first_ + capacity_ + kLine - 1) / kLine | 1) * kLine),
        steps_(static_cast<std::size_t>(batch)),
        keys_(batch * groups_ * W_ * places_),
        values_(batch * groups_ * W_ * places_) {}

  std::int64_t first() const { return first_; }
  std::int64_t places() const { return places_; }
  /// Returns the number of steps that a row has made.
  std::int64_t steps(std::int64_t row) const { return steps_[static_cast<std::size_t>(row)]; }
  /// Returns the keys [W, places], or values [places, W], of a row and a head.
  T* keys(std::int64_t row, std::int64_t group) const { return keys_.get() + (row * groups_ + group) * W_ * places_; }
  T* values(std::int64_t row, std::int64_t group) const {
    return values_.get() + (row * groups_ + group) * W_ * places_;
  }

  /// Throws CapacityError if a row is full.
  void check_room(Step::Rows rows) const {
    for (std::int64_t row = 0; row < batch_; ++row)
      if ((!rows || rows[row]) && steps(row) >= capacity_)
        throw CapacityError("stream: 'keys' of " + std::string(MultiheadAttention::name) + " is full: row " +
                            std::to_string(row) + " has made " + std::to_string(capacity_) +
                            " steps; reset it, or declare a larger capacity");
  }
  /// Returns the number of steps for which all rows have room.
  std::int64_t room() const { return capacity_ - *std::max_element(steps_.begin(), steps_.end()); }
  /// Writes the key and the value of a head, [W] each, at a place.
  void put(std::int64_t row, std::int64_t group, std::int64_t place, const T* k, const T* v) {
    for (std::int64_t i = 0; i < W_; ++i) keys(row, group)[i * places_ + place] = k[i];
    std::copy_n(v, W_, values(row, group) + place * W_);
  }
  /// Writes the learned key and value, if any, and the zeros, before those of the steps.
  void put_first(const Parameter& bias_k, const Parameter& bias_v) {
    const auto of = [&](const Parameter& p, std::int64_t n) {
      return n == 0 && p.defined() ? contiguous(p.peek()) : zeros({groups_ * W_}, dtype_of<T>);
    };
    for (std::int64_t n = 0; n < first_; ++n) {
      const Tensor k = of(bias_k, n), v = of(bias_v, n);
      for (std::int64_t row = 0; row < batch_; ++row)
        for (std::int64_t g = 0; g < groups_; ++g) put(row, g, n, k.data<T>() + g * W_, v.data<T>() + g * W_);
    }
  }

  void advance(Step::Rows rows) {
    for (std::size_t row = 0; row < steps_.size(); ++row) steps_[row] += !rows || rows[row] ? 1 : 0;
  }
  /// Shows the memory as the states that the layer declares: [B, C, heads W], and the steps that each row has made.
  void states(const Step::StateVisitor& see) {
    const std::int64_t size = size_of(dtype_of<T>);
    const auto of = [&](const char* name, T* first, std::int64_t entry, std::int64_t element) -> StateMemory {
      return {.name = name,
              .spec = {{batch_, capacity_, groups_ * W_}, dtype_of<T>},
              .first = reinterpret_cast<std::byte*>(first + first_ * entry),
              .parts = {batch_, capacity_, groups_, W_},
              .strides = {groups_ * W_ * places_ * size, entry * size, W_ * places_ * size, element * size},
              .entries = 1,
              .made = steps_.data()};
    };
    see(of("keys", keys_.get(), 1, places_));
    see(of("values", values_.get(), W_, 1));
    see({.name = "steps",
         .spec = {{batch_}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(steps_.data()),
         .most = capacity_});
  }

 private:
  /// Rows of keys are an odd number of cache lines apart, so that the elements of a column do not fall into one cache
  /// set.
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));

  std::int64_t batch_, capacity_, groups_, W_, first_, places_;
  std::vector<std::int64_t> steps_;
  StepMemory<T> keys_, values_;
};

/// A step of causal attention with the same bits as the whole sequence: there, hidden keys add zeros to the ends of the
/// same chains of sums (docs/numerics.md, rules 2 and 3). An entry is written before its step is committed, at a place
/// that no step reads yet.
template <class T>
class AttentionStep final : public Step {
 public:
  AttentionStep(const MultiheadAttention& layer, std::int64_t batch)
      : o_(layer.options()),
        bias_k_(layer.bias_k),
        bias_v_(layer.bias_v),
        batch_(batch),
        groups_(groups_of(o_)),
        W_(o_.embed_dim / o_.num_heads),
        in_(detail::linear_step(layer.in_proj_weight, layer.in_proj_bias, batch)),
        out_(detail::linear_step(layer.out_proj_weight, layer.out_proj_bias, batch)),
        cache_(o_, batch),
        at_once_(detail::steps_at_once(batch * in_->result().width * size_of(dtype_of<T>))),
        projected_(at_once_ * batch * in_->result().width),
        heads_(at_once_ * batch * o_.embed_dim),
        scores_(o_.num_heads * cache_.places()) {
    if (o_.positions == Positions::alibi)
      for (const double s : detail::alibi_slopes(o_.num_heads)) slopes_.push_back(static_cast<T>(s));
    if (o_.positions == Positions::rotary) tabulate_turns();
    cache_.put_first(bias_k_, bias_v_);
  }
  AttentionStep(const AttentionStep& o)
      : Step(o),
        o_(o.o_),
        bias_k_(o.bias_k_),
        bias_v_(o.bias_v_),
        batch_(o.batch_),
        groups_(o.groups_),
        W_(o.W_),
        slopes_(o.slopes_),
        turns_(o.turns_),
        in_(o.in_->clone()),
        out_(o.out_->clone()),
        cache_(o.cache_),
        at_once_(o.at_once_),
        projected_(o.projected_),
        heads_(o.heads_),
        scores_(o.scores_) {}

  StepRows result() const override { return {batch_, o_.embed_dim, dtype_of<T>}; }

  void run(Inputs x, void* y) override { attend_of(nullptr, x, y); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    attend_of(rows[0], x, y);
    return rows[0];
  }
  std::int64_t most_at_once() const override { return at_once_; }
  std::int64_t sure(std::int64_t n, Inputs) const override { return std::min(n, cache_.room()); }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    in_->run_several(n, x, projected_.get());
    for (std::int64_t t = 0; t < n; ++t, cache_.advance(nullptr))
      for (std::int64_t row = 0; row < batch_; ++row) attend(row, t * batch_ + row);
    const void* const heads = heads_.get();
    out_->run_several(n, &heads, y);
  }
  void commit() override { cache_.advance(nullptr); }
  void commit_rows(Rows rows) override { cache_.advance(rows); }
  void refresh() override {
    in_->refresh(), out_->refresh();
    cache_.put_first(bias_k_, bias_v_);
  }
  void states(const StateVisitor& see) override { cache_.states(see); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<AttentionStep>(*this); }

 private:
  /// Fills `turns_` by rotary_embedding itself: it turns the pair (1, 0) to (cos, sin) at every position.
  void tabulate_turns() {
    const NewFrame frame;
    const Tensor one = ones({o_.capacity, W_ / 2}, dtype_of<T>), zero = zeros(one.shape(), dtype_of<T>);
    const Tensor pairs =
        o_.rotary.interleaved ? reshape(stack({one, zero}, -1), {o_.capacity, W_}) : concat({one, zero}, 1);
    turns_ = contiguous(rotary_embedding(pairs, arange(o_.capacity), o_.rotary));
  }
  /// Turns the pairs of `heads` heads in place, as rotary_embedding does.
  void turn(T* x, std::int64_t heads, std::int64_t position) const {
    const std::int64_t half = W_ / 2, apart = o_.rotary.interleaved ? 1 : half, step = o_.rotary.interleaved ? 2 : 1;
    const T* const turns = turns_.data<T>() + position * W_;
    for (std::int64_t i = 0; i < half; ++i) {
      const T c = turns[i * step], s = turns[i * step + apart];
      for (std::int64_t h = 0; h < heads; ++h) {
        T* const pair = x + h * W_ + i * step;
        const T a = pair[0], b = pair[apart];
        pair[0] = a * c - b * s;
        pair[apart] = b * c + a * s;
      }
    }
  }

  /// Applies ALiBi: decreases scores by the distance from a key to this step.
  void fall(T* scores, std::int64_t seen, std::int64_t own) const {
    for (std::int64_t h = 0; h < o_.num_heads; ++h)
      for (std::int64_t j = cache_.first(); j < seen; ++j) {
        const T less = slopes_[static_cast<std::size_t>(h)] * static_cast<T>(own - (j - cache_.first()));
        scores[h * seen + j] = scores[h * seen + j] + -less;
      }
  }

  void attend_of(Rows rows, Inputs x, void* y) {
    cache_.check_room(rows);
    in_->run(x, projected_.get());
    for (std::int64_t row = 0; row < batch_; ++row)
      if (!rows || rows[row]) attend(row, row);
    const void* const heads = heads_.get();
    out_->run(&heads, y);
  }
  /// Makes the step of a row; its projections and heads are the n-th ones.
  void attend(std::int64_t row, std::int64_t n) {
    const std::int64_t E = o_.embed_dim, K = groups_ * W_, share = o_.num_heads / groups_, made = cache_.steps(row);
    const std::int64_t at = cache_.first() + made;
    const std::int64_t seen = at + 1;
    T* const q = projected_.get() + n * (E + 2 * K);
    T *const k = q + E, *const v = k + K, *const scores = scores_.get();
    if (turns_.defined()) turn(q, o_.num_heads, made), turn(k, groups_, made);
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(W_)));
    for (std::int64_t i = 0; i < E; ++i) q[i] = q[i] * scale;
    const auto& kernels = ferrite::detail::products_in_use.of<T>();
    for (std::int64_t g = 0; g < groups_; ++g) {
      cache_.put(row, g, at, k + g * W_, v + g * W_);
      kernels.product(share, seen, W_, {q + g * share * W_, W_, 1}, {cache_.keys(row, g), cache_.places(), 1},
                      scores + g * share * seen, seen, false);
    }
    if (!slopes_.empty()) fall(scores, seen, made);
    ferrite::detail::rows_in_use.of<T>().softmax(scores, scores, {o_.num_heads, seen});
    for (std::int64_t g = 0; g < groups_; ++g)
      kernels.product(share, W_, seen, {scores + g * share * seen, seen, 1}, {cache_.values(row, g), W_, 1},
                      heads_.get() + n * E + g * share * W_, W_, false);
  }

  MultiheadAttentionOptions o_;
  Parameter bias_k_, bias_v_;
  std::int64_t batch_, groups_, W_;
  std::vector<T> slopes_;
  Tensor turns_;  ///< [capacity, W] for rotary positions: (cos, sin) where a head has a pair
  std::unique_ptr<Step> in_, out_;
  Cache<T> cache_;
  std::int64_t at_once_;
  StepMemory<T> projected_, heads_, scores_;
};

}  // namespace

std::size_t MultiheadAttention::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const StepRows in = graph.rows(x);
  if (in.dtype == Dtype::f64) return graph.add(*this, std::make_unique<AttentionStep<double>>(*this, in.batch), {x});
  return graph.add(*this, std::make_unique<AttentionStep<float>>(*this, in.batch), {x});
}

}  // namespace ferrite::nn
