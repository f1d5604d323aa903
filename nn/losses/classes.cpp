/// Losses of one class of many, and accuracy.
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

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

/// Weights of classes along an axis of a shape.
Tensor along(const Tensor& weight, int axis, int rank) {
  Shape shape = Shape::filled(rank, 1);
  shape[axis] = -1;
  return reshape(weight, shape);
}

/// Targets with a class for those that are ignored.
Tensor some_class(const Tensor& targets, std::int64_t ignore_index) {
  return where(eq(targets, ignore_index), 0, targets);
}

/// [C] and classes [...] -> [...].
Tensor of_classes(const Tensor& weight, const Tensor& classes) {
  return reshape(index_select(weight, 0, reshape(classes, {-1})), classes.shape());
}

/// Losses of logarithms of probabilities, targets and, where given, weights of classes. A class of weight or share 0
/// adds nothing, even where its logarithm is infinite. What is ignored is replaced before it is multiplied, so that NaN
/// reaches no gradient of weights; that of log_softmax does not read rows without a cotangent.
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

/// Axis of the classes; checks shapes and dtypes.
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
  if (!shares && o.element_weight.defined()) {  // a weight of what is ignored does not count, either
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

Records class_records() {
  static constexpr const Primitive* list[] = {&composite<CrossEntropy>, &composite<NllLoss>};
  return list;
}

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

}  // namespace ferrite::nn
