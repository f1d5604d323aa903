/// Normalisation by means and variances, composed.
#include "ferrite/tensor/normalization.h"

#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/ops/detail/layer_norm.h"

namespace ferrite {
namespace detail {
namespace {

/// [C] as [1, C, 1, ...] of a rank.
Tensor by_channel(const Tensor& of_channels, int rank) {
  Shape shape = Shape::filled(rank, 1);
  shape[1] = of_channels.numel();
  return reshape(of_channels, shape);
}

struct EpsilonAttrs {
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("epsilon", &EpsilonAttrs::epsilon));
};

struct BatchNorm {
  using Attributes = EpsilonAttrs;
  static constexpr auto name = "batch_norm", onnx = "BatchNormalization";
  static constexpr auto summary = "(x - mean) / sqrt(var + epsilon) of x [N, C, ...], mean and var [C]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const int rank = in[0].rank();
    return (in[0] - by_channel(in[1], rank)) * by_channel(rsqrt(in[2] + a.epsilon), rank);
  }
};

struct GroupAttrs {
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("groups", &GroupAttrs::groups), attr("epsilon", &GroupAttrs::epsilon));
};

struct GroupNorm {
  using Attributes = GroupAttrs;
  static constexpr auto name = "group_norm", onnx = "GroupNormalization";
  static constexpr auto summary = "(x - mean) / sqrt(variance + epsilon) of groups of channels of x [N, C, ...]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t groups = s[0] * a.groups, each = groups ? s.numel() / groups : 0;
    return reshape(layer_norm(reshape(in[0], {s[0], a.groups, each}), 1, a.epsilon), s);
  }
};

struct RmsAttrs {
  int axes = 1;
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("axes", &RmsAttrs::axes), attr("epsilon", &RmsAttrs::epsilon));
};

struct RmsNorm {
  using Attributes = RmsAttrs;
  static constexpr auto name = "rms_norm", onnx = "RMSNormalization";
  static constexpr auto summary = "x / sqrt(mean of x^2 + epsilon) over the last axes";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    return x * rsqrt(mean(square(x), last_axes(x.rank(), a.axes), true) + a.epsilon);
  }
};

struct LocalResponseAttrs {
  std::int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, k = 1;
  static constexpr auto fields =
      attr_list(attr("size", &LocalResponseAttrs::size), attr("alpha", &LocalResponseAttrs::alpha),
                attr("beta", &LocalResponseAttrs::beta), attr("k", &LocalResponseAttrs::k));
};

struct LocalResponseNorm {
  using Attributes = LocalResponseAttrs;
  static constexpr auto name = "local_response_norm", onnx = "LRN";
  static constexpr auto summary = "x / (k + alpha times the mean of x^2 over neighbouring channels)^beta";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    Shape before = Shape::filled(x.rank(), 0), after = before;
    before[1] = a.size / 2;
    after[1] = (a.size - 1) / 2;
    const Tensor squares = pad(square(x), before, after);
    Tensor total = slice(squares, 1, 0, x.shape()[1]);
    for (std::int64_t i = 1; i < a.size; ++i) total = total + slice(squares, 1, i, i + x.shape()[1]);
    return x / pow(total * (a.alpha / static_cast<double>(a.size)) + a.k, a.beta);
  }
};

