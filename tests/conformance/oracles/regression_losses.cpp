// Oracles and samples of nn/losses/regression.cpp.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "conformance/oracles/element_loss.h"
#include "ferrite/tensor/ops.h"

namespace oracles::regression_losses {
namespace {

using Numbers = std::span<const double>;

struct MseLoss {
  static constexpr auto name = "mse_loss";
  static double scalar(Numbers x, const NoAttrs&) { return (x[0] - x[1]) * (x[0] - x[1]); }
};

struct L1Loss {
  static constexpr auto name = "l1_loss";
  static double scalar(Numbers x, const NoAttrs&) { return std::fabs(x[0] - x[1]); }
};

struct SmoothL1Attrs {
  double beta = 1;
  static constexpr auto fields = attr_list(attr("beta", &SmoothL1Attrs::beta));
};

struct SmoothL1Loss {
  using Attributes = SmoothL1Attrs;
  static constexpr auto name = "smooth_l1_loss";
  static double scalar(Numbers x, const Attributes& a) {
    const double d = std::fabs(x[0] - x[1]);
    return d < a.beta ? d * d / (2 * a.beta) : d - a.beta / 2;
  }
  static std::vector<Attributes> tried() { return {{1}, {0.3}, {0}}; }
};

struct HuberAttrs {
  double delta = 1;
  static constexpr auto fields = attr_list(attr("delta", &HuberAttrs::delta));
};

struct HuberLoss {
  using Attributes = HuberAttrs;
  static constexpr auto name = "huber_loss";
  static double scalar(Numbers x, const Attributes& a) {
    const double d = std::fabs(x[0] - x[1]);
    return d < a.delta ? d * d / 2 : a.delta * (d - a.delta / 2);
  }
  static std::vector<Attributes> tried() { return {{1}, {0.3}}; }
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
  static constexpr Range range{0.1, 3};
  static double scalar(Numbers x, const Attributes& a) {
    const double t = x[1];
    double y = a.log_input ? std::exp(x[0]) - t * x[0] : x[0] - t * std::log(x[0] + a.epsilon);
    if (a.full && t > 1) y += t * std::log(t) - t + 0.5 * std::log(2 * std::numbers::pi * t);
    return y;
  }
  static std::vector<Attributes> tried() { return {{}, {true, true}, {false, true, 0.1}, {false, false}}; }
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
  static constexpr Range range{0.2, 3};
  static constexpr std::size_t operands = 3;
  static double scalar(Numbers x, const Attributes& a) {
    const double v = std::max(x[2], a.epsilon);
    const double d = x[0] - x[1];
    return 0.5 * (std::log(v) + d * d / v) + (a.full ? 0.5 * std::log(2 * std::numbers::pi) : 0);
  }
  static std::vector<Attributes> tried() { return {{}, {true, 0.01}}; }
};

struct KlDivAttrs {
  bool log_target = false;
  static constexpr auto fields = attr_list(attr("log_target", &KlDivAttrs::log_target));
};

struct KlDiv {
  using Attributes = KlDivAttrs;
  static constexpr auto name = "kl_div";
  static constexpr Range range{0.1, 3};
  static double scalar(Numbers x, const Attributes& a) {
    if (a.log_target) return std::exp(x[1]) * (x[1] - x[0]);
    return (x[1] == 0 ? 0 : x[1] * std::log(x[1])) - x[1] * x[0];
  }
  static std::vector<Attributes> tried() { return {{false}, {true}}; }
};

const Added added = add<ElementLoss<MseLoss>, ElementLoss<L1Loss>, ElementLoss<SmoothL1Loss>, ElementLoss<HuberLoss>,
                        ElementLoss<PoissonNllLoss>, ElementLoss<GaussianNllLoss>, ElementLoss<KlDiv>>();

}  // namespace
}  // namespace oracles::regression_losses
