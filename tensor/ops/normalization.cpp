/// Means, variances, softmax and normalisation, composed of operations: gradients, tracing, fusion and export follow
/// from the parts.
#include "ferrite/tensor/normalization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/normalization.h"

namespace ferrite {

// ---- gradients of softmax, log-softmax and layer norm in one pass over rows that stay in the cache --------

namespace detail {
namespace {

struct SoftmaxGrad {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmax_grad", onnx = "";
  static constexpr auto summary = "y (g - sum of g y) along an axis: a cotangent g through y = softmax(x)";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &g = in[0], &y = in[1];
    return y * (g - sum(g * y, {a.axis}, true));
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const auto rows = a.axis == in[0].rank() - 1 ? dense_rows(in[0], in[1], 1) : std::nullopt;
    if (!rows) return {};
    return by_rows(in[0], in[1], *rows, [](const auto& k, auto... run) { k.softmax_grad(run...); });
  }
};

struct LogSoftmaxGrad {
  using Attributes = AxisAttrs;
  static constexpr auto name = "log_softmax_grad", onnx = "";
  static constexpr auto summary =
      "g - e^y sum of g along an axis, g where that sum is 0: a cotangent g through y = log_softmax(x)";

  /// Where the sum is 0, a NaN in y does not count, so that a row that no loss counts passes no NaN to a gradient.
  /// Other values do count, since the derivative by g at a sum of 0 is made of them.
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor total = sum(in[0], {a.axis}, true);
    return in[0] - exp(where(eq(total, 0) && ne(in[1], in[1]), 0.0, in[1])) * total;
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const auto rows = a.axis == in[0].rank() - 1 ? dense_rows(in[0], in[1], 1) : std::nullopt;
    if (!rows) return {};
    return by_rows(in[0], in[1], *rows, [](const auto& k, auto... run) { k.log_softmax_grad(run...); });
  }
};

struct LayerNormGrad {
  using Attributes = LayerNormAttrs;
  static constexpr auto name = "layer_norm_grad", onnx = "";
  static constexpr auto summary =
      "(g - mean of g - y mean of g y) / sqrt(variance of x + epsilon) over the last axes: a cotangent g through "
      "y = layer_norm(x)";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &g = in[0], &x = in[1];
    const Shape over = last_axes(x.rank(), a.axes);
    const Tensor centred = x - mean(x, over, true);
    const Tensor scale = rsqrt(mean(square(centred), over, true) + a.epsilon);
    const Tensor y = centred * scale;
    const Tensor along = y * mean(g * y, over, true);  // named in order: docs/numerics.md, rule 13
    return (g - mean(g, over, true) - along) * scale;
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const auto rows = dense_rows(in[0], in[1], a.axes);
    if (!rows) return {};
    return by_rows(in[0], in[1], *rows,
                   [&]<class T>(const auto& k, const T* g, const T* x, T* to, const DenseRows& all) {
                     k.layer_norm_grad(g, x, to, static_cast<T>(a.epsilon), all);
                   });
  }
};

}  // namespace

Tensor softmax_grad(const Tensor& g, const Tensor& y, int axis) { return composed<SoftmaxGrad>({{&g, &y}}, {axis}); }
Tensor log_softmax_grad(const Tensor& g, const Tensor& y, int axis) {
  return composed<LogSoftmaxGrad>({{&g, &y}}, {axis});
}
Tensor layer_norm_grad(const Tensor& g, const Tensor& x, int axes, double epsilon) {
  return composed<LayerNormGrad>({{&g, &x}}, {axes, epsilon});
}

// ---- functions along rows ---------------------------------------------------------------------------------

namespace {

double count(const Shape& shape, const Shape& axes) {
  double n = 1;
  for (const std::int64_t a : axes) n *= static_cast<double>(shape[static_cast<int>(a)]);
  return n;
}

/// Returns the largest element along axes as a constant, 0 where it is not finite: the shift that keeps exp in range.
Tensor shift(const Tensor& x, const Shape& axes) {
  const Tensor m = detach(amax(detach(x), axes, true));
  return where(lt(abs(m), std::numeric_limits<double>::infinity()), m, 0.0);
}

struct Mean {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "mean", onnx = "ReduceMean";
  static constexpr auto summary = "sum over axes / number of elements; NaN of none";

