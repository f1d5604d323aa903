/// Losses of overlapping regions.
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace detail {
namespace {

/// All axes but the first.
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
  if (options.lengths.defined()) {  // what is neither predicted nor there adds nothing
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

Records region_records() {
  static constexpr const Primitive* list[] = {&composite<TverskyLoss>};
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
