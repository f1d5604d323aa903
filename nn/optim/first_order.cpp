/// The first-order optimisers: the rule, the states and the options of each.
#include <cmath>
#include <limits>

#include "ferrite/nn/optim/adadelta.h"
#include "ferrite/nn/optim/adafactor.h"
#include "ferrite/nn/optim/adagrad.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/adamax.h"
#include "ferrite/nn/optim/detail/optimizer_values.h"
#include "ferrite/nn/optim/lion.h"
#include "ferrite/nn/optim/nadam.h"
#include "ferrite/nn/optim/radam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/ops.h"

// ---- SGD -----------------------------------------------------------------------------------------------

namespace ferrite::nn {
namespace {

SgdOptions checked(const SgdOptions& o) {
  ferrite::detail::check_not_negative("sgd: momentum and weight_decay", {o.momentum, o.weight_decay});
  if (!(o.dampening >= 0 && o.dampening <= 1))
    throw ValueError("sgd: dampening must lie in [0, 1], got " + Scalar(o.dampening).str());
  if (o.nesterov && o.momentum == 0) throw ValueError("sgd: nesterov needs a momentum");
  if (o.nesterov && o.dampening > 0)
    throw ValueError("sgd: nesterov needs a dampening of 0, got " + Scalar(o.dampening).str());
  return o;
}

}  // namespace

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Sgd::add_group(std::vector<Parameter> parameters, const SgdOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Sgd::prepare(const SgdOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::sgd,
                          .decay = detail::decay_of(options.weight_decay, false),
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .nesterov = options.nesterov,
                          .damped = options.momentum > 0 && options.dampening > 0,
                          .numbers = {options.momentum}};
  std::vector<State> velocity;  // starts from zeros, so that the first one is g, as in PyTorch
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    velocity = states_like_parameters("momentum");
  }
  add_rule(rule, {std::move(velocity), {}, {}});
  Group& g = groups_.emplace_back();
  g.options = options;
  if (options.momentum > 0 && options.dampening > 0) g.steps = element_state("step", 0, Dtype::i64);
}

std::array<Tensor, 6> Sgd::numbers(std::size_t group) {
  const Group& g = groups_[group];
  Tensor momentum, share;
  if (cycles(group)) momentum = momentum_now(group);
  if (g.steps.defined())
    share = where(detail::count_step(g.steps, updated_now()) > 1, full({}, 1 - g.options.dampening, Dtype::f64),
                  full({}, 1, Dtype::f64));
  return {momentum, share};
}

std::vector<NamedOption> Sgd::options(std::size_t group) const {
  const SgdOptions& o = groups_.at(group).options;
  return {{"momentum", cycles(group) ? momentum(group) : o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov},
          {"maximize", o.maximize}};
}

// ---- Adam and AdamW ------------------------------------------------------------------------------------

namespace {

constexpr double kDecoupledDecay = 1e-2;

void check(const AdamOptions& o, double weight_decay) {
  const auto outside = [](double beta) { return !(beta >= 0 && beta < 1); };
  if (outside(o.beta1) || outside(o.beta2))
    throw ValueError("adam: betas must lie in [0, 1), got " + Scalar(o.beta1).str() + " and " + Scalar(o.beta2).str());
  ferrite::detail::check_not_negative("adam: epsilon and weight_decay", {o.epsilon, weight_decay});
}

/// Returns the options with the optimiser's default decay filled in.
AdamOptions resolved(AdamOptions o, bool decoupled) {
  if (!o.weight_decay) o.weight_decay = decoupled ? kDecoupledDecay : 0;
  check(o, *o.weight_decay);
  return o;
}

}  // namespace

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : RuleOptimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), decoupled_(decoupled) {
  prepare(resolved(options, decoupled));
}

void Adam::add_group(std::vector<Parameter> parameters, const AdamOptions& options) {
  const AdamOptions o = resolved(options, decoupled_);
  add_parameters(std::move(parameters), o.learning_rate);
  prepare(o);
}

