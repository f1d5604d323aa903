/// Normalisations, einsum, determinants, losses, dropout.
#include <algorithm>
#include <cmath>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::onnx::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// [C] as [1, C, 1, ...].
Tensor by_channel(const Tensor& v, int rank) {
  Numbers extents(static_cast<std::size_t>(std::max(rank, 2)), 1);
  extents[1] = v.numel();
  return reshape(v, shape_of(rank < 2 ? Numbers{v.numel()} : extents));
}

Values batch_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const ElementType type = call.type(0);
  const double epsilon = call.number("epsilon", 1e-5);
  const double momentum = call.number("momentum", 0.9);
  const bool training = call.version() >= 14 && call.integer("training_mode", 0) != 0;
  if (call.version() < 9 && call.integer("spatial", 1) == 0) call.refuse("spatial = 0 is not supported");
  if (call.version() < 14 && call.wants(1)) call.refuse("training in versions before 14 is not supported");
  const Tensor &scale = call.tensor(1), &bias = call.tensor(2), &mean_in = call.tensor(3), &var_in = call.tensor(4);
  if (!training) {
    const Tensor gain = scale * rsqrt(var_in + epsilon);
    if (x.rank() >= 2 && scale.dtype() == x.dtype() && mean_in.dtype() == x.dtype())
      return {narrowed(batch_norm(x, mean_in, var_in, {.weight = scale, .bias = bias}, epsilon), type)};
    return {narrowed((x - by_channel(mean_in, x.rank())) * by_channel(gain, x.rank()) + by_channel(bias, x.rank()), type)};
  }
  Numbers axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Tensor mean_now = mean(x, shape_of(axes));
  const Tensor var_now = var(x, shape_of(axes), false, 0);
  const Tensor y = batch_norm(x, mean_now, var_now, {.weight = scale, .bias = bias}, epsilon);
  return {narrowed(y, type), narrowed(mean_in * momentum + mean_now * (1 - momentum), call.type(3)),
          narrowed(var_in * momentum + var_now * (1 - momentum), call.type(4))};
}

/// f16 and bf16 are held as f32, so the statistics in f32 that stash_type asks for are a matter of course.
void check_stash(const Call& call) {
  const auto stash = static_cast<ElementType>(call.integer("stash_type", 1));
  if (stash != ElementType::f32 && stash != call.type(0)) call.refuse("stash_type is not supported");
}

Values layer_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const ElementType type = call.type(0);
  const int axis = axis_of(call, call.integer("axis", -1), x.rank());
  const double epsilon = call.number("epsilon", 1e-5);
  check_stash(call);
  Numbers axes;
  for (int i = axis; i < x.rank(); ++i) axes.push_back(i);
  const Shape over = shape_of(axes);
  if (call.name() == "RMSNormalization")
    return {narrowed(rms_norm(x, x.rank() - axis, {}, epsilon) * call.tensor(1), type)};
  Tensor y = layer_norm(x, x.rank() - axis, epsilon) * call.tensor(1);
  if (call.has(2)) y = y + call.tensor(2);
  Values values{narrowed(y, type)};
  if (call.wants(1) || call.wants(2)) {
    values.push_back({mean(x, over, true), ElementType::f32});
    values.push_back({rsqrt(var(x, over, true, 0) + epsilon), ElementType::f32});
  }
  return values;
}

Values instance_normalization(const Call& call) {
  const ChannelAffine affine{.weight = call.tensor(1), .bias = call.tensor(2)};
  return {narrowed(instance_norm(call.tensor(0), affine, call.number("epsilon", 1e-5)), call.type(0))};
}

/// Scale and bias by group in version 18, by channel since 21.
Values group_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t groups = call.integer("num_groups");
  const double epsilon = call.number("epsilon", 1e-5);
  if (call.version() >= 21) check_stash(call);
  Tensor scale = call.tensor(1), bias = call.tensor(2);
  if (call.version() < 21) {
    if (groups < 1 || x.size(1) % groups != 0) call.refuse("groups do not divide the channels");
    scale = repeat_interleave(scale, x.size(1) / groups, 0);
    bias = repeat_interleave(bias, x.size(1) / groups, 0);
  }
  return {narrowed(group_norm(x, groups, {.weight = scale, .bias = bias}, epsilon), call.type(0))};
}

Values lp_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = axis_of(call, call.integer("axis", -1), x.rank());
  const auto p = static_cast<double>(call.integer("p", 2));
  if (p != 1 && p != 2) call.refuse("p must be 1 or 2");
  const Tensor size = norm(x, {.p = p, .axes = Shape{axis}, .keepdim = true});
  return {narrowed(where(eq(size, 0), zeros_like(x), x / where(eq(size, 0), 1.0, size)), call.type(0))};
}