  static Tensor parts(Inputs in, const Attributes& a) {
    return sum(in[0], a.axes, a.keepdim) / count(in[0].shape(), a.axes);
  }
};

struct VarAttrs {
  Shape axes{};
  bool keepdim = false;
  double correction = 1;
  static constexpr auto fields = attr_list(attr("axes", &VarAttrs::axes), attr("keepdim", &VarAttrs::keepdim),
                                           attr("correction", &VarAttrs::correction));
};

struct Var {
  using Attributes = VarAttrs;
  static constexpr auto name = "var", onnx = "";
  static constexpr auto summary = "sum of (x - mean)^2 over axes / (number of elements - correction)";

  static Tensor parts(Inputs in, const Attributes& a) {
    // The mean of the distances from the mean is its rounding error: large compared to distances that are small
    // compared to x. It is subtracted, too.
    const Tensor& x = in[0];
    const Tensor apart = x - detach(mean(detach(x), a.axes, true));
    const Tensor squares = square(apart - mean(apart, a.axes, true));
    return sum(squares, a.axes, a.keepdim) / std::max(0.0, count(x.shape(), a.axes) - a.correction);
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const double divisor = std::max(0.0, count(in[0].shape(), a.axes) - a.correction);
    return reduced_last(in[0], a.axes, a.keepdim, [&]<class T>(const auto& k, const T* x, T* y, const DenseRows& rows) {
      k.var(x, y, static_cast<T>(divisor), rows);
    });
  }
};

struct LogSumExp {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "logsumexp", onnx = "ReduceLogSumExp";
  static constexpr auto summary = "ln of the sum of e^x over axes, without overflow; -inf of none, with gradient 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    if (a.axes.rank() == 0) return x;
    if (x.numel() == 0) return log(sum(x, a.axes, a.keepdim));
    const Tensor m = shift(x, a.axes);
    const Tensor total = sum(exp(x - m), a.axes, true), none = eq(total, 0.0);  // the slope of log is infinite there
    const Tensor y = where(none, -std::numeric_limits<double>::infinity(), log(where(none, 1.0, total)) + m);
    return a.keepdim ? y : reshape(y, reduced_shape(x.shape(), a.axes, false));
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    return reduced_last(in[0], a.axes, a.keepdim, [](const auto& k, auto... run) { k.logsumexp(run...); });
  }
};

struct Softmax {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmax", onnx = "Softmax";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr Reads reads = reads_outputs;
  static constexpr auto summary = "e^x / sum of e^x along an axis, without overflow";

  static Tensor parts(Inputs in, const Attributes& a) {
    check_axis(name, a.axis, in[0].rank());
    if (in[0].numel() == 0) return in[0];
    const Tensor e = exp(in[0] - shift(in[0], {a.axis}));
    return e / sum(e, {a.axis}, true);
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    return along_last(in[0], a.axis, [](const auto& k, auto... run) { k.softmax(run...); });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {softmax_grad(v.grad(), v.out(0), a.axis)}; }
};

struct Softmin {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmin", onnx = "", summary = "softmax(-x) along an axis";

  static Tensor parts(Inputs in, const Attributes& a) { return softmax(-in[0], a.axis); }
};

struct LogSoftmax {
  using Attributes = AxisAttrs;
  static constexpr auto name = "log_softmax", onnx = "LogSoftmax";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr Reads reads = reads_outputs;
  static constexpr auto summary = "x - ln of the sum of e^x along an axis, without overflow";

  static Tensor parts(Inputs in, const Attributes& a) {
    check_axis(name, a.axis, in[0].rank());
    if (in[0].numel() == 0) return in[0];
    const Tensor centred = in[0] - shift(in[0], {a.axis});
    return centred - log(sum(exp(centred), {a.axis}, true));
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    return along_last(in[0], a.axis, [](const auto& k, auto... run) { k.log_softmax(run...); });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {log_softmax_grad(v.grad(), v.out(0), a.axis)}; }
};

