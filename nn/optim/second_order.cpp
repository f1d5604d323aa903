/// Optimisers that see all parameters at once, as one vector of doubles: L-BFGS with its line search, and
/// Levenberg-Marquardt.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/optim/lbfgs.h"
#include "ferrite/nn/optim/levenberg_marquardt.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using FlatVector = std::vector<double>;

inline double dot(const FlatVector& a, const FlatVector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double largest(const FlatVector& a) {
  double most = 0;
  for (const double v : a) most = std::fabs(v) > most || std::isnan(v) ? std::fabs(v) : most;
  return most;
}

/// Computes a += scale b.
inline void add_scaled(FlatVector& a, double scale, const FlatVector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += scale * b[i];
}

// Parameters as one vector of doubles.

/// Throws ValueError for no parameters, an empty handle or a parameter that is given twice.
void check_flat(const char* who, const std::vector<Parameter>& parameters) {
  if (parameters.empty()) throw ValueError(std::string(who) + ": there are no parameters to train");
  std::unordered_set<const void*> seen;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined())
      throw ValueError(std::string(who) + ": parameter " + std::to_string(i) + " of the list is an empty handle");
    if (!seen.insert(parameters[i].identity()).second)
      throw ValueError(std::string(who) + ": the parameter '" + parameters[i].name() + "' is given twice");
  }
}

/// Returns the elements of a tensor as doubles.
FlatVector flat_elements(const Tensor& x) { return contiguous(cast(x, Dtype::f64)).to_vector<double>(); }

/// Returns the elements of all parameters, concatenated.
FlatVector flat_position(const std::vector<Parameter>& parameters) {
  FlatVector x;
  for (const Parameter& p : parameters) {
    const FlatVector part = flat_elements(p.peek());
    x.insert(x.end(), part.begin(), part.end());
  }
  return x;
}

/// Sets the elements of all parameters from a concatenated vector.
void set_flat_position(const std::vector<Parameter>& parameters, const FlatVector& x) {
  std::size_t at = 0;
  for (const Parameter& p : parameters) {
    const auto n = static_cast<std::size_t>(p.numel());
    p.assign(cast(Tensor::from(std::span(x).subspan(at, n), p.shape()), p.dtype()));
    at += n;
  }
}

// A line search for points that meet the strong Wolfe conditions.

/// A point on a line: its distance, the loss, the gradient and the derivative along the line.
struct LinePoint {
  double at = 0, loss = 0;
  std::vector<double> gradient{};
  double slope = 0;
};

struct LineSearch {
  LinePoint found;
  std::int64_t evaluations = 0;
};

constexpr double kDecrease = 1e-4, kCurvature = 0.9, kTolerance = 1e-9;

/// Returns the minimum of the cubic through two points with their slopes, within bounds.
double interpolate(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const auto from = [&](const LinePoint& near, const LinePoint& far) {
    return far.at - (far.at - near.at) * ((far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2));
  };
  const double at = a.at <= b.at ? from(a, b) : from(b, a);
  return std::min(std::max(at, low), high);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, std::int64_t most)
      : evaluate_(evaluate), start_(start), most_(most) {}

  LineSearch run(double first, double largest) {
    if (!bracket(first)) zoom(largest);
    return {std::move(bracket_[low_]), evaluations_};
  }

 private:
  LinePoint trial(double at) {
    ++evaluations_;
    return evaluate_(at);
  }
  bool decreases(const LinePoint& p) const { return p.loss <= start_.loss + kDecrease * p.at * start_.slope; }
  bool flat(const LinePoint& p) const { return std::fabs(p.slope) <= -kCurvature * start_.slope; }

  /// Extends the interval until it holds a suitable point. Returns true if such a point was hit directly.
  bool bracket(double first) {
    LinePoint before = start_, now = trial(first);
    for (; iterations_ < most_; ++iterations_) {
      if (!decreases(now) || (iterations_ > 1 && now.loss >= before.loss)) return hold(before, now);
      if (flat(now)) {
        bracket_[0] = std::move(now);
        return true;
      }
      if (now.slope >= 0) return hold(before, now);
      const double next = interpolate(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
      before = std::move(now);
      now = trial(next);
    }
    return hold(start_, now);
  }

  bool hold(const LinePoint& a, const LinePoint& b) {
    bracket_ = {a, b};
    low_ = a.loss <= b.loss ? 0 : 1;
    return false;
  }

  /// Returns a trial that does not lie too close to the ends of the interval twice in a row.
  double next_trial(bool& stuck) const {
    const double left = std::min(bracket_[0].at, bracket_[1].at), right = std::max(bracket_[0].at, bracket_[1].at);
    const double at = interpolate(bracket_[0], bracket_[1], left, right), margin = 0.1 * (right - left);
    if (std::min(right - at, at - left) >= margin) {
      stuck = false;
      return at;
    }
    if (!stuck && at < right && at > left) {
      stuck = true;
      return at;
    }
    stuck = false;
    return std::fabs(at - right) < std::fabs(at - left) ? right - margin : left + margin;
  }

  /// Narrows the interval until a suitable point or a limit is reached.
  void zoom(double largest) {
    bool stuck = false;
    while (iterations_ < most_) {
      if (std::fabs(bracket_[1].at - bracket_[0].at) * largest < kTolerance) return;
      LinePoint now = trial(next_trial(stuck));
      ++iterations_;
      const std::size_t high = 1 - low_;
      if (!decreases(now) || now.loss >= bracket_[low_].loss) {
        bracket_[high] = std::move(now);
        low_ = bracket_[0].loss <= bracket_[1].loss ? 0 : 1;
        continue;
      }
      const bool done = flat(now);
      if (!done && now.slope * (bracket_[high].at - bracket_[low_].at) >= 0) bracket_[high] = bracket_[low_];
      bracket_[low_] = std::move(now);
      if (done) return;
    }
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  std::int64_t most_, iterations_ = 0, evaluations_ = 0;
  std::array<LinePoint, 2> bracket_{};
  std::size_t low_ = 0;
};

/// Searches from `start`, where at = 0, with `first` as the first trial: brackets by extrapolation, then interpolates
/// cubically, as torch.optim.LBFGS. `largest` is the direction's largest element.
LineSearch search_strong_wolfe(const std::function<LinePoint(double at)>& evaluate, const LinePoint& start,
                               double first, double largest, std::int64_t most_iterations) {
  return Search(evaluate, start, most_iterations).run(first, largest);
}

}  // namespace

}  // namespace ferrite::nn::detail

