/// Layers without a recurrence: linear, embedding, normalisation, dropout, activations and others.
#include "ferrite/nn/layers/layers.h"

#include <array>
#include <bit>
#include <cmath>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/detail/padding_token.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::nn {
namespace {

void check_positive(const char* where, std::int64_t a, std::int64_t b = 1) {
  if (a < 1 || b < 1)
    throw ValueError(std::string(where) + ": sizes must be positive, got " + std::to_string(a) + " and " +
                     std::to_string(b));
}

void check_sequence(const char* where, const Tensor& x) {
  if (x.rank() != 3) throw ShapeError(std::string(where) + ": expects [B, T, D], got " + x.shape().str());
  if (x.shape()[1] == 0) throw ShapeError(std::string(where) + ": the sequence has no steps: " + x.shape().str());
}

}  // namespace

// ---- linear --------------------------------------------------------------------------------------------

Linear::Linear(const LinearOptions& o, const Init& init) : LayerOf(o, init, detail::OwnSteps()) {
  check_positive("linear", o.in_features, o.out_features);
  const double bound = 1 / std::sqrt(static_cast<double>(o.in_features));
  const Fill fill = init::uniform(-bound, bound);
  weight = parameter("weight", {o.in_features, o.out_features}, fill, init, FileLayout::transposed);
  if (o.bias) bias = parameter("bias", {o.out_features}, fill, init);
}

Tensor Linear::forward(const Tensor& x, const Context&) const {
  if (x.rank() < 1 || x.shape()[-1] != in_features())
    throw ShapeError("linear: expects " + std::to_string(in_features()) + " features, got " + x.shape().str());
  return affine(x, weight, detail::value_of(bias));
}

std::size_t Linear::add_steps(StepGraph& graph, std::size_t x) const {
  return graph.add(*this, detail::linear_step(weight, bias, graph.rows(x).batch), {x});
}

// ---- embedding -----------------------------------------------------------------------------------------

Embedding::Embedding(const EmbeddingOptions& o, const Init& init) : LayerOf(o, init, detail::OwnSteps()) {
  check_positive("embedding", o.vocabulary, o.features);
  weight = parameter("weight", {o.vocabulary, o.features},
                     detail::rows_of_normal("embedding", o.vocabulary, o.padding_idx), init);
}

Tensor Embedding::forward(const Tensor& tokens, const Context&) const {
  if (!is_integer(tokens.dtype())) throw DtypeError("embedding: tokens must be i64 or i32, got " + tokens.spec().str());
  Shape shape = tokens.shape();
  shape.push_back(weight.shape()[1]);
  const Tensor rows = reshape(index_select(weight, 0, reshape(tokens, {-1}), {"embedding: token"}), shape);
  const std::optional<std::int64_t> padding = options().padding_idx;
  if (!padding) return rows;
  return where(eq(unsqueeze(tokens, -1), detail::token_of(*padding, weight.shape()[0])), detach(rows), rows);
}

std::size_t Embedding::add_steps(StepGraph& graph, std::size_t x) const {
  return graph.add(*this, detail::embedding_step(weight, graph.rows(x).batch), {x});
}

// ---- layer norm ----------------------------------------------------------------------------------------

LayerNorm::LayerNorm(const LayerNormOptions& o, const Init& init) : LayerOf(o, init) {
  check_positive("layer_norm", o.features);
  ferrite::detail::check_not_negative("layer_norm: epsilon", {o.epsilon});
  weight = parameter("weight", {o.features}, init::constant(1), init);
  if (o.bias) bias = parameter("bias", {o.features}, init::constant(0), init);
  setting("epsilon", o.epsilon);
}

Tensor LayerNorm::forward(const Tensor& x, const Context&) const {
  if (x.rank() < 1 || x.shape()[-1] != weight.shape()[0])
    throw ShapeError("layer_norm: expects " + std::to_string(weight.shape()[0]) + " features, got " + x.shape().str());
  const Tensor y = layer_norm(x, 1, options().epsilon) * weight;
  return bias.defined() ? y + bias : y;
}

// ---- dropout -------------------------------------------------------------------------------------------

namespace {
constexpr std::string_view kKey = "key";
}

Dropout::Dropout(const DropoutOptions& o, const Init& init) : LayerOf(o, init, detail::OwnSteps()) {
  if (!(o.probability >= 0 && o.probability <= 1))
    throw ValueError("dropout: the probability must lie in [0, 1], got " + Scalar(o.probability).str());
  calls = state("calls", full({}, 0, Dtype::i64));
  // The stream's name is "<layer>.dropout".
  const auto draw = [](std::string_view full_name, std::uint64_t seed) {
    full_name.remove_suffix(kKey.size());
    const std::uint64_t stream = stream_of(std::string(full_name) + "dropout");
    return Tensor::from({std::bit_cast<std::int64_t>(seed), std::bit_cast<std::int64_t>(stream)}, {2});
  };
  key = state(kKey, {{2}, Dtype::i64}, draw, init);
}

Tensor Dropout::forward(const Tensor& x, const Context&) const {
  const double p = options().probability;
  if (!training() || p == 0) return x;
  if (p == 1) return x * 0;
  const Tensor call = calls.value();
  const double keep = 1 - p;
  const Tensor mask = bernoulli(x.shape(), key.value(), call, keep, x.dtype()) / keep;
  calls.assign(call + 1);
  return x * mask;
}

std::size_t Dropout::add_steps(StepGraph&, std::size_t x) const { return x; }

// ---- activations ---------------------------------------------------------------------------------------

