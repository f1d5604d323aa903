/// Losses of classification: one class of many and accuracy, any number of labels, margins between scores, overlapping
/// regions.
#include "ferrite/nn/losses/classification.h"

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

// ---- one class of many ---------------------------------------------------------------------------------

namespace ferrite::nn {
namespace detail {
namespace {

struct ClassLossAttrs {
  int axis = 1;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  static constexpr auto fields =
      attr_list(attr("axis", &ClassLossAttrs::axis), attr("ignore_index", &ClassLossAttrs::ignore_index),
                attr("label_smoothing", &ClassLossAttrs::label_smoothing));
};

/// Returns weights of classes shaped to broadcast along one axis of a given rank.
Tensor along(const Tensor& weight, int axis, int rank) {
  Shape shape = Shape::filled(rank, 1);
  shape[axis] = -1;
  return reshape(weight, shape);
}

/// Returns targets in which the ignored ones are replaced by class 0.
Tensor some_class(const Tensor& targets, std::int64_t ignore_index) {
  return where(eq(targets, ignore_index), 0, targets);
}

/// Returns the weights of the given classes: weights [C] and classes [...] -> [...].
Tensor of_classes(const Tensor& weight, const Tensor& classes) {
  return reshape(index_select(weight, 0, reshape(classes, {-1})), classes.shape());
}

/// Returns the losses for logarithms of probabilities, targets and, if given, weights of classes. A class of weight or
/// share 0 adds nothing, even if its logarithm is infinite. Ignored values are replaced before they are multiplied, so
/// that NaN reaches no gradient of weights; the gradient of log_softmax does not read rows without a cotangent.
Tensor nll_parts(const Tensor& log_probs, Inputs in, const ClassLossAttrs& a, const IndexOptions& who) {
  const Tensor& targets = in[1];
  const Tensor* weight = in.size() > 2 ? &in[2] : nullptr;
  const std::int64_t C = log_probs.shape()[a.axis];
  const double smoothing = a.label_smoothing, rest = smoothing / static_cast<double>(C);
  const auto over_classes = [&](const Tensor& terms) {
    return sum(weight ? multiply_no_nan(terms, along(*weight, a.axis, terms.rank())) : terms, {a.axis});
  };
  if (is_float(targets.dtype()))
    return -over_classes(multiply_no_nan(log_probs, smoothing == 0 ? targets : targets * (1 - smoothing) + rest));
  const Tensor ignored = eq(targets, a.ignore_index), classes = some_class(targets, a.ignore_index);
  Tensor picked = squeeze(gather(log_probs, a.axis, unsqueeze(classes, a.axis), who), a.axis);
  if (weight) picked = multiply_no_nan(where(ignored, 0.0, picked), of_classes(*weight, classes));
  if (smoothing > 0) {
    const Tensor all = weight ? where(unsqueeze(ignored, a.axis), 0.0, log_probs) : log_probs;
    picked = picked * (1 - smoothing) + over_classes(all) * rest;
  }
  return where(ignored, 0.0, -picked);
}

struct CrossEntropy {
  using Attributes = ClassLossAttrs;
  static constexpr auto name = "cross_entropy", onnx = "";
  static constexpr auto summary = "-ln softmax(logits)[target] along an axis, or of shares of classes; 0 where ignored";
  static Tensor parts(Inputs in, const Attributes& a) {
    return nll_parts(log_softmax(in[0], a.axis), in, a, {"cross_entropy: target"});
  }
};

struct NllLoss {
  using Attributes = ClassLossAttrs;
  static constexpr auto name = "nll_loss", onnx = "";
  static constexpr auto summary = "-log_probs[target] along an axis; 0 where ignored";
  static Tensor parts(Inputs in, const Attributes& a) { return nll_parts(in[0], in, a, {"nll_loss: target"}); }
};

/// Returns the axis of the classes. Throws for shapes and dtypes that do not fit.
int check_classes(std::string_view where, const Tensor& scores, const Tensor& targets,
                  const std::optional<bool>& classes_last) {
  check_float(where, "the scores", scores);
  if (scores.rank() == 0) throw_shape(where, "expects scores [B, C, ...], got []");
  if (scores.rank() > 2 && !classes_last)
    throw ValueError(std::string(where) + ": which axis holds the classes is not said: scores " + scores.shape().str() +
                     "; give classes_last = true for [B, ..., C], or classes_last = false for [B, C, ...], as in "
                     "PyTorch");
  const bool last = classes_last.value_or(false);
  const int axis = last ? scores.rank() - 1 : std::min(1, scores.rank() - 1);
  if (is_float(targets.dtype())) {
    if (targets.spec() != scores.spec())
      throw_dtype(where, "targets must be i64 or i32, or shares of the classes " + scores.spec().str() + ", got " +
                             targets.spec().str());
    return axis;
  }
  if (!is_integer(targets.dtype())) throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  Shape shape = scores.shape();
  shape.erase(axis);
  if (targets.shape() != shape)
    throw_shape(where, std::string(last ? "expects logits [B, ..., C]" : "expects logits [B, C, ...]") +
                           " and targets [B, ...], got " + scores.shape().str() + " and " + targets.shape().str());
  return axis;
}

template <class Loss>
Tensor class_loss(const Tensor& scores, const Tensor& targets, const ClassLossOptions& o) {
  constexpr std::string_view where = Loss::name;
  const int axis = check_classes(where, scores, targets, o.classes_last);
  const std::int64_t C = scores.shape()[axis];
  if (o.class_weight.defined() && o.class_weight.spec() != Spec{{C}, scores.dtype()})
    throw_shape(where, "class_weight must be " + Spec{{C}, scores.dtype()}.str() + ", got " +
                           o.class_weight.spec().str() +
                           "; it has a weight for each class, element_weight one for each target");
  const bool shares = is_float(targets.dtype());
  Shape shape = scores.shape();
  shape.erase(axis);
  const LossOptions options{o.reduction, o.element_weight, o.mask, o.lengths};
  check_no_class_weight(where, o.element_weight, shape, C);
  Counted elements = counted(where, {shape, scores.dtype()}, options);
  const Counted every = elements.with_axis(axis);
  const Tensor x = without(every, scores);
  Tensor y = targets;
  if (shares) y = without(every, targets);
  if (!shares && elements.valid.defined()) y = ferrite::where(elements.valid, targets, 0);
  if (!shares && o.element_weight.defined()) {  // weights of ignored targets do not count, either
    const Tensor kept = ne(y, o.ignore_index);
    elements.valid = elements.valid.defined() ? elements.valid && kept : kept;
  }
  const ClassLossAttrs attrs{axis, o.ignore_index, o.label_smoothing};
  const Tensor losses =
      o.class_weight.defined() ? composed<Loss>({{&x, &y, &o.class_weight}}, attrs) : composed<Loss>({{&x, &y}}, attrs);
  if (shares || o.reduction != Reduction::mean) return reduced(losses, elements, options);
  const Tensor counts = ne(y, o.ignore_index);
  const Tensor share = o.class_weight.defined()
                           ? ferrite::where(counts, of_classes(o.class_weight, some_class(y, o.ignore_index)), 0.0)
                           : cast(counts, losses.dtype());
  return reduced(losses, elements, options, WeightedMean::by_weights, share);
}

}  // namespace

}  // namespace detail

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const ClassLossOptions& options) {
  detail::check_within("cross_entropy", "label_smoothing", options.label_smoothing, 0, 1);
  return detail::class_loss<detail::CrossEntropy>(logits, targets, options);
}
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction) {
  return cross_entropy(logits, targets, ClassLossOptions{.reduction = reduction});
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, const ClassLossOptions& options) {
  if (options.label_smoothing != 0)
    throw ValueError("nll_loss: label_smoothing must be 0, got " + Scalar(options.label_smoothing).str() +
                     "; use cross_entropy");
  if (!is_integer(targets.dtype()))
    detail::throw_dtype("nll_loss", "targets must be i64 or i32, got " + targets.spec().str());
  return detail::class_loss<detail::NllLoss>(log_probs, targets, options);
}

