/// Losses of predicted numbers.
#include "ferrite/nn/losses/regression.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace detail {
namespace {

struct MseLoss {
  static constexpr auto name = "mse_loss", summary = "(prediction - target)^2";
  static Tensor of(Inputs in, const NoAttrs&) { return square(in[0] - in[1]); }
};

struct L1Loss {
  static constexpr auto name = "l1_loss", summary = "|prediction - target|";
  static Tensor of(Inputs in, const NoAttrs&) { return abs(in[0] - in[1]); }
};

struct SmoothL1Attrs {
  double beta = 1;
  static constexpr auto fields = attr_list(attr("beta", &SmoothL1Attrs::beta));
};

struct SmoothL1Loss {
  using Attributes = SmoothL1Attrs;
  static constexpr auto name = "smooth_l1_loss";
  static constexpr auto summary = "d^2 / (2 beta) for d = |prediction - target| below beta, else d - beta / 2";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor x = in[0] - in[1], d = abs(x);
    if (a.beta == 0) return d;
    return where(lt(d, a.beta), square(x) * (0.5 / a.beta), d - 0.5 * a.beta);
  }
};

struct HuberAttrs {
  double delta = 1;
  static constexpr auto fields = attr_list(attr("delta", &HuberAttrs::delta));
};

struct HuberLoss {
  using Attributes = HuberAttrs;
  static constexpr auto name = "huber_loss";
  static constexpr auto summary = "d^2 / 2 for d = |prediction - target| below delta, else delta (d - delta / 2)";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor x = in[0] - in[1], d = abs(x);
    return where(lt(d, a.delta), square(x) * 0.5, (d - 0.5 * a.delta) * a.delta);
  }
};

struct PoissonNllAttrs {
  bool log_input = true, full = false;
  double epsilon = 1e-8;
  static constexpr auto fields =
      attr_list(attr("log_input", &PoissonNllAttrs::log_input), attr("full", &PoissonNllAttrs::full),
                attr("epsilon", &PoissonNllAttrs::epsilon));
};

struct PoissonNllLoss {
  using Attributes = PoissonNllAttrs;
  static constexpr auto name = "poisson_nll_loss";
  static constexpr auto summary =
      "e^x - target x, or x - target ln(x + epsilon); with ln target! by Stirling, where it is above 1";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &t = in[1];
    const Tensor product = a.log_input ? multiply_no_nan(x, t) : xlogy(t, x + a.epsilon);
    const Tensor y = (a.log_input ? exp(x) : x) - product;
    if (!a.full) return y;
    const Tensor many = gt(t, 1), n = where(many, t, 1.0);
    const Tensor rest = 0.5 * log(2 * std::numbers::pi * n);  // named in order: docs/numerics.md, rule 13
    return y + where(many, n * log(n) - n + rest, 0.0);
  }
};

struct GaussianNllAttrs {
  bool full = false;
  double epsilon = 1e-6;
  static constexpr auto fields =
      attr_list(attr("full", &GaussianNllAttrs::full), attr("epsilon", &GaussianNllAttrs::epsilon));
};

struct GaussianNllLoss {
  using Attributes = GaussianNllAttrs;
  static constexpr auto name = "gaussian_nll_loss";
  static constexpr auto summary = "(ln v + (mean - target)^2 / v) / 2 for v = max(variance, epsilon)";
  static Tensor of(Inputs in, const Attributes& a) {
    // A lower bound that gradients pass through.
    const Tensor v = where(lt(in[2], a.epsilon), in[2] - detach(in[2]) + a.epsilon, in[2]);
    const Tensor y = 0.5 * (log(v) + square(in[0] - in[1]) / v);
    return a.full ? y + 0.5 * std::log(2 * std::numbers::pi) : y;
  }
};

struct KlDivAttrs {
  bool log_target = false;
  static constexpr auto fields = attr_list(attr("log_target", &KlDivAttrs::log_target));
};

struct KlDiv {
  using Attributes = KlDivAttrs;
  static constexpr auto name = "kl_div";
  static constexpr auto summary = "target (ln target - prediction), the prediction a logarithm; 0 for target 0";
  static Tensor of(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &t = in[1];
    if (a.log_target) return multiply_no_nan(t - x, exp(t));
    const Tensor none = eq(t, 0), product = multiply_no_nan(x, t);  // named in order: docs/numerics.md, rule 13
    return where(none, 0.0, t * log(where(none, 1.0, t))) - product;
  }
};

}  // namespace

Records regression_records() {
  static constexpr const Primitive* list[] = {
      &composite<ElementLoss<MseLoss>>,        &composite<ElementLoss<L1Loss>>,
      &composite<ElementLoss<SmoothL1Loss>>,   &composite<ElementLoss<HuberLoss>>,
      &composite<ElementLoss<PoissonNllLoss>>, &composite<ElementLoss<GaussianNllLoss>>,
      &composite<ElementLoss<KlDiv>>};
  return list;
}

}  // namespace detail

Tensor mse_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options) {
  return detail::pair_loss<detail::MseLoss>(prediction, target, options);
}
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  return mse_loss(prediction, target, LossOptions{.reduction = reduction});
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options) {
  return detail::pair_loss<detail::L1Loss>(prediction, target, options);
}
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  return l1_loss(prediction, target, LossOptions{.reduction = reduction});
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta, const LossOptions& options) {
  detail::check_not_negative("smooth_l1_loss: beta", {beta});
  return detail::pair_loss<detail::SmoothL1Loss>(prediction, target, options, {beta});
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta, const LossOptions& options) {
  detail::check_positive("huber_loss", "delta", delta);
  return detail::pair_loss<detail::HuberLoss>(prediction, target, options, {delta}, detail::WeightedMean::by_count);
}

Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target, const PoissonNllParameters& parameters,
                        const LossOptions& options) {
  detail::check_not_negative("poisson_nll_loss: epsilon", {parameters.epsilon});
  return detail::pair_loss<detail::PoissonNllLoss>(prediction, target, options,
                                                   {parameters.log_input, parameters.full, parameters.epsilon});
}

Tensor gaussian_nll_loss(const Tensor& mean, const Tensor& target, const Tensor& variance,
                         const GaussianNllParameters& parameters, const LossOptions& options) {
  constexpr std::string_view where = detail::GaussianNllLoss::name;
  detail::check_positive(where, "epsilon", parameters.epsilon);
  detail::check_float(where, "the mean", mean);
  detail::check_same(where, mean, target);
  if (variance.dtype() != mean.dtype())
    detail::throw_dtype(where,
                        "dtypes differ: " + mean.spec().str() + " and " + variance.spec().str() + "; cast one of them");
  const detail::Counted elements = detail::counted(where, mean.spec(), options);
  const Tensor all =
      detail::without(elements, expand(variance, mean.shape()), 0, std::numeric_limits<double>::infinity());
  const Tensor operands[] = {mean, target,
                             checked(all, 0.0, std::numeric_limits<double>::infinity(), "gaussian_nll_loss: variance")};
  return detail::element_loss<detail::GaussianNllLoss>(operands, {parameters.full, parameters.epsilon}, options);
}

Tensor kl_div(const Tensor& prediction, const Tensor& target, const KlDivParameters& parameters,
              const LossOptions& options) {
  return detail::pair_loss<detail::KlDiv>(prediction, target, options, {parameters.log_target});
}

}  // namespace ferrite::nn
