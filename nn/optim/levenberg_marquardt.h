#pragma once
/// The method of Levenberg and Marquardt: least squares of small nets.
#include <cstdint>
#include <functional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

struct LevenbergMarquardtOptions {
  std::int64_t most_iterations = 100;  ///< each takes one Jacobian
  double cost_tolerance = 1e-8;        ///< of the relative change of the cost: scipy's ftol
  double step_tolerance = 1e-8;        ///< of the relative change of the parameters: xtol
  double gradient_tolerance = 1e-8;    ///< of the largest element of J'r: gtol
  double damping = 1e-3;               ///< at first, relative to the diagonal of J'J
};

struct LevenbergMarquardtResult {
  double cost = 0;  ///< half the sum of squared residuals
  std::int64_t iterations = 0, evaluations = 0;
  bool converged = false;  ///< whether a tolerance was reached
};

/// Minimises half the sum of squared residuals over parameters (Levenberg 1944, Marquardt 1963): each iteration solves
///
///   (J'J + damping diag(J'J)) step = -J'r
///
/// and takes the step if the cost falls; the damping follows how well the linear model predicted it (Nielsen 1999). The
/// residuals are a tensor of any shape that the function computes from the parameters, under a tape of its own; J takes
/// one backward pass for each, and its memory is their number times that of the parameters', so that it is for hundreds
/// of either. Sums and solutions are f64.
///
///   nn::levenberg_marquardt(net.parameters(), [&] { return net(x) - y; });
///
/// When the function throws, the parameters are as before. Throws ValueError for options below 0, no parameters, an
/// empty handle or a parameter that is given twice, residuals that are not finite at the beginning, fewer residuals
/// than parameters (as scipy's 'lm'); TraceError inside a compiled function.
LevenbergMarquardtResult levenberg_marquardt(const std::vector<Parameter>& parameters,
                                             const std::function<Tensor()>& residuals,
                                             const LevenbergMarquardtOptions& options = {});

}  // namespace ferrite::nn