double accuracy(const Tensor& logits, const Tensor& targets, const AccuracyOptions& o) {
  constexpr std::string_view where = "accuracy";
  if (!is_integer(targets.dtype()))
    detail::throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  if (o.k < 1) throw ValueError("accuracy: k must be at least 1, got " + std::to_string(o.k));
  const int axis = detail::check_classes(where, logits, targets, o.classes_last);
  const NewFrame frame;
  const std::int64_t C = logits.shape()[axis];
  const LossOptions options{Reduction::mean, o.element_weight, o.mask, o.lengths};
  detail::check_no_class_weight(where, o.element_weight, targets.shape(), C);
  detail::Counted elements = detail::counted(where, {targets.shape(), logits.dtype()}, options);
  Tensor y = cast(targets, Dtype::i64);
  const Tensor kept = ne(y, o.ignore_index);
  elements.valid = elements.valid.defined() ? elements.valid && kept : kept;
  y = unsqueeze(checked(ferrite::where(elements.valid, y, 0), 0, C - 1, {"accuracy: target"}), axis);
  const Tensor own = gather(logits, axis, y), classes = detail::along(arange(C), axis, logits.rank());
  const Tensor before = gt(logits, own) || ne(logits, logits) || (eq(logits, own) && lt(classes, y));
  const Tensor right = lt(sum(cast(before, Dtype::i64), {axis}, true), o.k) && eq(own, own);
  LossOptions in_f64 = options;
  if (o.element_weight.defined()) in_f64.element_weight = cast(o.element_weight, Dtype::f64);
  return detail::reduced(cast(squeeze(right, axis), Dtype::f64), elements, in_f64).item<double>();
}