void check_layer_norm(const Tensor& x, const LayerNormAttrs& a) {
  if (a.axes < 1 || a.axes > x.rank())
    throw_shape("layer_norm", std::to_string(a.axes) + " axes of a tensor of rank " + std::to_string(x.rank()));
  check_not_negative("layer_norm: epsilon", {a.epsilon});
}

struct LayerNorm {
  using Attributes = LayerNormAttrs;
  static constexpr auto name = "layer_norm", onnx = "LayerNormalization";
  static constexpr TimeRule time = TimeRule::normalizes;
  static constexpr Reads reads = reads_inputs;
  static constexpr auto summary = "(x - mean) / sqrt(variance + epsilon) over the last axes, the variance uncorrected";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    check_layer_norm(x, a);
    const Shape over = last_axes(x.rank(), a.axes);
    const Tensor centred = x - mean(x, over, true);
    return centred * rsqrt(mean(square(centred), over, true) + a.epsilon);
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const auto rows = dense_rows(in[0], a.axes);
    if (!rows) return {};
    return by_rows(in[0], *rows, in[0].shape(), [&]<class T>(const auto& k, const T* x, T* y, const DenseRows& r) {
      k.layer_norm(x, y, static_cast<T>(a.epsilon), r);
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {layer_norm_grad(v.grad(), v.in(0), a.axes, a.epsilon)};
  }
};

struct Affine {
  static constexpr auto name = "affine", onnx = "", summary = "x . weight + bias";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor y = matmul(in[0], in[1]);
    return in.size() > 2 ? y + in[2] : y;
  }
};

}  // namespace

}  // namespace detail

using detail::composed;

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim) {
  detail::check_float(x, "mean");
  return composed<detail::Mean>({{&x}}, {axes_of(axes, x.rank(), "mean"), keepdim});
}

Tensor var(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  detail::check_float(x, "var");
  if (!std::isfinite(correction))
    throw ValueError("var: the correction must be finite, got " + Scalar(correction).str());
  return composed<detail::Var>({{&x}}, {axes_of(axes, x.rank(), "var"), keepdim, correction});
}

Tensor logsumexp(const Tensor& x, const Shape& axes, bool keepdim) {
  detail::check_float(x, "logsumexp");
  return composed<detail::LogSumExp>({{&x}}, {axes_of(axes, x.rank(), "logsumexp"), keepdim});
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  detail::check_float(x, "softmax");
  return composed<detail::Softmax>({{&x}}, {axis_of(axis, x.rank(), "softmax")});
}

Tensor softmin(const Tensor& x, std::int64_t axis) {
  detail::check_float(x, "softmin");
  return composed<detail::Softmin>({{&x}}, {axis_of(axis, x.rank(), "softmin")});
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  detail::check_float(x, "log_softmax");
  return composed<detail::LogSoftmax>({{&x}}, {axis_of(axis, x.rank(), "log_softmax")});
}

Tensor layer_norm(const Tensor& x, int axes, double epsilon) {
  detail::check_float(x, "layer_norm");
  const detail::LayerNormAttrs attrs{axes, epsilon};
  detail::check_layer_norm(x, attrs);
  return composed<detail::LayerNorm>({{&x}}, attrs);
}

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!bias.defined()) return composed<detail::Affine>({{&x, &weight}});
  return composed<detail::Affine>({{&x, &weight, &bias}});
}

// ---- normalisation of channels and groups -----------------------------------------------------------------

namespace detail {
namespace {

/// Reshapes [C] to [1, C, 1, ...] of a rank.
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

}  // namespace detail

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

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family composite_family() {
  static constexpr const Primitive* list[] = {
      &composite<Mean>,           &composite<Var>,          &composite<LogSumExp>,
      &composite<Softmax>,        &composite<Softmin>,      &composite<LogSoftmax>,
      &composite<LayerNorm>,      &composite<Affine>,       &composite<SoftmaxGrad>,
      &composite<LogSoftmaxGrad>, &composite<LayerNormGrad>};
  return list;
}

Family composite_normalization_family() {
  static constexpr const Primitive* list[] = {&composite<BatchNorm>, &composite<GroupNorm>, &composite<RmsNorm>,
                                              &composite<LocalResponseNorm>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
