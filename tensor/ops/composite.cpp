/// Functions of floats that are composed of operations: gradients, tracing, fusion and export come by themselves.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/ops/detail/layer_norm.h"
#include "ferrite/tensor/ops/detail/row_gradients.h"

namespace ferrite {
namespace detail {
namespace {

double count(const Shape& shape, const Shape& axes) {
  double n = 1;
  for (const std::int64_t a : axes) n *= static_cast<double>(shape[static_cast<int>(a)]);
  return n;
}

/// The largest element along axes as a constant, 0 where it is not finite: the shift that keeps exp in range.
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
    // The mean of the distances from the mean is what rounding left of it: large beside distances that are small beside
    // x. It is taken off, too.
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

Family composite_family() {
  static constexpr const Primitive* list[] = {&composite<Mean>,      &composite<Var>,     &composite<LogSumExp>,
                                              &composite<Softmax>,   &composite<Softmin>, &composite<LogSoftmax>,
                                              &composite<LayerNorm>, &composite<Affine>};
  return list;
}

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

}  // namespace ferrite