// ---- any number of labels ------------------------------------------------------------------------------

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
    // Terms have names in the order of docs/numerics.md, rule 13.
    const Tensor of_zeros = multiply_no_nan(softplus(x), 1 - t);
    const Tensor entropy = multiply_no_nan(softplus(-x), t) + of_zeros;
    const Tensor positive = sigmoid(x), wrong_zeros = (1 - t) * positive;
    Tensor wrong = t * sigmoid(-x) + wrong_zeros;  // 1 - p_t
    // The power's infinite slope times 0 would be NaN; the entropy is 0 there.
    if (a.gamma > 0 && a.gamma < 1) wrong = where(eq(wrong, 0), 1.0, wrong);
    const Tensor y = a.gamma == 0 ? entropy : entropy * pow(wrong, a.gamma);
    if (a.alpha < 0) return y;
    const Tensor weight_of_zeros = (1 - a.alpha) * (1 - t);
    return (a.alpha * t + weight_of_zeros) * y;
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

// ---- margins -------------------------------------------------------------------------------------------

namespace detail {
namespace {

struct MultiMarginAttrs {
  int p = 1;
  double margin = 1;
  static constexpr auto fields = attr_list(attr("p", &MultiMarginAttrs::p), attr("margin", &MultiMarginAttrs::margin));
};

struct MultiMarginLoss {
  using Attributes = MultiMarginAttrs;
  static constexpr auto name = "multi_margin_loss", onnx = "";
  static constexpr auto summary = "w[y] times the sum over i other than y of max(0, margin - x[y] + x[i])^p, over C";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], y = unsqueeze(in[1], 1);
    const std::int64_t C = x.shape()[1];
    const Tensor right = gather(x, 1, y, {"multi_margin_loss: target"});
    Tensor terms = relu(a.margin - right + x);
    if (a.p == 2) terms = square(terms);
    if (in.size() > 2) terms = multiply_no_nan(terms, unsqueeze(index_select(in[2], 0, in[1]), 1));
    const Tensor others = ne(y, arange(0, C, 1, in[1].dtype()));
    return sum(where(others, terms, 0.0), {1}) / static_cast<double>(C);
  }
};