void check_channels(std::string_view where, const Tensor& x) {
  check_float(x, where);
  if (x.rank() < 2) throw_shape(where, "expects [N, C, ...], got " + x.shape().str());
}
void check_of_channels(std::string_view where, std::string_view what, const Tensor& x, const Tensor& t) {
  if (t.shape() != Shape{x.shape()[1]})
    throw_shape(where, "the " + std::string(what) + " must be " + Shape{x.shape()[1]}.str() + " for x " +
                           x.shape().str() + ", got " + t.shape().str());
  if (t.dtype() != x.dtype())
    throw_dtype(where, "dtypes differ: x is " + x.spec().str() + ", the " + std::string(what) + " " + t.spec().str());
}
void check_epsilon(std::string_view where, double epsilon) {
  if (!(epsilon >= 0))
    throw ValueError(std::string(where) + ": epsilon must not be negative, got " + Scalar(epsilon).str());
}
void check_affine(std::string_view where, const Tensor& x, const ChannelAffine& affine) {
  if (affine.weight.defined()) check_of_channels(where, "weight", x, affine.weight);
  if (affine.bias.defined()) check_of_channels(where, "bias", x, affine.bias);
}
Tensor scaled(const Tensor& y, const ChannelAffine& affine) {
  Tensor z = y;
  if (affine.weight.defined()) z = z * by_channel(affine.weight, y.rank());
  return affine.bias.defined() ? z + by_channel(affine.bias, y.rank()) : z;
}

Tensor grouped(std::string_view where, const Tensor& x, std::int64_t groups, const ChannelAffine& affine,
               double epsilon) {
  check_epsilon(where, epsilon);
  if (groups < 1 || x.shape()[1] % groups != 0)
    throw ValueError(std::string(where) + ": " + std::to_string(groups) + " groups do not divide the channels of " +
                     x.shape().str());
  check_affine(where, x, affine);
  return scaled(composed<GroupNorm>({{&x}}, {groups, epsilon}), affine);
}

}  // namespace

Family composite_normalization_family() {
  static constexpr const Primitive* list[] = {&composite<BatchNorm>, &composite<GroupNorm>, &composite<RmsNorm>,
                                              &composite<LocalResponseNorm>};
  return list;
}

}  // namespace detail

using detail::composed;

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const ChannelAffine& affine, double epsilon) {
  detail::check_channels("batch_norm", x);
  detail::check_of_channels("batch_norm", "mean", x, mean);
  detail::check_of_channels("batch_norm", "var", x, var);
  detail::check_affine("batch_norm", x, affine);
  detail::check_epsilon("batch_norm", epsilon);
  return detail::scaled(composed<detail::BatchNorm>({{&x, &mean, &var}}, {epsilon}), affine);
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const ChannelAffine& affine, double epsilon) {
  detail::check_channels("group_norm", x);
  return detail::grouped("group_norm", x, groups, affine, epsilon);
}

Tensor instance_norm(const Tensor& x, const ChannelAffine& affine, double epsilon) {
  detail::check_channels("instance_norm", x);
  if (x.shape()[1] == 0) detail::throw_shape("instance_norm", "there are no channels: " + x.shape().str());
  return detail::grouped("instance_norm", x, x.shape()[1], affine, epsilon);
}

Tensor rms_norm(const Tensor& x, int axes, const Tensor& weight, double epsilon) {
  detail::check_float(x, "rms_norm");
  if (axes < 1 || axes > x.rank())
    detail::throw_shape("rms_norm", std::to_string(axes) + " last axes of " + x.shape().str());
  Shape last;
  for (int i = x.rank() - axes; i < x.rank(); ++i) last.push_back(x.shape()[i]);
  if (weight.defined() && (weight.shape() != last || weight.dtype() != x.dtype()))
    detail::throw_shape("rms_norm",
                        "the weight must be " + Spec{last, x.dtype()}.str() + ", got " + weight.spec().str());
  if (std::isnan(epsilon)) throw ValueError("rms_norm: epsilon is NaN");
  const double least = x.dtype() == Dtype::f32 ? 0x1p-23 : 0x1p-52;
  const Tensor y = composed<detail::RmsNorm>({{&x}}, {axes, epsilon < 0 ? least : epsilon});
  return weight.defined() ? y * weight : y;
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, const LocalResponseOptions& o) {
  detail::check_channels("local_response_norm", x);
  if (size < 1) throw ValueError("local_response_norm: the size must be positive, got " + std::to_string(size));
  return composed<detail::LocalResponseNorm>({{&x}}, {size, o.alpha, o.beta, o.k});
}

}  // namespace ferrite
