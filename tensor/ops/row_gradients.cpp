/// Gradients of softmax, log-softmax and layer norm in one pass over rows that stay in the cache.
#include "ferrite/tensor/ops/detail/row_gradients.h"

#include <numeric>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/layer_norm.h"

namespace ferrite {
namespace detail {
namespace {

struct SoftmaxGrad {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmax_grad", onnx = "";
  static constexpr auto summary = "y (g - sum of g y) along an axis: a cotangent g behind y = softmax(x)";

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
      "g - e^y sum of g along an axis, g where that sum is 0: a cotangent g behind y = log_softmax(x)";

  /// Where the sum is 0, a NaN in y does not count: of a row that no loss counts none reaches a gradient. Other values
  /// do, since the derivative by g at a sum of 0 is made of them.
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
      "(g - mean of g - y mean of g y) / sqrt(variance of x + epsilon) over the last axes: a cotangent g behind "
      "y = layer_norm(x)";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &g = in[0], &x = in[1];
    const Shape over = last_axes(x.rank(), a.axes);
    const Tensor centred = x - mean(x, over, true);
    const Tensor scale = rsqrt(mean(square(centred), over, true) + a.epsilon);
    const Tensor y = centred * scale;
    return (g - mean(g, over, true) - y * mean(g * y, over, true)) * scale;
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

Family row_gradient_family() {
  static constexpr const Primitive* list[] = {&composite<SoftmaxGrad>, &composite<LogSoftmaxGrad>,
                                              &composite<LayerNormGrad>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