struct MultilabelMarginLoss {
  static constexpr auto name = "multilabel_margin_loss", onnx = "";
  static constexpr auto summary =
      "sum over targets y before the first -1 and classes i that are none of max(0, 1 - "
      "(x[y] - x[i])), over C";
  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor& x = in[0];
    const Shape& shape = x.shape();
    const std::int64_t C = shape[1];
    const Tensor y = checked(in[1], -1, C - 1, "multilabel_margin_loss: target");
    const Tensor places = arange(0, C, 1, y.dtype());
    // ends: whether there is an end at a place or before it, [B, place, before].
    const Tensor ends = lt(unsqueeze(y, 1), 0) && le(places, unsqueeze(places, 1));
    const Tensor counts = eq(sum(ends, {2}), 0);
    const Tensor classes = where(counts, y, 0);
    const Tensor hits = eq(unsqueeze(classes, 2), places) && unsqueeze(counts, 2);  // [B, place, class]
    const Tensor is_target = gt(sum(hits, {1}), 0);
    const Tensor right = gather(x, 1, classes);
    const Tensor terms = relu(1 - (unsqueeze(right, 2) - unsqueeze(x, 1)));
    const Tensor pairs = unsqueeze(counts, 2) && !unsqueeze(is_target, 1);
    return sum(where(pairs, terms, 0.0), {1, 2}) / static_cast<double>(C);
  }
};

}  // namespace

}  // namespace detail

Tensor multi_margin_loss(const Tensor& scores, const Tensor& targets, const MultiMarginParameters& parameters,
                         const LossOptions& options) {
  using detail::MultiMarginLoss;
  constexpr std::string_view where = MultiMarginLoss::name;
  if (parameters.p != 1 && parameters.p != 2)
    throw ValueError("multi_margin_loss: p must be 1 or 2, got " + std::to_string(parameters.p));
  detail::check_finite(where, "the margin", parameters.margin);
  detail::check_float(where, "the scores", scores);
  if (!is_integer(targets.dtype()))
    detail::throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  if (scores.rank() != 2 || targets.shape() != Shape{scores.shape()[0]})
    detail::throw_shape(
        where, "expects scores [B, C] and targets [B], got " + scores.shape().str() + " and " + targets.shape().str());
  const Tensor& weight = parameters.class_weight;
  if (weight.defined() && weight.spec() != Spec{{scores.shape()[1]}, scores.dtype()})
    detail::throw_shape(where, "class_weight must be " + Spec{{scores.shape()[1]}, scores.dtype()}.str() + ", got " +
                                   weight.spec().str());
  detail::check_no_class_weight(where, options.element_weight, targets.shape(), scores.shape()[1]);
  const detail::Counted rows = detail::counted(where, {targets.shape(), scores.dtype()}, options);
  const Tensor x = detail::without(rows.with_axis(1), scores);
  const Tensor y = rows.valid.defined() ? ferrite::where(rows.valid, targets, 0) : targets;
  const detail::MultiMarginAttrs attrs{parameters.p, parameters.margin};
  const Tensor losses = weight.defined() ? detail::composed<MultiMarginLoss>({{&x, &y, &weight}}, attrs)
                                         : detail::composed<MultiMarginLoss>({{&x, &y}}, attrs);
  return detail::reduced(losses, rows, options);
}

Tensor multilabel_margin_loss(const Tensor& scores, const Tensor& targets, const LossOptions& options) {
  constexpr std::string_view where = detail::MultilabelMarginLoss::name;
  detail::check_float(where, "the scores", scores);
  if (!is_integer(targets.dtype()))
    detail::throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  if (scores.rank() != 2 || targets.shape() != scores.shape())
    detail::throw_shape(where, "expects scores [B, C] and targets [B, C], got " + scores.shape().str() + " and " +
                                   targets.shape().str());
  const detail::Counted rows = detail::counted(where, {{scores.shape()[0]}, scores.dtype()}, options);
  const detail::Counted every = rows.with_axis(1);
  const Tensor x = detail::without(every, scores);
  const Tensor y = every.valid.defined() ? ferrite::where(every.valid, targets, -1) : targets;
  return detail::reduced(detail::composed<detail::MultilabelMarginLoss>({{&x, &y}}), rows, options);
}

