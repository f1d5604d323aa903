/// Adafactor, in operations.
#include "ferrite/nn/optim/adafactor.h"

#include <cmath>
#include <limits>

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
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

/// old + share (next - old), assigned.
Tensor moved(const State& state, const Tensor& next, const Tensor& share) {
  const Tensor old = state.value();
  const Tensor now = old + share * (next - old);
  state.assign(now);
  return now;
}

/// The root mean square.
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