// ---- L-BFGS --------------------------------------------------------------------------------------------

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
        "lbfgs: what a step does depends on values, so it cannot be part of a program; compile the closure");
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

/// Chooses the direction from the remembered pairs by the two loops of Nocedal's algorithm.
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

// ---- Levenberg-Marquardt -------------------------------------------------------------------------------

namespace {

using detail::FlatVector;
using Residuals = std::function<Tensor()>;

/// The lower triangle of a symmetric matrix, row by row.
struct Symmetric {
  explicit Symmetric(std::size_t order) : n(order), values(order * (order + 1) / 2) {}
  double& at(std::size_t i, std::size_t j) { return values[i * (i + 1) / 2 + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * (i + 1) / 2 + j]; }
  std::size_t n;
  FlatVector values;
};

/// Solves A x = b by Cholesky factorisation; returns nothing if A is not positive definite.
std::optional<FlatVector> solve(Symmetric a, FlatVector b) {
  const std::size_t n = a.n;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double sum = a.at(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= a.at(i, k) * a.at(j, k);
      if (i == j && !(sum > 0)) return std::nullopt;
      a.at(i, j) = i == j ? std::sqrt(sum) : sum / a.at(j, j);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a.at(i, k) * b[k];
    b[i] /= a.at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a.at(k, i) * b[k];
    b[i] /= a.at(i, i);
  }
  return b;
}

double cost_of(const FlatVector& r) { return detail::dot(r, r) / 2; }

/// The residuals linearised at a point: cost, J'J and J'r.
struct Linearised {
  explicit Linearised(std::size_t n) : normal(n), gradient(n) {}
  double cost = 0;
  std::size_t residuals = 0;
  Symmetric normal;
  FlatVector gradient;
};

Linearised linearise(const std::vector<Parameter>& parameters, const Residuals& residuals, std::size_t n) {
  Tape tape;
  const Tensor r = residuals();
  const FlatVector values = detail::flat_elements(detach(r));
  Linearised out(n);
  out.residuals = values.size();
  out.cost = cost_of(values);
  for (std::size_t k = 0; k < values.size(); ++k) {
    std::vector<double> one(values.size());
    one[k] = 1;
    const Tensor cotangent = cast(Tensor::from(one, r.shape()), r.dtype());
    const Tensors g = tape.grad({{r, cotangent}}, parameters, {.retain = true});
    FlatVector row;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const FlatVector part =
          g[i].defined() ? detail::flat_elements(g[i]) : FlatVector(static_cast<std::size_t>(parameters[i].numel()));
      row.insert(row.end(), part.begin(), part.end());
    }
    for (std::size_t i = 0; i < n; ++i) {
      out.gradient[i] += row[i] * values[k];
      for (std::size_t j = 0; j <= i; ++j) out.normal.at(i, j) += row[i] * row[j];
    }
  }
  return out;
}

/// One minimisation with its steps.
class Minimisation {
 public:
  Minimisation(const std::vector<Parameter>& parameters, const Residuals& residuals,
               const LevenbergMarquardtOptions& options)
      : parameters_(parameters),
        residuals_(residuals),
        options_(options),
        x_(detail::flat_position(parameters)),
        damping_(options.damping) {}

