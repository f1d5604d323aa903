#pragma once
/// A line search for points with the strong Wolfe conditions.
#include <cstdint>
#include <functional>
#include <vector>

namespace ferrite::nn::detail {

/// A point on a line: how far, the loss, its gradient and the derivative along the line.
struct LinePoint {
  double at = 0, loss = 0;
  std::vector<double> gradient{};
  double slope = 0;
};

struct LineSearch {
  LinePoint found;
  std::int64_t evaluations = 0;
};

/// Searches from `start`, where at = 0, with `first` as its first trial: a bracket by extrapolation, then cubic
/// interpolation in it, as torch.optim.LBFGS. `largest` is the direction's largest element.
LineSearch search_strong_wolfe(const std::function<LinePoint(double at)>& evaluate, const LinePoint& start,
                               double first, double largest, std::int64_t most_iterations);

}  // namespace ferrite::nn::detail
