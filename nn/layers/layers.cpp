#include "ferrite/nn/layers/layers.h"

#include <array>
#include <bit>
#include <cmath>

#include "ferrite/nn/detail/lengths.h"
#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn {
namespace {

void check_positive(const char* where, std::int64_t a, std::int64_t b = 1) {
  if (a < 1 || b < 1)
    throw ValueError(std::string(where) + ": sizes must be positive, got " + std::to_string(a) + " and " +
                     std::to_string(b));
}

template <class L>
std::unique_ptr<Layer> with_values_of(const L& from, std::unique_ptr<L> to) {
  copy_values(from, *to);
  to->train(from.training());
  return to;
}

Init like(const Parameter& p) { return {.dtype = p.dtype()}; }

void check_sequence(const char* where, const Tensor& x) {
  if (x.rank() != 3) throw ShapeError(std::string(where) + ": expects [B, T, D], got " + x.shape().str());
  if (x.shape()[1] == 0) throw ShapeError(std::string(where) + ": the sequence has no steps: " + x.shape().str());
}

}  // namespace

// ---- linear --------------------------------------------------------------------------------------------

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const Init& init, bool with_bias) {
  check_positive("linear", in_features, out_features);
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  const Fill fill = init::uniform(-bound, bound);
  weight = parameter("weight", {in_features, out_features}, fill, init, FileLayout::transposed);
  if (with_bias) bias = parameter("bias", {out_features}, fill, init);
}

Tensor Linear::forward(const Tensor& x, const Context&) const {
  if (x.rank() < 1 || x.shape()[-1] != in_features())
    throw ShapeError("linear: expects " + std::to_string(in_features()) + " features, got " + x.shape().str());
  return affine(x, weight, bias.defined() ? bias.value() : Tensor());
}

std::unique_ptr<Step> Linear::make_step(const StepRows& in) const {
  return detail::linear_step(weight, bias, in.batch);
}

std::unique_ptr<Layer> Linear::clone() const {
  return with_values_of(*this, std::make_unique<Linear>(in_features(), out_features(), like(weight), bias.defined()));
}

// ---- embedding -----------------------------------------------------------------------------------------

Embedding::Embedding(std::int64_t vocabulary, std::int64_t features, const Init& init) {
  check_positive("embedding", vocabulary, features);
  weight = parameter("weight", {vocabulary, features}, init::normal(0, 1), init);
}

Tensor Embedding::forward(const Tensor& tokens, const Context&) const {
  if (!is_integer(tokens.dtype())) throw DtypeError("embedding: tokens must be i64 or i32, got " + tokens.spec().str());
  Shape shape = tokens.shape();
  shape.push_back(weight.shape()[1]);
  return reshape(index_select(weight, 0, reshape(tokens, {-1}), {"embedding: token"}), shape);
}

std::unique_ptr<Step> Embedding::make_step(const StepRows& in) const {
  return detail::embedding_step(weight, in.batch);
}

std::unique_ptr<Layer> Embedding::clone() const {
  return with_values_of(*this, std::make_unique<Embedding>(weight.shape()[0], weight.shape()[1], like(weight)));
}

// ---- layer norm ----------------------------------------------------------------------------------------

LayerNorm::LayerNorm(std::int64_t features, const Init& init, double epsilon) : epsilon_(epsilon) {
  check_positive("layer_norm", features);
  ferrite::detail::check_not_negative("layer_norm: epsilon", {epsilon});
  weight = parameter("weight", {features}, init::constant(1), init);
  bias = parameter("bias", {features}, init::constant(0), init);
}

Tensor LayerNorm::forward(const Tensor& x, const Context&) const {
  if (x.rank() < 1 || x.shape()[-1] != weight.shape()[0])
    throw ShapeError("layer_norm: expects " + std::to_string(weight.shape()[0]) + " features, got " + x.shape().str());
  return layer_norm(x, 1, epsilon_) * weight + bias;
}

std::unique_ptr<Layer> LayerNorm::clone() const {
  return with_values_of(*this, std::make_unique<LayerNorm>(weight.shape()[0], like(weight), epsilon_));
}

// ---- dropout -------------------------------------------------------------------------------------------

namespace {
constexpr std::string_view kKey = "key";
}

Dropout::Dropout(double probability, const Init& init) : probability_(probability) {
  if (!(probability >= 0 && probability <= 1))
    throw ValueError("dropout: the probability must lie in [0, 1], got " + std::to_string(probability));
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
  if (!training() || probability_ == 0) return x;
  if (probability_ == 1) return x * 0;
  const Tensor call = calls.value();
  const double keep = 1 - probability_;
  const Tensor mask = bernoulli(x.shape(), key.value(), call, keep, x.dtype()) / keep;
  calls.assign(call + 1);
  return x * mask;
}

std::unique_ptr<Step> Dropout::make_step(const StepRows& in) const { return detail::identity_step(in); }

std::unique_ptr<Layer> Dropout::clone() const { return with_values_of(*this, std::make_unique<Dropout>(probability_)); }

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
    NamedFunction{"exp", exp},
    NamedFunction{"abs", abs},
    NamedFunction{"square", square},
    NamedFunction{"sin", sin},
    NamedFunction{"cos", cos},
    NamedFunction{"erf", erf},
    NamedFunction{"softmax", [](const Tensor& x) { return softmax(x, -1); }},
    NamedFunction{"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
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

Activation::Activation(std::string name, Function f) : name_(std::move(name)), f_(f) {
  if (!f_) throw ValueError("activation: the function of '" + name_ + "' is null");
}

bool Activation::causal() const { return activation(name_) == f_; }

std::unique_ptr<Step> Activation::make_step(const StepRows& in) const {
  const Primitive* const op = activation(name_) == f_ ? find_primitive(name_) : nullptr;
  if (!op || op->arity != 1 || !op->block(in.dtype)) return nullptr;
  return detail::pointwise_step(*op, in);
}

// ---- over time -----------------------------------------------------------------------------------------

Tensor LastStep::forward(const Tensor& x, const Context& context) const {
  check_sequence("last_step", x);
  if (!context.lengths.defined()) return select(x, 1, -1);
  const Tensor lengths = detail::checked_lengths("last_step: a length of", context.lengths, x.shape()[0], x.shape()[1]);
  const Tensor at = reshape(lengths - 1, {-1, 1, 1});
  return squeeze(gather(x, 1, expand(at, {x.shape()[0], 1, x.shape()[2]})), 1);
}

std::unique_ptr<Step> LastStep::make_step(const StepRows& in) const { return detail::identity_step(in); }

Tensor MeanOverTime::forward(const Tensor& x, const Context& context) const {
  check_sequence("mean_over_time", x);
  if (!context.lengths.defined()) return mean(x, {1});
  const Tensor lengths =
      unsqueeze(detail::checked_lengths("mean_over_time: a length of", context.lengths, x.shape()[0], x.shape()[1]), 1);
  const Tensor valid = lt(arange(x.shape()[1]), lengths);  // [B, T]
  const Tensor total = sum(where(unsqueeze(valid, 2), x, 0), {1});
  return total / cast(lengths, x.dtype());
}

}  // namespace ferrite::nn
