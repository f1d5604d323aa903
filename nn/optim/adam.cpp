/// Adam and AdamW as optimisers.
#include "ferrite/nn/optim/adam.h"

#include "ferrite/nn/optim/detail/adam_in_place.h"

namespace ferrite::nn {
namespace {

constexpr double kDecoupledDecay = 1e-2;

void check(const AdamOptions& o, double weight_decay) {
  const auto outside = [](double beta) { return !(beta >= 0 && beta < 1); };
  if (outside(o.beta1) || outside(o.beta2))
    throw ValueError("adam: betas must lie in [0, 1), got " + std::to_string(o.beta1) + " and " +
                     std::to_string(o.beta2));
  ferrite::detail::check_not_negative("adam: epsilon and weight_decay", {o.epsilon, weight_decay});
}

}  // namespace

struct Adam::Pending {
  std::size_t i = 0;  ///< of the parameter
  detail::AdamInPlace update{};
};

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite),
      betas_(detail::AdamBetas{options.beta1, options.beta2}) {
  const double weight_decay = options.weight_decay.value_or(decoupled ? kDecoupledDecay : 0);
  check(options, weight_decay);
  constants_ = detail::adam_attrs({.beta1 = options.beta1,
                                   .beta2 = options.beta2,
                                   .epsilon = options.epsilon,
                                   .weight_decay = weight_decay,
                                   .decoupled = decoupled});
  mean_ = states_like_parameters("exp_avg");
  square_ = states_like_parameters("exp_avg_sq");
  steps_ = scalar_state("step", 0);
}

Adam::Adam(Adam&&) noexcept = default;
Adam::~Adam() = default;

void Adam::begin() {
  pending_.clear();  // of a step that threw
  pending_.reserve(parameters().size());
  const Tensors begun = detail::begin_adam(steps_.value(), betas_);
  steps_.assign(begun[0]);
  correction1_ = begun[1];
  correction2_ = begun[2];
}

void Adam::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const detail::AdamVariables variables{parameters()[i], mean_[i], square_[i]};
  const detail::AdamPace pace{rate, correction1_, correction2_};
  Pending& p = pending_.emplace_back();
  p.i = i;
  if (!recorded() && p.update.prepare(variables, grad, pace)) return;
  pending_.pop_back();
  detail::update_by_adam(variables, grad, pace, constants_);
}

void Adam::finish() {
  for (Pending& p : pending_) p.update.run(parameters()[p.i], constants_);
  pending_.clear();
}

}  // namespace ferrite::nn
