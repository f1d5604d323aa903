/// Losses of classes by the distance of their scores.
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
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
    // Whether an end stands at a place or before it: [B, place, before].
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

Records margin_records() {
  static constexpr const Primitive* list[] = {&composite<MultiMarginLoss>, &composite<MultilabelMarginLoss>};
  return list;
}

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

}  // namespace ferrite::nn
