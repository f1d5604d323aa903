/// L-BFGS.
#include "ferrite/nn/optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "ferrite/nn/optim/detail/flat.h"
#include "ferrite/nn/optim/detail/line_search.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

constexpr double kLeastCurvature = 1e-10;

}  // namespace

Lbfgs::Lbfgs(std::vector<Parameter> parameters, const LbfgsOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  detail::check_flat("lbfgs", parameters_);
  ferrite::detail::check_not_negative("lbfgs: learning_rate, gradient_tolerance and change_tolerance",
                                      {options.learning_rate, options.gradient_tolerance, options.change_tolerance});
  if (options.most_iterations < 1 || options.most_evaluations.value_or(1) < 1 || options.history < 1)
    throw ValueError("lbfgs: most_iterations, most_evaluations and history must be positive, got " +
                     std::to_string(options.most_iterations) + ", " +
                     std::to_string(options.most_evaluations.value_or(1)) + " and " + std::to_string(options.history));
  options_.most_evaluations = options.most_evaluations.value_or(options.most_iterations * 5 / 4);
}

Lbfgs::Point Lbfgs::evaluate(const Closure& closure) {
  const LossAndGradients result = closure();
  ++memory_.evaluations;
  if (result.grads.size() != parameters_.size())
    throw ValueError("lbfgs: " + std::to_string(result.grads.size()) + " gradients for " +
                     std::to_string(parameters_.size()) + " parameters");
  Point point{.loss = result.loss};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    const Tensor& g = result.grads[i];
    if (g.defined() && g.shape() != p.shape())
      throw ShapeError("lbfgs: the gradient of '" + p.name() + "' has shape " + g.shape().str() + ", the parameter " +
                       p.shape().str());
    const Vector part = g.defined() ? detail::flat_elements(g) : Vector(static_cast<std::size_t>(p.numel()));
    point.gradient.insert(point.gradient.end(), part.begin(), part.end());
  }
  return point;
}

double Lbfgs::step(const Closure& closure) {
  if (ferrite::detail::frame().tracing)
    throw TraceError(
        "lbfgs: what a step does depends on values, so that it is no part of a program; compile the closure");
  const Memory before = memory_;
  std::vector<Tensor> values;
  for (const Parameter& p : parameters_) values.push_back(p.peek());
  try {
    Point point = evaluate(closure);
    const double loss = point.loss;
    if (!(detail::largest(point.gradient) <= options_.gradient_tolerance)) iterate(closure, std::move(point));
    return loss;
  } catch (...) {
    for (std::size_t i = 0; i < values.size(); ++i) parameters_[i].assign(values[i]);
    memory_ = before;
    throw;
  }
}

/// The direction by the pairs remembered: the two loops of Nocedal's algorithm.
void Lbfgs::choose_direction(const Vector& gradient) {
  Memory& m = memory_;
  if (m.iterations == 1) {
    m.direction = gradient;
    for (double& d : m.direction) d = -d;
    m.pairs.clear();
    m.curvature = 1;
    return;
  }
  Pair pair{gradient, m.direction};
  detail::add_scaled(pair.y, -1, m.previous_gradient);
  for (double& s : pair.s) s *= m.length;
  const double ys = detail::dot(pair.y, pair.s);
  if (ys > kLeastCurvature) {
    if (m.pairs.size() == options_.history) m.pairs.erase(m.pairs.begin());
    pair.rho = 1 / ys;
    m.curvature = ys / detail::dot(pair.y, pair.y);
    m.pairs.push_back(std::move(pair));
  }
  Vector q = gradient;
  for (double& v : q) v = -v;
  Vector alpha(m.pairs.size());
  for (std::size_t i = m.pairs.size(); i-- > 0;) {
    alpha[i] = detail::dot(m.pairs[i].s, q) * m.pairs[i].rho;
    detail::add_scaled(q, -alpha[i], m.pairs[i].y);
  }
  for (double& v : q) v *= m.curvature;
  for (std::size_t i = 0; i < m.pairs.size(); ++i)
    detail::add_scaled(q, alpha[i] - detail::dot(m.pairs[i].y, q) * m.pairs[i].rho, m.pairs[i].s);
  m.direction = std::move(q);
}

void Lbfgs::iterate(const Closure& closure, Point point) {
  Memory& m = memory_;
  const std::int64_t first_evaluation = m.evaluations - 1;
  for (std::int64_t n = 1; n <= options_.most_iterations; ++n) {
    ++m.iterations;
    choose_direction(point.gradient);
    m.previous_gradient = point.gradient;
    m.previous_loss = point.loss;
    m.length = options_.learning_rate;
    if (m.iterations == 1) {
      double sum = 0;
      for (const double g : point.gradient) sum += std::fabs(g);
      m.length *= std::min(1.0, 1 / sum);
    }
    const double slope = detail::dot(point.gradient, m.direction);
    if (slope > -options_.change_tolerance) return;
    const Vector start = detail::flat_position(parameters_);
    const auto go_to = [&](double length) {
      Vector x = start;
      detail::add_scaled(x, length, m.direction);
      detail::set_flat_position(parameters_, x);
    };
    if (options_.strong_wolfe) {
      const auto evaluate_at = [&](double at) {
        go_to(at);
        Point p = evaluate(closure);
        const double along = detail::dot(p.gradient, m.direction);
        return detail::LinePoint{at, p.loss, std::move(p.gradient), along};
      };
      const std::int64_t left = *options_.most_evaluations - (m.evaluations - first_evaluation);
      detail::LineSearch search = detail::search_strong_wolfe(evaluate_at, {0, point.loss, point.gradient, slope},
                                                              m.length, detail::largest(m.direction), left);
      m.length = search.found.at;
      point = {search.found.loss, std::move(search.found.gradient)};
      go_to(m.length);
    } else {
      go_to(m.length);
      if (n != options_.most_iterations) point = evaluate(closure);
    }
    if (m.evaluations - first_evaluation >= *options_.most_evaluations) return;
    if (detail::largest(point.gradient) <= options_.gradient_tolerance) return;
    if (detail::largest(m.direction) * std::fabs(m.length) <= options_.change_tolerance) return;
    if (std::fabs(point.loss - m.previous_loss) < options_.change_tolerance) return;
  }
}

}  // namespace ferrite::nn
