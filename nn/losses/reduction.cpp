/// Reductions, weights and masks of losses.
#include "ferrite/nn/losses/reduction.h"

#include <cmath>

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace detail {
namespace {

struct LengthMaskAttrs {
  std::int64_t steps = 0;
  static constexpr auto fields = attr_list(attr("steps", &LengthMaskAttrs::steps));
};

struct LengthMask {
  using Attributes = LengthMaskAttrs;
  static constexpr auto name = "length_mask", onnx = "", summary = "whether step t of a row lies below its length";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor lengths = checked(in[0], 0, a.steps, "length_mask: length");
    return lt(arange(0, a.steps, 1, Dtype::i64), unsqueeze(lengths, 1));
  }
};

bool begins_with(const Shape& shape, const Shape& first) {
  if (first.rank() > shape.rank()) return false;
  for (int i = 0; i < first.rank(); ++i)
    if (shape[i] != first[i]) return false;
  return true;
}

/// Returns x with axes of extent 1 appended, up to a given rank.
Tensor of_rank(const Tensor& x, int rank) {
  Shape shape = x.shape();
  while (shape.rank() < rank) shape.push_back(1);
  return shape == x.shape() ? x : reshape(x, shape);
}

/// Returns whether x broadcasts to a shape without making it larger.
bool fits(const Shape& x, const Shape& shape) {
  if (x.rank() > shape.rank()) return false;
  for (int i = 1; i <= x.rank(); ++i) {
    const std::int64_t n = x[x.rank() - i];
    if (n != 1 && n != shape[shape.rank() - i]) return false;
  }
  return true;
}

}  // namespace

void check_float(std::string_view where, std::string_view what, const Tensor& x) {
  if (!is_float(x.dtype()))
    throw_dtype(where, std::string(what) + " must be f32 or f64, got " + x.spec().str() + "; cast it");
}

void check_same(std::string_view where, const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) throw_shape(where, "shapes differ: " + a.shape().str() + " and " + b.shape().str());
  if (a.dtype() != b.dtype())
    throw_dtype(where, "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
}

void check_positive(std::string_view where, std::string_view what, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ValueError(std::string(where) + ": " + std::string(what) + " must be positive and finite, got " +
                     Scalar(value).str());
}

void check_finite(std::string_view where, std::string_view what, double value) {
  if (!std::isfinite(value))
    throw ValueError(std::string(where) + ": " + std::string(what) + " must be finite, got " + Scalar(value).str());
}

void check_within(std::string_view where, std::string_view what, double value, double low, double high) {
  if (!(value >= low && value <= high))
    throw ValueError(std::string(where) + ": " + std::string(what) + " must lie in " + Scalar(low).str() + ".." +
                     Scalar(high).str() + ", got " + Scalar(value).str());
}

Counted counted(std::string_view where, const Spec& spec, const LossOptions& options) {
  const Shape& losses = spec.shape;
  Counted all;
  if (options.mask.defined()) {
    if (options.mask.dtype() != Dtype::boolean)
      throw_dtype(where, "the mask must be bool, got " + options.mask.spec().str());
    if (!begins_with(losses, options.mask.shape()))
      throw_shape(where, "the mask must have the first axes of the losses " + losses.str() + ", got " +
                             options.mask.shape().str());
    all.valid = of_rank(options.mask, losses.rank());
  }
  if (options.lengths.defined()) {
    if (options.lengths.dtype() != Dtype::i64)
      throw_dtype(where, "lengths must be i64, got " + options.lengths.spec().str());
    if (losses.rank() < 2 || options.lengths.shape() != Shape{losses[0]})
      throw_shape(where, "lengths [B] belong to losses [B, T, ...], got " + options.lengths.shape().str() +
                             " for losses " + losses.str());
    const Tensor within = of_rank(length_mask(options.lengths, losses[1]), losses.rank());
    all.valid = all.valid.defined() ? all.valid && within : within;
  }
  if (options.element_weight.defined()) {
    if (options.element_weight.dtype() != spec.dtype)
      throw_dtype(where, "element_weight must have the dtype of the losses, " + spec.str() + ", got " +
                             options.element_weight.spec().str());
    if (!fits(options.element_weight.shape(), losses))
      throw_shape(where, "element_weight does not broadcast to the losses: " + options.element_weight.shape().str() +
                             " and " + losses.str());
    all.weighted = expand(ne(detach(options.element_weight), 0), losses);
  }
  return all;
}

