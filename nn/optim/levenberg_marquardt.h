#pragma once
/// The Levenberg-Marquardt method: least squares for small networks.
#include <cstdint>
#include <functional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Options of levenberg_marquardt: limit, tolerances and damping.
struct LevenbergMarquardtOptions {
  std::int64_t most_iterations = 100;  ///< limit of iterations, each of which computes one Jacobian
  double cost_tolerance = 1e-8;        ///< ends when a step lowers the cost by at most this part of it: scipy's ftol
  double step_tolerance = 1e-8;        ///< ends when a step is at most this part of the parameters, by norm: xtol
  double gradient_tolerance = 1e-8;    ///< ends when no |element| of J'r, the gradient, is larger: gtol
  double damping = 1e-3;               ///< initial factor of diag(J'J) in the formula; iterations change it
};

/// The result of levenberg_marquardt: the final cost and how it was reached.
struct LevenbergMarquardtResult {
  double cost = 0;                               ///< half the sum of squared residuals
  std::int64_t iterations = 0, evaluations = 0;  ///< numbers of iterations, and of calls of the function
  bool converged = false;  ///< false: most_iterations ended it, not a tolerance or a cost that no step lowers
};

/// Minimises half the sum of squared residuals over the parameters (Levenberg 1944, Marquardt 1963). Each iteration
/// solves
///
///   (J'J + damping diag(J'J)) step = -J'r
///
/// and takes the step if the cost falls; the damping follows how well the linear model predicted it (Nielsen 1999). The
/// function computes the residuals, a tensor of any shape, from the parameters; it runs under its own tape. J takes one
/// backward pass for each residual, and J'J takes memory for the square of the number of parameter elements, so the
/// method suits hundreds of each. Sums and solutions are f64.
///
///   nn::levenberg_marquardt(net.parameters(), [&] { return net(x) - y; });
///
/// If the function throws, the parameters are restored. Throws ValueError for options below 0, no parameters, an empty
/// handle or a parameter that is given twice, initial residuals that are not finite, fewer residuals than parameter
/// elements (as scipy's 'lm'); TraceError inside a compiled function.
LevenbergMarquardtResult levenberg_marquardt(const std::vector<Parameter>& parameters,
                                             const std::function<Tensor()>& residuals,
                                             const LevenbergMarquardtOptions& options = {});

}  // namespace ferrite::nn