  LevenbergMarquardtResult run() {
    Linearised here = linearised();
    if (!std::isfinite(here.cost)) throw ValueError("levenberg_marquardt: the residuals at first are not finite");
    if (here.residuals < x_.size())
      throw ValueError("levenberg_marquardt: there are " + std::to_string(here.residuals) + " residuals for " +
                       std::to_string(x_.size()) + " elements of parameters; it takes at least as many");
    result_.cost = here.cost;
    while (result_.iterations < options_.most_iterations) {
      ++result_.iterations;
      if (detail::largest(here.gradient) <= options_.gradient_tolerance || !improve(here)) {
        result_.converged = true;
        break;
      }
      if (result_.converged) break;
      here = linearised();
    }
    return result_;
  }

 private:
  Linearised linearised() {
    ++result_.evaluations;
    return linearise(parameters_, residuals_, x_.size());
  }

  /// Returns the step for the current damping, or nothing if it has none.
  std::optional<FlatVector> step_from(const Linearised& here) const {
    Symmetric damped = here.normal;
    double most = 0;
    for (std::size_t i = 0; i < damped.n; ++i) most = std::max(most, damped.at(i, i));
    for (std::size_t i = 0; i < damped.n; ++i)  // keeps a parameter without effect unchanged
      damped.at(i, i) += damping_ * std::max(here.normal.at(i, i), 1e-15 * most);
    FlatVector down = here.gradient;
    for (double& g : down) g = -g;
    return solve(std::move(damped), std::move(down));
  }

  /// Makes one step that lowers the cost. Returns false if no damping gives one that changes anything.
  bool improve(const Linearised& here) {
    for (;; damping_ *= growth_, growth_ *= 2) {
      if (!std::isfinite(damping_)) return false;
      const std::optional<FlatVector> step = step_from(here);
      if (!step) continue;
      const double length = std::sqrt(detail::dot(*step, *step)), size = std::sqrt(detail::dot(x_, x_));
      if (length <= options_.step_tolerance * 1e-4 * (size + options_.step_tolerance)) return false;
      FlatVector trial = x_;
      detail::add_scaled(trial, 1, *step);
      detail::set_flat_position(parameters_, trial);
      ++result_.evaluations;
      const double cost = cost_of(detail::flat_elements(evaluated()));
      const double fall = here.cost - cost;
      if (!(fall > 0)) {  // also for NaN
        detail::set_flat_position(parameters_, x_);
        continue;
      }
      accept(here, *step, fall, cost, std::move(trial));
      result_.converged = fall <= options_.cost_tolerance * here.cost ||
                          length <= options_.step_tolerance * (options_.step_tolerance + size);
      return true;
    }
  }

  void accept(const Linearised& here, const FlatVector& step, double fall, double cost, FlatVector&& trial) {
    double predicted = 0;  // fall that the linear model predicts
    for (std::size_t i = 0; i < step.size(); ++i)
      predicted += step[i] * (damping_ * here.normal.at(i, i) * step[i] - here.gradient[i]) / 2;
    const double gain = predicted > 0 ? fall / predicted : 1;
    damping_ *= std::max(1.0 / 3, 1 - std::pow(2 * gain - 1, 3));
    growth_ = 2;
    result_.cost = cost;
    x_ = std::move(trial);
  }

  Tensor evaluated() const {
    const NewFrame frame;
    return residuals_();
  }

  const std::vector<Parameter>& parameters_;
  const Residuals& residuals_;
  LevenbergMarquardtOptions options_;
  FlatVector x_;
  double damping_, growth_ = 2;
  LevenbergMarquardtResult result_;
};

}  // namespace

LevenbergMarquardtResult levenberg_marquardt(const std::vector<Parameter>& parameters, const Residuals& residuals,
                                             const LevenbergMarquardtOptions& options) {
  if (ferrite::detail::frame().tracing)
    throw TraceError("levenberg_marquardt: what it does depends on values, so it cannot be part of a program");
  detail::check_flat("levenberg_marquardt", parameters);
  ferrite::detail::check_not_negative("levenberg_marquardt: most_iterations, tolerances and damping",
                                      {static_cast<double>(options.most_iterations), options.cost_tolerance,
                                       options.step_tolerance, options.gradient_tolerance, options.damping});
  std::vector<Tensor> before;
  for (const Parameter& p : parameters) before.push_back(p.peek());
  try {
    const NewFrame frame;
    return Minimisation(parameters, residuals, options).run();
  } catch (...) {
    for (std::size_t i = 0; i < before.size(); ++i) parameters[i].assign(before[i]);
    throw;
  }
}

}  // namespace ferrite::nn