Counted Counted::with_axis(int axis) const {
  const auto wider = [&](const Tensor& x) { return x.defined() ? unsqueeze(x, axis) : x; };
  return {wider(valid), wider(weighted)};
}
Counted Counted::with_rank(int rank) const {
  const auto wider = [&](const Tensor& x) { return x.defined() ? of_rank(x, rank) : x; };
  return {wider(valid), wider(weighted)};
}

void check_no_class_weight(std::string_view where, const Tensor& element_weight, const Shape& losses, std::int64_t C) {
  if (!element_weight.defined() || element_weight.shape() != Shape{C} || fits(element_weight.shape(), losses)) return;
  throw_shape(where, "element_weight does not broadcast to the losses: " + element_weight.shape().str() + " and " +
                         losses.str() + "; weights of the " + std::to_string(C) + " classes are class_weight");
}

Tensor without(const Counted& elements, const Tensor& x) {
  const Tensor y = elements.valid.defined() ? where(elements.valid, x, 0.5) : x;
  return elements.weighted.defined() ? where(elements.weighted, y, detach(y)) : y;
}
Tensor without(const Counted& elements, const Tensor& x, double low, double high) {
  const Tensor y = without(elements, x);
  if (!elements.weighted.defined()) return y;
  return where(elements.weighted || (ge(y, low) && le(y, high)), y, 0.5);
}

Tensor reduced(const Tensor& losses, const Counted& elements, const LossOptions& options, WeightedMean by,
               const Tensor& share) {
  const Tensor& valid = elements.valid;
  Tensor all = losses, weight = share;
  if (valid.defined()) all = ferrite::where(valid, all, 0.0);
  if (options.element_weight.defined()) {
    // Weights outside the mask are dropped, so that they reach no gradient.
    const Tensor own = valid.defined() ? ferrite::where(valid, options.element_weight, 0.0) : options.element_weight;
    all = multiply_no_nan(all, own);
    weight = weight.defined() ? multiply_no_nan(own, weight) : own;
  }
  switch (options.reduction) {
    case Reduction::none: return all;
    case Reduction::sum: return sum(all);
    case Reduction::batch_mean: return sum(all) / (all.rank() ? static_cast<double>(all.shape()[0]) : 1.0);
    case Reduction::mean: break;
  }
  if (by == WeightedMean::by_count) weight = Tensor();
  if (!weight.defined() && !valid.defined()) return mean(all);
  if (!weight.defined()) weight = ones({}, all.dtype());
  weight = expand(weight, all.shape());
  return sum(all) / sum(valid.defined() ? ferrite::where(valid, weight, 0.0) : weight);
}

Tensor bounded_log(const Tensor& p) {
  const Tensor none = lt(p, 3.8e-44);  // where ln is -100 or less
  return where(none, (p - detach(p)) * kSlopeOfCertainty - 100.0, log(where(none, 1.0, p)));
}

Records reduction_records() {
  static constexpr const Primitive* list[] = {&composite<LengthMask>};
  return list;
}

}  // namespace detail

Tensor length_mask(const Tensor& lengths, std::int64_t steps) {
  if (lengths.dtype() != Dtype::i64)
    detail::throw_dtype("length_mask", "lengths must be i64, got " + lengths.spec().str());
  if (lengths.rank() != 1) detail::throw_shape("length_mask", "lengths must have rank 1, got " + lengths.shape().str());
  if (steps < 0)
    throw ValueError("length_mask: the number of steps must not be negative, got " + std::to_string(steps));
  return detail::composed<detail::LengthMask>({{&lengths}}, {steps});
}

Tensor reduce_loss(const Tensor& losses, const LossOptions& options) {
  detail::check_float("reduce_loss", "the losses", losses);
  return detail::reduced(losses, detail::counted("reduce_loss", losses.spec(), options), options);
}

// Lists of the operations and composites that losses are made of.

namespace detail {

std::span<const Primitive* const> loss_operations() { return sequence_records(); }

std::span<const Primitive* const> loss_composites() {
  static const auto all =
      joined({reduction_records(), regression_records(), classification_records(), ranking_records(), audio_records()});
  return all;
}

}  // namespace detail

}  // namespace ferrite::nn
