#pragma once
/// Activations with options as layers, under PyTorch's names; those without are Activation (nn/layers/layers.h). Each
/// applies a function of tensor/activations.h, where formula, source and errors are documented.
#include "ferrite/nn/layer_of.h"
#include "ferrite/tensor/activations.h"

namespace ferrite::nn {

namespace detail {
/// Adds the step of a layer that applies a function of its input and options to each element.
std::size_t add_element_steps(const Layer& layer, StepGraph& graph, std::size_t x);

/// A layer that applies a function of a tensor and its options, element by element.
template <class Self, class Options>
class ElementLayer : public LayerOf<Self, Options> {
 public:
  explicit ElementLayer(const Options& options) : LayerOf<Self, Options>(options, Init(), OwnSteps()) {}
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override { return add_element_steps(*this, graph, x); }
};
}  // namespace detail

/// Options of Elu and Celu: alpha, where -alpha is the limit of the result for x towards -infinity.
struct AlphaOptions {
  double alpha = 1;
  static constexpr auto fields = attr_list(attr("alpha", &AlphaOptions::alpha));
};
/// An exponential linear unit, as torch.nn.ELU.
class Elu final : public detail::ElementLayer<Elu, AlphaOptions> {
 public:
  static constexpr auto name = "elu";
  explicit Elu(const AlphaOptions& o = {}) : ElementLayer(o) {}
  Tensor forward(const Tensor& x, const Context&) const override { return elu(x, options().alpha); }
};
/// A continuously differentiable exponential linear unit, as torch.nn.CELU. Throws ValueError for alpha 0.
class Celu final : public detail::ElementLayer<Celu, AlphaOptions> {
 public:
  static constexpr auto name = "celu";
  explicit Celu(const AlphaOptions& o = {}) : ElementLayer(o) { (void)celu(zeros({0}), o.alpha); }
  Tensor forward(const Tensor& x, const Context&) const override { return celu(x, options().alpha); }
};

/// Options of LeakyRelu: the slope of negative elements.
struct SlopeOptions {
  double slope = 0.01;  ///< slope of negative elements: PyTorch's negative_slope
  static constexpr auto fields = attr_list(attr("slope", &SlopeOptions::slope));
};
/// A leaky rectifier, as torch.nn.LeakyReLU.
class LeakyRelu final : public detail::ElementLayer<LeakyRelu, SlopeOptions> {
 public:
  static constexpr auto name = "leaky_relu";
  explicit LeakyRelu(const SlopeOptions& o = {}) : ElementLayer(o) {}
  Tensor forward(const Tensor& x, const Context&) const override { return leaky_relu(x, options().slope); }
};

/// Options of Hardtanh: the bounds of the result.
struct BoundsOptions {
  double low = -1, high = 1;  ///< PyTorch's min_val and max_val
  static constexpr auto fields = attr_list(attr("low", &BoundsOptions::low), attr("high", &BoundsOptions::high));
};
/// Clamps elements to [low, high], as torch.nn.Hardtanh. Throws ValueError for low > high.
class Hardtanh final : public detail::ElementLayer<Hardtanh, BoundsOptions> {
 public:
  static constexpr auto name = "hardtanh";
  explicit Hardtanh(const BoundsOptions& o = {}) : ElementLayer(o) { (void)hardtanh(zeros({0}), o.low, o.high); }
  Tensor forward(const Tensor& x, const Context&) const override { return hardtanh(x, options().low, options().high); }
};

/// Options of Softshrink and Hardshrink: lambda, below which elements (by absolute value) become 0.
struct LambdaOptions {
  double lambda = 0.5;  ///< the threshold; of Softshrink at least 0
  static constexpr auto fields = attr_list(attr("lambda", &LambdaOptions::lambda));
};
/// Shrinks elements towards 0 by lambda, as torch.nn.Softshrink. Throws ValueError for lambda < 0.
class Softshrink final : public detail::ElementLayer<Softshrink, LambdaOptions> {
 public:
  static constexpr auto name = "softshrink";
  explicit Softshrink(const LambdaOptions& o = {}) : ElementLayer(o) { (void)softshrink(zeros({0}), o.lambda); }
  Tensor forward(const Tensor& x, const Context&) const override { return softshrink(x, options().lambda); }
};
/// Sets elements in [-lambda, lambda] to 0, as torch.nn.Hardshrink. Throws ValueError for a lambda that is NaN.
class Hardshrink final : public detail::ElementLayer<Hardshrink, LambdaOptions> {
 public:
  static constexpr auto name = "hardshrink";
  explicit Hardshrink(const LambdaOptions& o = {}) : ElementLayer(o) { (void)hardshrink(zeros({0}), o.lambda); }
  Tensor forward(const Tensor& x, const Context&) const override { return hardshrink(x, options().lambda); }
};

/// Options of Threshold: its bound, and the value of elements that do not exceed it.
struct ThresholdOptions {
  double bound = 0, value = 0;  ///< elements <= bound become `value`: PyTorch's threshold and value
  static constexpr auto fields =
      attr_list(attr("bound", &ThresholdOptions::bound), attr("value", &ThresholdOptions::value));
};
/// Replaces elements that do not exceed `bound` by `value`, as torch.nn.Threshold.
class Threshold final : public detail::ElementLayer<Threshold, ThresholdOptions> {
 public:
  static constexpr auto name = "threshold";
  explicit Threshold(const ThresholdOptions& o) : ElementLayer(o) {}
  Tensor forward(const Tensor& x, const Context&) const override {
    return threshold(x, options().bound, options().value);
  }
};

/// Options of Glu: the axis that is halved.
struct AxisOptions {
  std::int64_t axis = -1;  ///< axis that is split into two halves
  static constexpr auto fields = attr_list(attr("axis", &AxisOptions::axis));
};
/// A gated linear unit, as torch.nn.GLU: the first half of an axis times the sigmoid of the second. Causal for
/// axis -1.
class Glu final : public LayerOf<Glu, AxisOptions> {
 public:
  static constexpr auto name = "glu";
  explicit Glu(const AxisOptions& o = {}) : LayerOf(o) {}
  Tensor forward(const Tensor& x, const Context&) const override { return glu(x, options().axis); }
  bool causal() const override { return options().axis == -1; }
};

/// Options of Prelu: number and initial value of the slopes, and the position of the channels.
struct PreluOptions {
  std::int64_t num_parameters = 1;  ///< number of slopes: 1, or one for each channel
  double init = 0.25;               ///< initial value of every slope
  bool channels_last = false;       ///< x is [B, ..., C] instead of PyTorch's [B, C, ...]
  static constexpr auto fields =
      attr_list(attr("num_parameters", &PreluOptions::num_parameters), attr("init", &PreluOptions::init),
                attr("channels_last", &PreluOptions::channels_last));
};
/// A rectifier with learned slopes, as torch.nn.PReLU: x where x > 0, else weight x. weight, [1] or one for each
/// channel, starts as `init`. Throws ShapeError for another number of channels, DtypeError unless x has the dtype of
/// the weight.
class Prelu final : public LayerOf<Prelu, PreluOptions> {
 public:
  static constexpr auto name = "prelu";
  /// Throws ValueError unless there is at least one parameter.
  explicit Prelu(const PreluOptions& options = {}, const Init& init = {});
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return options().num_parameters == 1 || options().channels_last; }
  StepInput step_input() const override;

  Parameter weight;  ///< slopes of negative elements, [num_parameters]
};

extern template class LayerOf<Elu, AlphaOptions>;
extern template class LayerOf<Celu, AlphaOptions>;
extern template class LayerOf<LeakyRelu, SlopeOptions>;
extern template class LayerOf<Hardtanh, BoundsOptions>;
extern template class LayerOf<Softshrink, LambdaOptions>;
extern template class LayerOf<Hardshrink, LambdaOptions>;
extern template class LayerOf<Threshold, ThresholdOptions>;
extern template class LayerOf<Glu, AxisOptions>;
extern template class LayerOf<Prelu, PreluOptions>;

}  // namespace ferrite::nn
