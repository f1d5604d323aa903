/// Layers that normalise: weights, and running numbers of what training has seen.
#include "ferrite/nn/layers/norms.h"

#include "ferrite/nn/detail/value_of.h"
#include "ferrite/nn/layers/detail/channels.h"

namespace ferrite::nn {
namespace {

void check_options(std::string_view where, std::int64_t features, double epsilon) {
  if (features < 1) throw ValueError(std::string(where) + ": there must be features, got " + std::to_string(features));
  ferrite::detail::check_not_negative(std::string(where) + ": epsilon", {epsilon});
}
void check_momentum(std::string_view where, const std::optional<double>& momentum) {
  if (momentum && !(*momentum >= 0 && *momentum <= 1))
    throw ValueError(std::string(where) + ": the momentum must lie in [0, 1], got " + std::to_string(*momentum));
}

/// What x must be: the dtype of the layer's variables, any without.
Dtype type_of(const Module& layer, const Tensor& x) {
  const bool some = !layer.named_parameters().empty() || !layer.named_buffers().empty();
  return some ? detail::dtype_of(layer) : x.dtype();
}

/// value (1 - rate) + seen rate.
void blend(const Buffer& value, const Tensor& seen, const Tensor& rate) {
  const Tensor before = value.value();
  value.assign(before + (detach(seen) - before) * rate);
}
Tensor scalar(double x, Dtype dtype) { return full({}, x, dtype); }

/// Uncorrected variances of n values, corrected.
Tensor corrected(const Tensor& var, std::int64_t n) {
  return var * (static_cast<double>(n) / static_cast<double>(n - 1));
}

/// How many values of each channel are normalised together; none in an empty batch.
std::int64_t values_each(const Tensor& x, bool over_batch) {
  std::int64_t n = over_batch ? x.shape()[0] : std::min<std::int64_t>(x.shape()[0], 1);
  for (int i = 2; i < x.rank(); ++i) n *= x.shape()[i];
  return n;
}

void check_several(std::string_view where, std::int64_t n, const Tensor& x) {
  if (n < 2)
    throw ShapeError(std::string(where) + ": training needs more than one value a channel, got " + x.shape().str());
}

}  // namespace

// ---- batch and instance norm ---------------------------------------------------------------------------

template <bool over_batch, int N>
ChannelNorm<over_batch, N>::ChannelNorm(const ChannelNormOptions<over_batch>& o, const Init& init)
    : LayerOf<ChannelNorm, ChannelNormOptions<over_batch>>(o, init) {
  check_options(name, o.num_features, o.epsilon);
  check_momentum(name, o.momentum);
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
Tensor ChannelNorm<over_batch, N>::forward(const Tensor& x, const Context&) const {
  const auto& o = this->options();
  const auto checked = [&](const Tensor& first) {
    detail::check_channels(name, x, first, o.num_features, type_of(*this, x));
    return normalised(first);
  };
  if (over_batch && N == 1 && x.rank() == 2) return checked(x);
  return detail::with_channels_first<N>(name, x, o.channels_last, checked);
}

template <bool over_batch, int N>
StepInput ChannelNorm<over_batch, N>::step_input() const {
  return {this->options().num_features, detail::dtype_of(*this)};
}

template <bool over_batch, int N>
Tensor ChannelNorm<over_batch, N>::normalised(const Tensor& x) const {
  const auto& o = this->options();
  const ChannelAffine affine{detail::value_of(weight), detail::value_of(bias)};
  const bool training = this->training();
  if (!training && o.track_running_stats)
    return batch_norm(x, running_mean.value(), running_var.value(), affine, o.epsilon);
  const std::int64_t n = values_each(x, over_batch);
  if (training) check_several(name, n, x);
  Shape space;
  for (int i = 2; i < x.rank(); ++i) space.push_back(i);
  if constexpr (over_batch) {
    Shape axes{0};
    for (const std::int64_t i : space) axes.push_back(i);
    const Tensor m = mean(x, axes), v = var(x, axes, false, 0);
    if (training && o.track_running_stats) {
      const Tensor count = num_batches_tracked.value() + 1;
      num_batches_tracked.assign(count);
      const Tensor rate = o.momentum ? scalar(*o.momentum, x.dtype()) : reciprocal(cast(count, x.dtype()));
      blend(running_mean, m, rate);
      blend(running_var, corrected(v, n), rate);
    }
    return batch_norm(x, m, v, affine, o.epsilon);
  } else {
    if (training && o.track_running_stats) {
      const Tensor rate = scalar(o.momentum.value_or(0), x.dtype());
      blend(running_mean, mean(mean(x, space), {0}), rate);
      blend(running_var, mean(corrected(var(x, space, false, 0), n), {0}), rate);
    }
    return instance_norm(x, affine, o.epsilon);
  }
}

// ---- group norm ----------------------------------------------------------------------------------------

GroupNorm::GroupNorm(const GroupNormOptions& o, const Init& init) : LayerOf(o, init) {
  check_options(name, o.num_channels, o.epsilon);
  if (o.num_groups < 1 || o.num_channels % o.num_groups != 0)
    throw ValueError("group_norm: " + std::to_string(o.num_groups) + " groups do not divide " +
                     std::to_string(o.num_channels) + " channels");
  if (!o.affine) return;
  weight = parameter("weight", {o.num_channels}, init::constant(1), init);
  bias = parameter("bias", {o.num_channels}, init::constant(0), init);
}

Tensor GroupNorm::forward(const Tensor& x, const Context&) const {
  const GroupNormOptions& o = options();
  if (x.rank() < 2) throw ShapeError("group_norm: expects [B, C, ...], got " + x.shape().str());
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

}  // namespace ferrite::nn