// ---- regions -------------------------------------------------------------------------------------------

namespace detail {
namespace {

/// Returns all axes but the first.
Shape inner_axes(int rank) {
  Shape axes;
  for (int i = 1; i < rank; ++i) axes.push_back(i);
  return axes;
}
Tensor over_region(const Tensor& x) { return x.rank() > 1 ? sum(x, inner_axes(x.rank())) : x; }

struct TverskyAttrs {
  double alpha = 0.5, beta = 0.5, smooth = 1;
  static constexpr auto fields = attr_list(attr("alpha", &TverskyAttrs::alpha), attr("beta", &TverskyAttrs::beta),
                                           attr("smooth", &TverskyAttrs::smooth));
};

struct TverskyLoss {
  using Attributes = TverskyAttrs;
  static constexpr auto name = "tversky_loss", onnx = "";
  static constexpr auto summary =
      "1 - (S(p t) + smooth) / (S(p t) + alpha S(p (1 - t)) + beta S((1 - p) t) + smooth), S over all axes but the "
      "first";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &p = in[0], &t = in[1];
    const Tensor both = over_region(p * t), wrong = over_region(p * (1 - t)), missed = over_region((1 - p) * t);
    return 1 - (both + a.smooth) / (both + a.alpha * wrong + a.beta * missed + a.smooth);
  }
};

Tensor region_loss(std::string_view where, const Tensor& probabilities, const Tensor& target, const TverskyAttrs& a,
                   const LossOptions& options) {
  check_not_negative(std::string(where) + ": alpha, beta and smooth", {a.alpha, a.beta, a.smooth});
  check_float(where, "the prediction", probabilities);
  check_same(where, probabilities, target);
  if (target.rank() == 0) throw_shape(where, "expects probabilities and targets [B, ...], got [] and []");
  Tensor p = probabilities, t = target;
  LossOptions of_rows = options;
  if (options.lengths.defined()) {  // steps with neither prediction nor target add nothing
    const Tensor within = counted(where, target.spec(), {.lengths = options.lengths}).valid;
    p = ferrite::where(within, p, 0.0), t = ferrite::where(within, t, 0.0);
    of_rows.lengths = Tensor();
  }
  const Counted rows = counted(where, {{target.shape()[0]}, target.dtype()}, of_rows);
  const Counted every = rows.with_rank(target.rank());
  p = without(every, p), t = without(every, t);
  return reduced(composed<TverskyLoss>({{&p, &t}}, a), rows, of_rows);
}

}  // namespace

Records classification_records() {
  static constexpr const Primitive* list[] = {&composite<CrossEntropy>,
                                              &composite<NllLoss>,
                                              &composite<ElementLoss<Bce>>,
                                              &composite<ElementLoss<BceWithLogits>>,
                                              &composite<ElementLoss<FocalLoss>>,
                                              &composite<ElementLoss<SoftMarginLoss>>,
                                              &composite<MultilabelSoftMarginLoss>,
                                              &composite<MultiMarginLoss>,
                                              &composite<MultilabelMarginLoss>,
                                              &composite<TverskyLoss>};
  return list;
}

}  // namespace detail

Tensor tversky_loss(const Tensor& probabilities, const Tensor& target, const TverskyParameters& parameters,
                    const LossOptions& options) {
  return detail::region_loss("tversky_loss", probabilities, target,
                             {parameters.alpha, parameters.beta, parameters.smooth}, options);
}

Tensor dice_loss(const Tensor& probabilities, const Tensor& target, double smooth, const LossOptions& options) {
  return detail::region_loss("dice_loss", probabilities, target, {0.5, 0.5, smooth / 2}, options);
}

}  // namespace ferrite::nn
