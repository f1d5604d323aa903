/// The layers of a transformer: attention and two products, each with a residual and a norm.
#include "ferrite/nn/layers/transformer.h"

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

/// Checks the options before the parts of a layer are made, whose errors would name the parts.
const TransformerLayerOptions& checked(const char* who, const TransformerLayerOptions& o) {
  const std::string at = std::string(who) + ": ";
  if (o.d_model < 1 || o.dim_feedforward < 1)
    throw ValueError(at + "d_model and dim_feedforward must be positive, got " + std::to_string(o.d_model) + " and " +
                     std::to_string(o.dim_feedforward));
  if (!activation(o.activation.text()))
    throw ValueError(at + "unknown activation '" + std::string(o.activation.text()) +
                     "'; nn::activation_names() lists them");
  if (!(o.dropout >= 0 && o.dropout <= 1))
    throw ValueError(at + "dropout must lie in [0, 1], got " + Scalar(o.dropout).str());
  return o;
}

MultiheadAttentionOptions to_itself(const TransformerLayerOptions& o) {
  return {.embed_dim = o.d_model,
          .num_heads = o.nhead,
          .kv_heads = o.kv_heads,
          .bias = o.bias,
          .dropout = o.dropout,
          .causal = o.causal,
          .positions = o.positions,
          .rotary = o.rotary,
          .capacity = o.capacity};
}
MultiheadAttentionOptions to_memory(const TransformerLayerOptions& o) {
  return {.embed_dim = o.d_model, .num_heads = o.nhead, .bias = o.bias, .dropout = o.dropout};
}
LayerNormOptions norm_of(const TransformerLayerOptions& o) { return {o.d_model, o.layer_norm_eps, o.bias}; }

Tensor dropped(const std::optional<Dropout>& dropout, const Tensor& x) { return dropout ? (*dropout)(x) : x; }

/// Returns x + f(norm(x)), or norm(x + f(x)).
template <class F>
Tensor residual(bool norm_first, const LayerNorm& norm, const Tensor& x, const F& f) {
  return norm_first ? x + f(norm(x)) : norm(x + f(x));
}

std::string with_positions(std::string summary, Positions positions) {
  if (positions != Positions::none)
    summary.insert(summary.size() - 1, positions == Positions::rotary ? ", positions=rotary" : ", positions=alibi");
  return summary;
}

}  // namespace

FeedForward::FeedForward(const TransformerLayerOptions& o, const Init& init)
    : Module(init),
      linear1(LinearOptions{o.d_model, o.dim_feedforward, o.bias}, init.child("linear1")),
      linear2(LinearOptions{o.dim_feedforward, o.d_model, o.bias}, init.child("linear2")),
      activation_(std::string(o.activation.text()), activation(o.activation.text())) {
  adopt("linear1", linear1);
  if (o.dropout > 0) adopt("dropout", dropout_.emplace(o.dropout, init.child("dropout")));
  adopt("linear2", linear2);
}

Tensor FeedForward::operator()(const Tensor& x) const { return linear2(dropped(dropout_, activation_(linear1(x)))); }

// ---- encoder ---------------------------------------------------------------------------------------------

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& o, const Init& init)
    : LayerOf(checked(name, o), init),
      self_attn(to_itself(o), init.child("self_attn")),
      feed_forward(o, init),
      norm1(norm_of(o), init.child("norm1")),
      norm2(norm_of(o), init.child("norm2")) {
  adopt("self_attn", self_attn), adopt("", feed_forward), adopt("norm1", norm1), adopt("norm2", norm2);
  if (o.dropout == 0) return;
  adopt("dropout1", dropout1_.emplace(o.dropout, init.child("dropout1")));
  adopt("dropout2", dropout2_.emplace(o.dropout, init.child("dropout2")));
}

std::string TransformerEncoderLayer::summary() const { return with_positions(LayerOf::summary(), options().positions); }

