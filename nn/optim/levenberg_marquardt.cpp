/// The method of Levenberg and Marquardt.
#include "ferrite/nn/optim/levenberg_marquardt.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/optim/detail/flat.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
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

/// A x = b by Cholesky's factors; nothing where A is not positive definite.
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

/// What the residuals are around a point: cost, J'J and J'r.
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

/// The steps of one minimisation.
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

  /// The step with the present damping.
  std::optional<FlatVector> step_from(const Linearised& here) const {
    Symmetric damped = here.normal;
    double most = 0;
    for (std::size_t i = 0; i < damped.n; ++i) most = std::max(most, damped.at(i, i));
    for (std::size_t i = 0; i < damped.n; ++i)  // a parameter without effect stays
      damped.at(i, i) += damping_ * std::max(here.normal.at(i, i), 1e-15 * most);
    FlatVector down = here.gradient;
    for (double& g : down) g = -g;
    return solve(std::move(damped), std::move(down));
  }

  /// Takes one step that lowers the cost. False where no damping gives one that changes anything.
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
      if (!(fall > 0)) {  // NaN, too
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
    double predicted = 0;  // by the linear model
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
    throw TraceError("levenberg_marquardt: what it does depends on values, so that it is no part of a program");
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
