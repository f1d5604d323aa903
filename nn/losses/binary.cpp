/// Losses of labels, any number of which may hold.
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace detail {
namespace {

struct Bce {
  static constexpr auto name = "bce", summary = "-(t ln p + (1 - t) ln(1 - p)), logarithms at least -100";
  static Tensor of(Inputs in, const NoAttrs&) {
    const Tensor &p = in[0], &t = in[1];
    const Tensor certain = eq(p, 1);
    const Tensor other = where(certain, (detach(p) - p) * kSlopeOfCertainty - 100.0, log1p(-where(certain, 0.0, p)));
    return (t - 1) * other - t * bounded_log(p);
  }
};

struct BceWithLogits {
  static constexpr auto name = "bce_with_logits";
  static constexpr auto summary = "w t softplus(-x) + (1 - t) softplus(x), w a weight of positive targets or 1";
  static Tensor of(Inputs in, const NoAttrs&) {
    const Tensor &x = in[0], &t = in[1];
    const Tensor positive = multiply_no_nan(softplus(-x), t), negative = multiply_no_nan(softplus(x), 1 - t);
    return in.size() > 2 ? multiply_no_nan(positive, in[2]) + negative : positive + negative;
  }
};

struct FocalAttrs {
  double alpha = 0.25, gamma = 2;
  static constexpr auto fields = attr_list(attr("alpha", &FocalAttrs::alpha), attr("gamma", &FocalAttrs::gamma));
};

struct FocalLoss {
  using Attributes = FocalAttrs;
  static constexpr auto name = "focal_loss";
  static constexpr auto summary = "alpha_t (1 - p_t)^gamma (-ln p_t) for p = sigmoid(x); below 0, no alpha";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &t = in[1];
    const Tensor entropy = multiply_no_nan(softplus(-x), t) + multiply_no_nan(softplus(x), 1 - t);
    Tensor wrong = t * sigmoid(-x) + (1 - t) * sigmoid(x);  // 1 - p_t
    // A slope of 0 times an infinite one of the power; the entropy is 0 there.
    if (a.gamma > 0 && a.gamma < 1) wrong = where(eq(wrong, 0), 1.0, wrong);
    const Tensor y = a.gamma == 0 ? entropy : entropy * pow(wrong, a.gamma);
    return a.alpha < 0 ? y : (a.alpha * t + (1 - a.alpha) * (1 - t)) * y;
  }
};

struct SoftMarginLoss {
  static constexpr auto name = "soft_margin_loss", summary = "ln(1 + e^(-t x)), without overflow";
  static Tensor of(Inputs in, const NoAttrs&) { return softplus(-(in[1] * in[0])); }
};

struct MultilabelSoftMarginLoss {
  static constexpr auto name = "multilabel_soft_margin_loss", onnx = "";
  static constexpr auto summary = "binary cross-entropy from logits, averaged over the classes of the last axis";
  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor &x = in[0], &t = in[1];
    Tensor terms = multiply_no_nan(softplus(-x), t) + multiply_no_nan(softplus(x), 1 - t);
    if (in.size() > 2) terms = multiply_no_nan(terms, in[2]);
    return mean(terms, {-1});
  }
};

}  // namespace

Records binary_records() {
  static constexpr const Primitive* list[] = {
      &composite<ElementLoss<Bce>>, &composite<ElementLoss<BceWithLogits>>, &composite<ElementLoss<FocalLoss>>,
      &composite<ElementLoss<SoftMarginLoss>>, &composite<MultilabelSoftMarginLoss>};
  return list;
}

}  // namespace detail

Tensor bce(const Tensor& probabilities, const Tensor& target, const LossOptions& options) {
  constexpr std::string_view where = detail::Bce::name;
  detail::check_float(where, "the prediction", probabilities);
  detail::check_same(where, probabilities, target);
  const detail::Counted elements = detail::counted(where, target.spec(), options);
  const Tensor p = detail::without(elements, probabilities, 0, 1);
  const Tensor operands[] = {checked(p, 0.0, 1.0, "bce: probability"), target};
  return detail::element_loss<detail::Bce>(operands, {}, options, detail::WeightedMean::by_count);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceParameters& parameters,
                       const LossOptions& options) {
  constexpr std::string_view where = detail::BceWithLogits::name;
  if (!parameters.pos_weight.defined())
    return detail::pair_loss<detail::BceWithLogits>(logits, target, options, {}, detail::WeightedMean::by_count);
  detail::check_float(where, "the prediction", logits);
  detail::check_same(where, logits, target);
  if (parameters.pos_weight.dtype() != logits.dtype())
    detail::throw_dtype(where, "dtypes differ: logits " + logits.spec().str() + " and pos_weight " +
                                   parameters.pos_weight.spec().str() + "; cast one of them");
  const Tensor operands[] = {logits, target, expand(parameters.pos_weight, logits.shape())};
  return detail::element_loss<detail::BceWithLogits>(operands, {}, options, detail::WeightedMean::by_count);
}
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  return bce_with_logits(logits, target, BceParameters{}, {.reduction = reduction});
}

Tensor focal_loss(const Tensor& logits, const Tensor& target, const FocalParameters& parameters,
                  const LossOptions& options) {
  if (!(parameters.alpha <= 1))
    throw ValueError("focal_loss: alpha must not be above 1, got " + Scalar(parameters.alpha).str());
  detail::check_not_negative("focal_loss: gamma", {parameters.gamma});
  return detail::pair_loss<detail::FocalLoss>(logits, target, options, {parameters.alpha, parameters.gamma},
                                              detail::WeightedMean::by_count);
}

Tensor soft_margin_loss(const Tensor& scores, const Tensor& target, const LossOptions& options) {
  return detail::pair_loss<detail::SoftMarginLoss>(scores, target, options);
}

Tensor multilabel_soft_margin_loss(const Tensor& logits, const Tensor& target, const Tensor& class_weight,
                                   const LossOptions& options) {
  constexpr std::string_view where = detail::MultilabelSoftMarginLoss::name;
  detail::check_float(where, "the prediction", logits);
  detail::check_same(where, logits, target);
  if (logits.rank() < 1) detail::throw_shape(where, "expects logits [..., C], got []");
  if (class_weight.defined() && class_weight.spec() != Spec{{logits.shape()[-1]}, logits.dtype()})
    detail::throw_shape(where, "class_weight must be " + Spec{{logits.shape()[-1]}, logits.dtype()}.str() + ", got " +
                                   class_weight.spec().str());
  Shape shape = logits.shape();
  shape.erase(shape.rank() - 1);
  detail::check_no_class_weight(where, options.element_weight, shape, logits.shape()[-1]);
  const detail::Counted rows = detail::counted(where, {shape, logits.dtype()}, options);
  const detail::Counted every = rows.with_axis(-1);
  const Tensor x = detail::without(every, logits), t = detail::without(every, target);
  using detail::MultilabelSoftMarginLoss;
  const Tensor losses = class_weight.defined() ? detail::composed<MultilabelSoftMarginLoss>({{&x, &t, &class_weight}})
                                               : detail::composed<MultilabelSoftMarginLoss>({{&x, &t}});
  return detail::reduced(losses, rows, options);
}

}  // namespace ferrite::nn
