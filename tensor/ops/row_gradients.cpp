/// Gradients of softmax, log-softmax and layer norm in one pass over rows that stay in the cache.
#include "ferrite/tensor/ops/detail/row_gradients.h"

#include <cmath>
#include <numeric>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/groups.h"
#include "ferrite/tensor/ops/detail/layer_norm.h"

namespace ferrite {
namespace detail {
namespace {

/// out = f(cotangents, values) of every group of elements along axes, one number for each.
template <class F>
void zip_groups(std::span<const Dense> in, const Shape& axes, Dense& out, const F& f) {
  for_each_group(in[0], axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> g, values;
    for (const Shape& i : members) {
      g.push_back(in[0].at(i));
      values.push_back(in[1].at(i));
    }
    const std::vector<double> found = f(g, values);
    for (std::size_t k = 0; k < members.size(); ++k) out.at(members[k]) = found[k];
  });
}
double total_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double product_of(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<Sample> along_axes() {
  return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = AxisAttrs{1}},
          {.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = AxisAttrs{0}},
          {.inputs = {{{2, 3, 40}}, {{2, 3, 40}}}, .attrs = AxisAttrs{2}},
          {.inputs = {{{0, 3}}, {{0, 3}}}, .attrs = AxisAttrs{1}}};
}

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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    zip_groups(in, {a.axis}, out[0], [](std::vector<double> g, const std::vector<double>& y) {
      const double total = product_of(g, y);
      for (std::size_t k = 0; k < g.size(); ++k) g[k] = y[k] * (g[k] - total);
      return g;
    });
  }
  static std::vector<Sample> samples() { return along_axes(); }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    zip_groups(in, {a.axis}, out[0], [](std::vector<double> g, const std::vector<double>& y) {
      const double total = total_of(g);
      for (std::size_t k = 0; k < g.size() && total != 0; ++k) g[k] -= std::exp(y[k]) * total;
      return g;
    });
  }
  static std::vector<Sample> samples() { return along_axes(); }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Shape over = last_axes(in[0].shape.rank(), a.axes);
    zip_groups(in, over, out[0], [&](std::vector<double> g, std::vector<double> y) {
      const auto n = static_cast<double>(y.size());
      const double centre = total_of(y) / n, level = total_of(g) / n;
      for (double& v : y) v -= centre;
      const double scale = 1 / std::sqrt(product_of(y, y) / n + a.epsilon);
      const double slope = product_of(g, y) * scale / n;
      for (std::size_t k = 0; k < g.size(); ++k) g[k] = (g[k] - level - y[k] * scale * slope) * scale;
      return g;
    });
  }
  static std::vector<Sample> samples() {
    // Where all elements are equal, an epsilon of 1e-5 bends too sharply for a difference quotient.
    return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = LayerNormAttrs{}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 14}}, {{2, 3, 14}}}, .attrs = LayerNormAttrs{2, 0.1}},
            {.inputs = {{{0, 3}}, {{0, 3}}}, .attrs = LayerNormAttrs{}}};
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