void Adam::prepare(const AdamOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::adam,
                          .decay = detail::decay_of(*options.weight_decay, decoupled_),
                          .weight_decay = *options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                          .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg"), square = states_like_parameters("exp_avg_sq");
  std::vector<State> largest;
  if (options.amsgrad) largest = states_like_parameters("max_exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), std::move(largest)});
  groups_.push_back({options, detail::AdamBetas{options.beta1, options.beta2}, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensors begun = detail::begin_adam(g.steps.value(), updated_now(), g.betas);
  g.steps.assign(begun[0]);
  auto [beta1, rest1] = first_betas_now(group);
  const Tensor correction1 = beta1.defined() ? detail::correction(beta1, cast(begun[0], Dtype::f64)) : begun[1];
  return {beta1, rest1, correction1, begun[2]};
}

std::vector<NamedOption> Adam::options(std::size_t group) const {
  const AdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", *o.weight_decay},
          {"amsgrad", o.amsgrad},
          {"maximize", o.maximize},
          {"decoupled_weight_decay", decoupled_}};
}

// ---- NAdam ---------------------------------------------------------------------------------------------

namespace {

NAdamOptions checked(const NAdamOptions& o) {
  detail::check_below_one("nadam", "beta1", o.beta1);
  detail::check_below_one("nadam", "beta2", o.beta2);
  ferrite::detail::check_not_negative("nadam: epsilon, weight_decay and momentum_decay",
                                      {o.epsilon, o.weight_decay, o.momentum_decay});
  return o;
}

}  // namespace

NAdam::NAdam(std::vector<Parameter> parameters, const NAdamOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void NAdam::add_group(std::vector<Parameter> parameters, const NAdamOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void NAdam::prepare(const NAdamOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::nadam,
                    .decay = detail::decay_of(options.weight_decay, options.decoupled_weight_decay),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto square = states_like_parameters("exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), {}});
  const State steps = element_state("step", 0, Dtype::i64);
  groups_.push_back({options, steps, element_state("mu_product", 1, Dtype::f64)});
}

std::array<Tensor, 6> NAdam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensor& updated = updated_now();
  const Tensor t = detail::count_step(g.steps, updated), rate = rate_now(group), beta1 = momentum_now(group);
  const auto mu = [&](const Tensor& step) { return beta1 * (1 - 0.5 * pow(0.96, step * g.options.momentum_decay)); };
  const Tensor now = mu(t), next = mu(t + 1), before = g.product.value();
  const Tensor product = updated.defined() ? where(updated > 0, before * now, before) : before * now;
  g.product.assign(product);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate * (1 - now) / (1 - product), rate * next / (1 - product * next),
          sqrt(detail::correction(g.options.beta2, t))};
}

std::vector<NamedOption> NAdam::options(std::size_t group) const {
  const NAdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"momentum_decay", o.momentum_decay},
          {"decoupled_weight_decay", o.decoupled_weight_decay},
          {"maximize", o.maximize}};
}

// ---- RAdam ---------------------------------------------------------------------------------------------

namespace {

RAdamOptions checked(const RAdamOptions& o) {
  detail::check_below_one("radam", "beta1", o.beta1);
  detail::check_below_one("radam", "beta2", o.beta2);
  ferrite::detail::check_not_negative("radam: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

RAdam::RAdam(std::vector<Parameter> parameters, const RAdamOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void RAdam::add_group(std::vector<Parameter> parameters, const RAdamOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void RAdam::prepare(const RAdamOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::radam,
                    .decay = detail::decay_of(options.weight_decay, options.decoupled_weight_decay),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto square = states_like_parameters("exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> RAdam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const double beta2 = g.options.beta2, most = 2 / (1 - beta2) - 1;
  const Tensor t = detail::count_step(g.steps, updated_now()), rate = rate_now(group), beta1 = momentum_now(group);
  const Tensor power = pow(beta2, t), correction2 = 1 - power;
  const Tensor length = most - 2 * t * power / correction2, tractable = length > 5;
  const Tensor ratio = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
  const Tensor one = full({}, 1, Dtype::f64);
  const Tensor rectified = where(tractable, sqrt(where(tractable, ratio, one)) * sqrt(correction2), one);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate / detail::correction(beta1, t) * rectified, cast(tractable, Dtype::f64)};
}

std::vector<NamedOption> RAdam::options(std::size_t group) const {
  const RAdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize},
          {"decoupled_weight_decay", o.decoupled_weight_decay}};
}

// ---- Adamax --------------------------------------------------------------------------------------------

namespace {

AdamaxOptions checked(const AdamaxOptions& o) {
  detail::check_below_one("adamax", "beta1", o.beta1);
  detail::check_below_one("adamax", "beta2", o.beta2);
  ferrite::detail::check_not_negative("adamax: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

Adamax::Adamax(std::vector<Parameter> parameters, const AdamaxOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adamax::add_group(std::vector<Parameter> parameters, const AdamaxOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adamax::prepare(const AdamaxOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adamax,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 0, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto largest = states_like_parameters("exp_inf");
  add_rule(rule, {std::move(mean), std::move(largest), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adamax::numbers(std::size_t group) {
  const Tensor t = detail::count_step(groups_[group].steps, updated_now()), beta1 = momentum_now(group);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate_now(group) / detail::correction(beta1, t)};
}

std::vector<NamedOption> Adamax::options(std::size_t group) const {
  const AdamaxOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

// ---- Adagrad -------------------------------------------------------------------------------------------

namespace {

AdagradOptions checked(const AdagradOptions& o) {
  ferrite::detail::check_not_negative("adagrad: learning_rate_decay, weight_decay, initial_accumulator and epsilon",
                                      {o.learning_rate_decay, o.weight_decay, o.initial_accumulator, o.epsilon});
  return o;
}

}  // namespace

Adagrad::Adagrad(std::vector<Parameter> parameters, const AdagradOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adagrad::add_group(std::vector<Parameter> parameters, const AdagradOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adagrad::prepare(const AdagradOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adagrad,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.epsilon}};
  add_rule(rule, {states_like_parameters("sum", options.initial_accumulator), {}, {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adagrad::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensor t = detail::count_step(g.steps, updated_now());
  return {rate_now(group) / (1 + (t - 1) * g.options.learning_rate_decay)};
}

std::vector<NamedOption> Adagrad::options(std::size_t group) const {
  const AdagradOptions& o = groups_.at(group).options;
  return {{"lr_decay", o.learning_rate_decay},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"initial_accumulator_value", o.initial_accumulator},
          {"maximize", o.maximize}};
}

// ---- Adadelta ------------------------------------------------------------------------------------------

namespace {

AdadeltaOptions checked(const AdadeltaOptions& o) {
  detail::check_below_one("adadelta", "rho", o.rho);
  ferrite::detail::check_not_negative("adadelta: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

Adadelta::Adadelta(std::vector<Parameter> parameters, const AdadeltaOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adadelta::add_group(std::vector<Parameter> parameters, const AdadeltaOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adadelta::prepare(const AdadeltaOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adadelta,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.rho, 1 - options.rho, options.epsilon}};
  auto squares = states_like_parameters("square_avg");
  auto deltas = states_like_parameters("acc_delta");
  add_rule(rule, {std::move(squares), std::move(deltas), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adadelta::numbers(std::size_t group) {
  detail::count_step(groups_[group].steps, updated_now());
  return {};
}

std::vector<NamedOption> Adadelta::options(std::size_t group) const {
  const AdadeltaOptions& o = groups_.at(group).options;
  return {{"rho", o.rho}, {"eps", o.epsilon}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}

// ---- RMSprop -------------------------------------------------------------------------------------------

namespace {

RmsPropOptions checked(const RmsPropOptions& o) {
  detail::check_below_one("rmsprop", "alpha", o.alpha);
  ferrite::detail::check_not_negative("rmsprop: epsilon, weight_decay and momentum",
                                      {o.epsilon, o.weight_decay, o.momentum});
  return o;
}

}  // namespace

RmsProp::RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void RmsProp::add_group(std::vector<Parameter> parameters, const RmsPropOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void RmsProp::prepare(const RmsPropOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::rmsprop,
                          .decay = detail::decay_of(options.weight_decay, false),
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.alpha, 1 - options.alpha, options.epsilon},
                          .numbers = {options.momentum}};
  std::vector<State> square = states_like_parameters("square_avg"), mean, velocity;
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    velocity = states_like_parameters("momentum_buffer");
  }
  if (options.centered) mean = states_like_parameters("grad_avg");
  add_rule(rule, {std::move(square), std::move(mean), std::move(velocity)});
  groups_.push_back({options});
}

std::array<Tensor, 6> RmsProp::numbers(std::size_t group) { return {cycles(group) ? momentum_now(group) : Tensor()}; }

std::vector<NamedOption> RmsProp::options(std::size_t group) const {
  const RmsPropOptions& o = groups_.at(group).options;
  return {{"momentum", cycles(group) ? momentum(group) : o.momentum},
          {"alpha", o.alpha},
          {"eps", o.epsilon},
          {"centered", o.centered},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

// ---- Lion ----------------------------------------------------------------------------------------------

namespace {

LionOptions checked(const LionOptions& o) {
  detail::check_below_one("lion", "beta1", o.beta1);
  detail::check_below_one("lion", "beta2", o.beta2);
  ferrite::detail::check_not_negative("lion: weight_decay", {o.weight_decay});
  return o;
}

}  // namespace

Lion::Lion(std::vector<Parameter> parameters, const LionOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Lion::add_group(std::vector<Parameter> parameters, const LionOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Lion::prepare(const LionOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::lion,
                    .decay = detail::decay_of(options.weight_decay, true),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  add_rule(rule, {states_like_parameters("exp_avg"), {}, {}});
  groups_.push_back({options});
}

std::array<Tensor, 6> Lion::numbers(std::size_t group) {
  auto [beta1, rest1] = first_betas_now(group);
  return {beta1, rest1};
}

std::vector<NamedOption> Lion::options(std::size_t group) const {
  const LionOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

// ---- Adafactor, in operations --------------------------------------------------------------------------

namespace {

AdafactorOptions checked(const AdafactorOptions& o) {
  if (!(o.beta2_decay <= 0) || !std::isfinite(o.beta2_decay))
    throw ValueError("adafactor: beta2_decay must be finite and at most 0, got " + Scalar(o.beta2_decay).str());
  if (!(o.clipping_threshold >= 1))
    throw ValueError("adafactor: clipping_threshold must be at least 1, got " + Scalar(o.clipping_threshold).str());
  ferrite::detail::check_not_negative("adafactor: epsilon1, epsilon2 and weight_decay",
                                      {o.epsilon1.value_or(0), o.epsilon2, o.weight_decay});
  return o;
}

bool factored(const Shape& shape) { return shape.rank() > 1; }

Shape with_one(const Shape& shape, int axis) {
  Shape s = shape;
  s[axis] = 1;
  return s;
}

double smallest(Dtype dtype) {
  return dtype == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon();
}

/// Assigns old + share (next - old) to a state and returns it.
Tensor moved(const State& state, const Tensor& next, const Tensor& share) {
  const Tensor old = state.value();
  const Tensor now = old + share * (next - old);
  state.assign(now);
  return now;
}

/// Returns the root mean square of the elements.
Tensor rms(const Tensor& x) { return sqrt(sum(square(x)) / static_cast<double>(x.numel())); }

}  // namespace

Adafactor::Adafactor(std::vector<Parameter> parameters, const AdafactorOptions& options)
    : Optimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adafactor::add_group(std::vector<Parameter> parameters, const AdafactorOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adafactor::prepare(const AdafactorOptions& options) {
  Group& g = groups_.emplace_back();
  g.options = options;
  g.rows = states_shaped(
      "row_var", 0, [](const Shape& s) { return with_one(s, s.rank() - 1); }, factored);
  g.columns = states_shaped(
      "col_var", 0, [](const Shape& s) { return with_one(s, s.rank() - 2); }, factored);
  g.variances = states_shaped(
      "variance", 0, [](const Shape& s) { return s; }, [](const Shape& s) { return !factored(s); });
  g.steps = element_state("step", 0, Dtype::i64);
}

void Adafactor::begin_group(std::size_t group) {
  Group& g = groups_[group];
  const Tensor t = detail::count_step(g.steps, updated_now());
  g.share = pow(t, g.options.beta2_decay);
  g.pace = minimum(rate_now(group), 1 / sqrt(t));
}

void Adafactor::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const auto [group, place] = place_of(i);
  const Group& g = groups_[group];
  const AdafactorOptions& o = g.options;
  const Parameter& p = parameters()[i];
  if (grad.numel() == 0) return;
  const Dtype dtype = p.dtype();
  const double epsilon1 = o.epsilon1.value_or(smallest(dtype));
  const Tensor share = cast(detail::number_at(g.share, place), dtype);
  Tensor w = p.value();
  const Tensor gradient = o.maximize ? -grad : grad;
  const Tensor pace = maximum(rms(w), o.epsilon2) * cast(detail::number_at(g.pace, place), dtype);
  if (o.weight_decay > 0) w = w - (rate * o.weight_decay) * w;
  const Tensor squares = square(gradient);
  Tensor variance;
  if (factored(p.shape())) {
    const Tensor rows = moved(g.rows[place], mean(squares, {-1}, true), share);
    const Tensor columns = moved(g.columns[place], mean(squares, {-2}, true), share);
    variance = rows * columns / maximum(mean(rows, {-2}, true), epsilon1);
  } else {
    variance = moved(g.variances[place], squares, share);
  }
  const Tensor direction = gradient / sqrt(maximum(variance, epsilon1 * epsilon1));
  p.assign(w - (pace / maximum(rms(direction) / o.clipping_threshold, 1)) * direction);
}

std::vector<NamedOption> Adafactor::options(std::size_t group) const {
  const AdafactorOptions& o = groups_.at(group).options;
  return {{"beta2_decay", o.beta2_decay},
          {"eps", std::vector<std::optional<double>>{o.epsilon1, o.epsilon2}},
          {"d", o.clipping_threshold},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