template <class Attend>
Tensor TransformerEncoderLayer::run(const Tensor& x, const Attend& attend) const {
  const bool first = options().norm_first;
  const Tensor y = residual(first, norm1, x, [&](const Tensor& t) { return dropped(dropout1_, attend(t)); });
  return residual(first, norm2, y, [&](const Tensor& t) { return dropped(dropout2_, feed_forward(t)); });
}

Tensor TransformerEncoderLayer::forward(const Tensor& given, const Context& context) const {
  Tensor x = given;
  if (context.lengths.defined() && x.rank() == 3 && x.shape()[1] > 0)
    x = ferrite::detail::padding_replaced(
        x,
        detail::checked_lengths("transformer_encoder_layer: a length of", context.lengths, x.shape()[0], x.shape()[1]),
        true);
  return run(x, [&](const Tensor& t) { return self_attn(t, context); });
}

Tensor TransformerEncoderLayer::encode(const Tensor& x, const AttentionMasks& masks) const {
  return inside([&] { return run(x, [&](const Tensor& t) { return self_attn.attend(t, t, t, masks); }); });
}

StepResult TransformerEncoderLayer::step(const Tensor& x, const Tensors& states) const {
  Tensors next;
  const Tensor y = run(x, [&](const Tensor& t) {
    StepResult r = self_attn.advance(t, states);
    next = std::move(r.states);
    return r.y;
  });
  return {y, next};
}

std::size_t TransformerEncoderLayer::add_steps(StepGraph& graph, std::size_t x) const {
  const auto half = [&](const LayerNorm& norm, const std::vector<const Layer*>& layers) {
    std::size_t y = options().norm_first ? graph.add(norm, x) : x;
    for (const Layer* layer : layers) y = graph.add(*layer, y);
    x = graph.add(*this, detail::sum_step(graph.rows(x), 2), {x, y});
    if (!options().norm_first) x = graph.add(norm, x);
  };
  half(norm1, {&self_attn});
  half(norm2, feed_forward.layers());
  return x;
}

// ---- decoder ---------------------------------------------------------------------------------------------

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& o, const Init& init)
    : LayerOf(checked(name, o), init),
      self_attn(to_itself(o), init.child("self_attn")),
      multihead_attn(to_memory(o), init.child("multihead_attn")),
      feed_forward(o, init),
      norm1(norm_of(o), init.child("norm1")),
      norm2(norm_of(o), init.child("norm2")),
      norm3(norm_of(o), init.child("norm3")) {
  adopt("self_attn", self_attn), adopt("multihead_attn", multihead_attn), adopt("", feed_forward);
  adopt("norm1", norm1), adopt("norm2", norm2), adopt("norm3", norm3);
  if (o.dropout == 0) return;
  adopt("dropout1", dropout1_.emplace(o.dropout, init.child("dropout1")));
  adopt("dropout2", dropout2_.emplace(o.dropout, init.child("dropout2")));
  adopt("dropout3", dropout3_.emplace(o.dropout, init.child("dropout3")));
}

std::string TransformerDecoderLayer::summary() const { return with_positions(LayerOf::summary(), options().positions); }

Tensor TransformerDecoderLayer::forward(const Tensor&, const Context&) const {
  throw ValueError("transformer_decoder_layer: reads a memory beside x; call decode(x, memory)");
}

Tensor TransformerDecoderLayer::decode(const Tensor& x, const Tensor& memory, const DecoderMasks& masks) const {
  return inside([&] {
    const bool first = options().norm_first;
    const Tensor y = residual(
        first, norm1, x, [&](const Tensor& t) { return dropped(dropout1_, self_attn.attend(t, t, t, masks.target)); });
    const Tensor z = residual(first, norm2, y, [&](const Tensor& t) {
      return dropped(dropout2_, multihead_attn.attend(t, memory, memory, masks.memory));
    });
    return residual(first, norm3, z, [&](const Tensor& t) { return dropped(dropout3_, feed_forward(t)); });
  });
}

template class LayerOf<TransformerEncoderLayer, TransformerLayerOptions>;
template class LayerOf<TransformerDecoderLayer, TransformerLayerOptions>;

}  // namespace ferrite::nn