Values local_response(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t size = call.integer("size");
  const double alpha = call.number("alpha", 1e-4), beta = call.number("beta", 0.75), bias = call.number("bias", 1.0);
  if (size < 1 || x.rank() < 3) call.refuse("a size of " + std::to_string(size) + " does not fit " + x.shape().str());
  // (size - 1) / 2 channels before and size / 2 behind: the other way around than PyTorch where the size is even.
  Numbers front(static_cast<std::size_t>(x.rank())), back(front);
  front[1] = (size - 1) / 2;
  back[1] = size / 2;
  const Tensor squares = pad(square(x), shape_of(front), shape_of(back), 0);
  Tensor total = slice(squares, 1, 0, x.size(1));
  for (std::int64_t i = 1; i < size; ++i) total = total + slice(squares, 1, i, i + x.size(1));
  return {narrowed(x / pow(total * (alpha / static_cast<double>(size)) + bias, beta), call.type(0))};
}

Values mean_variance(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Shape axes = shape_of(axes_of(call, call.integers("axes", {0, 2, 3}), x.rank()));
  const Tensor centred = x - mean(x, axes, true);
  return {narrowed(centred / (sqrt(mean(square(centred), axes, true)) + 1e-9), call.type(0))};
}

Values einsum_of(const Call& call) {
  Tensors operands;
  for (std::size_t i = 0; i < call.inputs(); ++i) operands.push_back(call.tensor(i));
  return {narrowed(einsum(call.text("equation"), operands), call.type(0))};
}

Values determinant(const Call& call) { return {narrowed(det(call.tensor(0)), call.type(0))}; }

/// Evaluation only; the mask shows that nothing was dropped.
Values dropout(const Call& call) {
  const Value& x = call.value(0);
  call.without_effect("ratio");  // of training
  call.without_effect("seed");
  bool drops = false;
  if (call.version() >= 12) {
    if (call.has(2)) {
      const bool training = call.known_int(2) != 0;
      drops = training && (call.has(1) ? call.known_float(1) : 0.5) != 0;
    }
    (void)call.has(1);
  }
  if (drops) call.refuse("training_mode is not supported: its numbers are not defined by the standard");
  const Tensor mask = ones(x.tensor.shape(), call.version() < 10 ? x.tensor.dtype() : Dtype::boolean);
  return {x, {mask, call.version() < 10 ? x.type : ElementType::boolean}};
}

/// Log-probabilities [N, C, ...] picked at targets [N, ...], weighted and joined.
Values negative_log_likelihood(const Call& call, const Tensor& log_probs) {
  const Tensor target = cast(call.tensor(1), Dtype::i64);
  const std::string how = call.text("reduction", "mean");
  const std::int64_t classes = log_probs.size(1);
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  Tensor counts = ignores ? ne(target, ignored) : Tensor{};
  const Tensor place = ignores ? where(counts, target, 0) : target;
  Tensor loss = -squeeze(gather(log_probs, 1, unsqueeze(place, 1), {.who = "onnx: target"}), 1);
  Tensor weight;
  if (call.has(2)) {
    if (call.tensor(2).shape() != Shape{classes}) call.refuse("weight must have an element for each class");
    weight = reshape(index_select(call.tensor(2), 0, reshape(place, {place.numel()})), place.shape());
  }
  if (ignores) {
    const Tensor kept = cast(counts, loss.dtype());
    weight = weight.defined() ? weight * kept : kept;
    loss = where(counts, loss, zeros_like(loss));
  }
  if (weight.defined()) loss = loss * weight;
  const ElementType type = call.type(0);
  if (how == "none") return {narrowed(loss, type)};
  if (how == "sum") return {narrowed(sum(loss), type)};
  if (how != "mean") call.refuse("reduction \"" + how + "\" is not supported");
  return {narrowed(weight.defined() ? sum(loss) / sum(weight) : mean(loss), type)};
}

Values nll(const Call& call) { return negative_log_likelihood(call, call.tensor(0)); }

Values softmax_cross_entropy(const Call& call) {
  const Tensor log_probs = log_softmax(call.tensor(0), 1);
  Values values = negative_log_likelihood(call, log_probs);
  values.push_back(narrowed(log_probs, call.type(0)));
  return values;
}

constexpr Operation kOperations[] = {
    {.name = "BatchNormalization", .lower = batch_normalization, .since = 7},
    {.name = "LayerNormalization", .lower = layer_normalization},
    {.name = "RMSNormalization", .lower = layer_normalization},
    {.name = "InstanceNormalization", .lower = instance_normalization, .since = 6},
    {.name = "GroupNormalization", .lower = group_normalization},
    {.name = "LpNormalization", .lower = lp_normalization},
    {.name = "LRN", .lower = local_response},
    {.name = "MeanVarianceNormalization", .lower = mean_variance},
    {.name = "Einsum", .lower = einsum_of},
    {.name = "Det", .lower = determinant},
    {.name = "Dropout", .lower = dropout, .static_inputs = 6, .since = 7},
    {.name = "NegativeLogLikelihoodLoss", .lower = nll},
    {.name = "SoftmaxCrossEntropyLoss", .lower = softmax_cross_entropy},
};

}  // namespace

Operations network_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
