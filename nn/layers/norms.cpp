/// Layers that normalise, with weights and with running statistics of the training data.
#include "ferrite/nn/layers/norms.h"

#include <limits>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/layers/detail/channels.h"
#include "ferrite/nn/replicas.h"

namespace ferrite::nn {
namespace {

void check_options(std::string_view where, std::int64_t features, double epsilon) {
  if (features < 1) throw ValueError(std::string(where) + ": there must be features, got " + std::to_string(features));
  ferrite::detail::check_not_negative(std::string(where) + ": epsilon", {epsilon});
}
void check_momentum(std::string_view where, const std::optional<double>& momentum) {
  if (momentum && !(*momentum >= 0 && *momentum <= 1))
    throw ValueError(std::string(where) + ": the momentum must lie in [0, 1], got " + Scalar(*momentum).str());
}

/// Returns the dtype that x must have: that of the layer's variables, or any if there are none.
Dtype type_of(const Module& layer, const Tensor& x) {
  const bool some = !layer.named_parameters().empty() || !layer.named_buffers().empty();
  return some ? detail::dtype_of(layer) : x.dtype();
}

/// Assigns value (1 - rate) + seen rate.
void blend(const Buffer& value, const Tensor& seen, const Tensor& rate) {
  const Tensor before = value.value();
  value.assign(before + (detach(seen) - before) * rate);
}
Tensor scalar(double x, Dtype dtype) { return full({}, x, dtype); }

/// Returns corrected variances from uncorrected ones of n values.
Tensor corrected(const Tensor& var, std::int64_t n) {
  return var * (static_cast<double>(n) / static_cast<double>(n - 1));
}

/// Returns how many values of each channel are normalised together; 0 in an empty batch.
std::int64_t values_each(const Tensor& x, bool over_batch) {
  std::int64_t n = over_batch ? x.shape()[0] : std::min<std::int64_t>(x.shape()[0], 1);
  for (int i = 2; i < x.rank(); ++i) n *= x.shape()[i];
  return n;
}

void check_several(std::string_view where, std::int64_t n, const Tensor& x) {
  if (n < 2)
    throw ShapeError(std::string(where) + ": training needs more than one value a channel, got " + x.shape().str());
}

/// The steps of sequences x [B, T, C] that count.
struct Valid {
  Tensor x;      ///< x with 0 at the other steps
  Tensor mask;   ///< bool [B, T, 1]: steps that count
  Tensor count;  ///< number of steps that count, [B, 1, 1], of x's dtype
};
/// Returns the steps that count. Throws ValueError for an x that is not a sequence, and for lengths outside least..T.
Valid valid_steps(std::string_view who, const Tensor& x, bool channels_last, const Tensor& lengths,
                  std::int64_t least) {
  if (x.rank() != 3 || !channels_last)
    throw ValueError(std::string(who) + ": takes no lengths for " + x.shape().str() +
                     ", whose steps it does not know; give sequences [B, T, C] with channels_last");
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  const Label length = Label::of(std::string(who) + ": a length of");
  const Tensor all = checked(detail::checked_lengths(length, lengths, B, T), least, T, length);
  const Tensor mask = unsqueeze(lt(arange(T), unsqueeze(all, 1)), 2);
  return {where(mask, x, 0), mask, reshape(cast(all, x.dtype()), {B, 1, 1})};
}

struct Moments {
  Tensor mean, var;  ///< var is not corrected
  Tensor n;          ///< number of values in each
};
/// Returns the moments of n values along axes that stay, with extent 1: of those where the mask is set, or of all; over
/// all replicas, if there are any. Throws ValueError for fewer than `least`, with the label.
Moments moments_of(const Tensor& x, const Tensor& mask, Tensor n, const Shape& axes, const Replicas* replicas = nullptr,
                   std::int64_t least = 1, const Label& label = Label::of("a number of values")) {
  Tensor total = sum(x, axes, true);
  if (replicas) {  // a single message
    const Tensor both = replicas->sum(concat({reshape(total, {-1}), reshape(n, {1})}, 0));
    const std::int64_t C = total.numel();
    total = reshape(slice(both, 0, 0, C), total.shape());
    n = reshape(slice(detach(both), 0, C, C + 1), n.shape());
  }
  if (least > 1) n = checked(n, static_cast<double>(least), std::numeric_limits<double>::infinity(), label);
  const Tensor mean = total / n, away = mask.defined() ? where(mask, x - mean, 0) : x - mean;
  const Tensor squares = sum(square(away), axes, true);
  return {mean, (replicas ? replicas->sum(squares) : squares) / n, n};
}
Label of_several(std::string_view who, const char* number) {
  return Label::of(std::string(who) + ": training needs more than one value a channel: " + number);
}

Tensor normal(const Tensor& x, const Moments& m, double epsilon) { return (x - m.mean) * rsqrt(m.var + epsilon); }
/// Returns y weight + bias, with the channels last.
Tensor with_affine(const Tensor& y, const Parameter& weight, const Parameter& bias) {
  const Tensor by_weight = weight.defined() ? y * weight : y;
  return bias.defined() ? by_weight + bias : by_weight;
}

}  // namespace

// ---- batch and instance norm ---------------------------------------------------------------------------

template <bool over_batch, int N>
ChannelNorm<over_batch, N>::ChannelNorm(const ChannelNormOptions<over_batch>& o, const Init& init)
    : LayerOf<ChannelNorm, ChannelNormOptions<over_batch>>(o, init) {
  check_options(name, o.num_features, o.epsilon);
  check_momentum(name, o.momentum);
  this->setting("epsilon", o.epsilon);
  if (o.affine) {
    weight = this->parameter("weight", {o.num_features}, init::constant(1), init);
    bias = this->parameter("bias", {o.num_features}, init::constant(0), init);
  }
  if (o.track_running_stats) {
    running_mean = this->buffer("running_mean", zeros({o.num_features}, init.dtype));
    running_var = this->buffer("running_var", ones({o.num_features}, init.dtype));
    num_batches_tracked = this->buffer("num_batches_tracked", zeros({}, Dtype::i64));
  }
}

template <bool over_batch, int N>
Tensor ChannelNorm<over_batch, N>::forward(const Tensor& x, const Context& context) const {
  const auto& o = this->options();
  const bool of_x = of_batch();
  const Replicas* const replicas = over_batch && this->training() ? context.replicas : nullptr;
  if (context.lengths.defined() && of_x && x.rank() > 2) return normalised(x, context.lengths, replicas);
  const auto checked = [&](const Tensor& first) {
    detail::check_channels(name, x, first, o.num_features, type_of(*this, x));
    return normalised(first, replicas);
  };
  if (over_batch && N == 1 && x.rank() == 2) return checked(x);
  return detail::with_channels_first<N>(name, x, o.channels_last, checked);
}

template <bool over_batch, int N>
StepInput ChannelNorm<over_batch, N>::step_input() const {
  return {this->options().num_features, detail::dtype_of(*this)};
}

template <bool over_batch, int N>
Tensor ChannelNorm<over_batch, N>::normalised(const Tensor& x, const Replicas* replicas) const {
  const auto& o = this->options();
  const ChannelAffine affine{detail::value_of(weight), detail::value_of(bias)};
  const bool training = this->training();
  if (!training && o.track_running_stats)
    return batch_norm(x, running_mean.value(), running_var.value(), affine, o.epsilon);
  const std::int64_t n = values_each(x, over_batch);
  if (training && !replicas) check_several(name, n, x);
  Shape space;
  for (int i = 2; i < x.rank(); ++i) space.push_back(i);
  if constexpr (over_batch) {
    Shape axes{0};
    for (const std::int64_t i : space) axes.push_back(i);
    if (replicas) {
      const Moments all = moments_of(x, {}, scalar(static_cast<double>(n), x.dtype()), axes, replicas, 2,
                                     of_several(name, "the number in all replicas"));
      const Tensor m = reshape(all.mean, {x.shape()[1]}), v = reshape(all.var, {x.shape()[1]});
      if (o.track_running_stats) track(m, v * (all.n / (all.n - 1)));
      return batch_norm(x, m, v, affine, o.epsilon);
    }
    const Tensor m = mean(x, axes), v = var(x, axes, false, 0);
    if (training && o.track_running_stats) track(m, corrected(v, n));
    return batch_norm(x, m, v, affine, o.epsilon);
  } else {
    if (training && o.track_running_stats)
      track(mean(mean(x, space), {0}), mean(corrected(var(x, space, false, 0), n), {0}));
    return instance_norm(x, affine, o.epsilon);
  }
}

template <bool over_batch, int N>
Tensor ChannelNorm<over_batch, N>::normalised(const Tensor& given, const Tensor& lengths,
                                              const Replicas* replicas) const {
  const auto& o = this->options();
  const bool training = this->training();
  const Valid valid = valid_steps(name, given, o.channels_last && N == 1, lengths, training && !over_batch ? 2 : 1);
  detail::check_channels(name, given, movedim(given, {-1}, {1}), o.num_features, type_of(*this, given));
  Tensor n = valid.count;
  if (over_batch) n = sum(n, {0}, true);
  const Moments m =
      moments_of(valid.x, valid.mask, n, over_batch ? Shape{0, 1} : Shape{1}, replicas, over_batch && training ? 2 : 1,
                 of_several(name, "the sum of lengths"));  // [B or 1, 1, C]
  if (training && o.track_running_stats) track(mean(m.mean, {0, 1}), mean(m.var * (m.n / (m.n - 1)), {0, 1}));
  return with_affine(normal(valid.x, m, o.epsilon), weight, bias);
}

template <bool over_batch, int N>
void ChannelNorm<over_batch, N>::track(const Tensor& mean, const Tensor& var) const {
  const auto& o = this->options();
  Tensor rate = scalar(o.momentum.value_or(0), mean.dtype());
  if (over_batch) {
    const Tensor count = num_batches_tracked.value() + 1;
    num_batches_tracked.assign(count);
    if (!o.momentum) rate = reciprocal(cast(count, mean.dtype()));
  }
  blend(running_mean, mean, rate);
  blend(running_var, var, rate);
}

// ---- group norm ----------------------------------------------------------------------------------------

GroupNorm::GroupNorm(const GroupNormOptions& o, const Init& init) : LayerOf(o, init) {
  check_options(name, o.num_channels, o.epsilon);
  if (o.num_groups < 1 || o.num_channels % o.num_groups != 0)
    throw ValueError("group_norm: " + std::to_string(o.num_groups) + " groups do not divide " +
                     std::to_string(o.num_channels) + " channels");
  setting("epsilon", o.epsilon);
  if (!o.affine) return;
  weight = parameter("weight", {o.num_channels}, init::constant(1), init);
  bias = parameter("bias", {o.num_channels}, init::constant(0), init);
}

Tensor GroupNorm::forward(const Tensor& x, const Context& context) const {
  const GroupNormOptions& o = options();
  if (x.rank() < 2) throw ShapeError("group_norm: expects [B, C, ...], got " + x.shape().str());
  if (context.lengths.defined() && x.rank() > 2) {
    const Valid valid = valid_steps(name, x, o.channels_last, context.lengths, 1);
    detail::check_channels(name, x, movedim(x, {-1}, {1}), o.num_channels, type_of(*this, x));
    const std::int64_t each = o.num_channels / o.num_groups;
    const Tensor grouped = reshape(valid.x, {x.shape()[0], x.shape()[1], o.num_groups, each});
    const Tensor n = unsqueeze(valid.count, 3) * static_cast<double>(each);
    const Moments m = moments_of(grouped, unsqueeze(valid.mask, 3), n, {1, 3});  // [B, 1, G, 1]
    return with_affine(reshape(normal(grouped, m, o.epsilon), x.shape()), weight, bias);
  }
  const bool move = o.channels_last && x.rank() > 2;
  const Tensor first = move ? movedim(x, {-1}, {1}) : x;
  detail::check_channels(name, x, first, o.num_channels, type_of(*this, x));
  const Tensor y = group_norm(first, o.num_groups, {detail::value_of(weight), detail::value_of(bias)}, o.epsilon);
  return move ? movedim(y, {1}, {-1}) : y;
}

// ---- root mean square ----------------------------------------------------------------------------------

RmsNorm::RmsNorm(const RmsNormOptions& o, const Init& init) : LayerOf(o, init) {
  check_options(name, o.features, o.epsilon < 0 ? 0 : o.epsilon);
  if (o.affine) weight = parameter("weight", {o.features}, init::constant(1), init);
  if (o.epsilon >= 0) setting("epsilon", o.epsilon);
}

StepInput RmsNorm::step_input() const {
  if (!weight.defined()) return {0, Dtype::f32, true};
  return {options().features, weight.dtype()};
}

Tensor RmsNorm::forward(const Tensor& x, const Context&) const {
  const RmsNormOptions& o = options();
  if (x.rank() < 1 || x.shape()[-1] != o.features)
    throw ShapeError("rms_norm: expects " + std::to_string(o.features) + " features, got " + x.shape().str());
  if (weight.defined() && x.dtype() != weight.dtype())
    throw DtypeError("rms_norm: the weight is " + std::string(name_of(weight.dtype())) + ", got " + x.spec().str() +
                     "; cast the input");
  return rms_norm(x, 1, detail::value_of(weight), o.epsilon);
}

template class ChannelNorm<true, 1>;
template class ChannelNorm<true, 2>;
template class ChannelNorm<true, 3>;
template class ChannelNorm<false, 1>;
template class ChannelNorm<false, 2>;
template class ChannelNorm<false, 3>;
template class LayerOf<ChannelNorm<true, 1>, ChannelNormOptions<true>>;
template class LayerOf<ChannelNorm<true, 2>, ChannelNormOptions<true>>;
template class LayerOf<ChannelNorm<true, 3>, ChannelNormOptions<true>>;
template class LayerOf<ChannelNorm<false, 1>, ChannelNormOptions<false>>;
template class LayerOf<ChannelNorm<false, 2>, ChannelNormOptions<false>>;
template class LayerOf<ChannelNorm<false, 3>, ChannelNormOptions<false>>;
template class LayerOf<GroupNorm, GroupNormOptions>;
template class LayerOf<RmsNorm, RmsNormOptions>;

}  // namespace ferrite::nn