namespace {

struct NamedFunction {
  std::string_view name;
  Activation::Function f;
};

constexpr std::array kActivations = {
    NamedFunction{"relu", relu},
    NamedFunction{"tanh", tanh},
    NamedFunction{"sigmoid", sigmoid},
    NamedFunction{"gelu", [](const Tensor& x) { return gelu(x); }},
    NamedFunction{"silu", silu},
    NamedFunction{"softplus", softplus},
    NamedFunction{"log_sigmoid", log_sigmoid},
    NamedFunction{"selu", selu},
    NamedFunction{"relu6", relu6},
    NamedFunction{"hardsigmoid", hardsigmoid},
    NamedFunction{"hardswish", hardswish},
    NamedFunction{"mish", mish},
    NamedFunction{"softsign", softsign},
    NamedFunction{"tanhshrink", tanhshrink},
    NamedFunction{"exp", exp},
    NamedFunction{"abs", abs},
    NamedFunction{"square", square},
    NamedFunction{"sin", sin},
    NamedFunction{"cos", cos},
    NamedFunction{"erf", erf},
    NamedFunction{"softmax", [](const Tensor& x) { return softmax(x, -1); }},
    NamedFunction{"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
    NamedFunction{"softmin", [](const Tensor& x) { return softmin(x, -1); }},
};

}  // namespace

Activation::Function activation(std::string_view name) {
  for (const NamedFunction& a : kActivations)
    if (a.name == name) return a.f;
  return nullptr;
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const NamedFunction& a : kActivations) names.emplace_back(a.name);
  return names;
}

Activation::Activation(const ActivationOptions& o) : LayerOf(o) {
  if (!o.function) throw ValueError("activation: the function of '" + o.name + "' is null");
}

bool Activation::causal() const { return activation(options().name) == options().function; }

std::size_t Activation::add_steps(StepGraph& graph, std::size_t x) const {
  const Primitive* const op = causal() ? ferrite::detail::elementwise_operation(options().name) : nullptr;
  const StepRows in = graph.rows(x);
  if (!op || op->arity != 1 || !op->block(in.dtype)) return Layer::add_steps(graph, x);
  return graph.add(*this, detail::elements_step({*op, in.dtype}, in), {x});
}

// ---- over time -----------------------------------------------------------------------------------------

LastStep::LastStep() : LayerOf({}, Init(), detail::OwnSteps()) {}

Tensor LastStep::forward(const Tensor& x, const Context& context) const {
  check_sequence("last_step", x);
  if (!context.lengths.defined()) return select(x, 1, -1);
  const Tensor lengths = detail::checked_lengths("last_step: a length of", context.lengths, x.shape()[0], x.shape()[1]);
  const Tensor at = reshape(lengths - 1, {-1, 1, 1});
  return squeeze(gather(x, 1, expand(at, {x.shape()[0], 1, x.shape()[2]})), 1);
}

std::size_t LastStep::add_steps(StepGraph&, std::size_t x) const { return x; }

Unflatten::Unflatten(const UnflattenOptions& o) : LayerOf(o) {
  int left = 0;
  for (const std::int64_t n : o.sizes) {
    left += n == -1 ? 1 : 0;
    if (n < 1 && n != -1)
      throw ValueError("unflatten: sizes must be positive, or one of them -1, got " + o.sizes.str());
  }
  if (o.sizes.rank() == 0 || left > 1)
    throw ValueError("unflatten: there must be sizes, at most one of them -1, got " + o.sizes.str());
}

Tensor Unflatten::forward(const Tensor& x, const Context&) const {
  const int axis = static_cast<int>(options().axis < 0 ? options().axis + x.rank() : options().axis);
  const auto refuse = [&] {
    throw ShapeError("unflatten: axis " + std::to_string(options().axis) + " of " + x.shape().str() +
                     " cannot have the extents " + options().sizes.str());
  };
  if (axis < 0 || axis >= x.rank()) refuse();
  Shape sizes = options().sizes;
  std::int64_t product = 1;
  for (const std::int64_t n : sizes) product *= n == -1 ? 1 : n;
  for (int i = 0; i < sizes.rank(); ++i)
    if (sizes[i] == -1) sizes[i] = x.shape()[axis] / product;
  if (sizes.numel() != x.shape()[axis]) refuse();
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
    if (i == axis)
      for (const std::int64_t n : sizes) shape.push_back(n);
  }
  return reshape(x, shape);
}

Tensor MeanOverTime::forward(const Tensor& x, const Context& context) const {
  check_sequence("mean_over_time", x);
  if (!context.lengths.defined()) return mean(x, {1});
  const Tensor lengths =
      unsqueeze(detail::checked_lengths("mean_over_time: a length of", context.lengths, x.shape()[0], x.shape()[1]), 1);
  const Tensor valid = lt(arange(x.shape()[1]), lengths);  // [B, T]
  const Tensor total = sum(where(unsqueeze(valid, 2), x, 0), {1});
  return total / cast(lengths, x.dtype());
}

template class LayerOf<Linear, LinearOptions>;
template class LayerOf<Embedding, EmbeddingOptions>;
template class LayerOf<LayerNorm, LayerNormOptions>;
template class LayerOf<Dropout, DropoutOptions>;
template class LayerOf<Activation, ActivationOptions>;
template class LayerOf<LastStep>;
template class LayerOf<MeanOverTime>;
template class LayerOf<Unflatten, UnflattenOptions>;
template class LayerOf<Flatten>;

}  // namespace ferrite::nn
