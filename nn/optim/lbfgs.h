#pragma once
/// L-BFGS: a quasi-Newton method for losses that do not change from one evaluation to the next.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

struct LbfgsOptions {
  double learning_rate = 1;                        ///< of the first trial of every iteration
  std::int64_t most_iterations = 20;               ///< of a step
  std::optional<std::int64_t> most_evaluations{};  ///< of a step: 5/4 of the iterations unless given
  double gradient_tolerance = 1e-7;                ///< of the largest element of the gradient
  double change_tolerance = 1e-9;                  ///< of the loss and of the largest change of a parameter
  std::size_t history = 100;                       ///< pairs of changes that approximate the curvature
  bool strong_wolfe = false;  ///< searches along each direction for a point with the strong Wolfe conditions
};

/// What a closure evaluates.
struct LossAndGradients {
  double loss = 0;
  Tensors grads;  ///< of the parameters, in their order; an undefined one is 0
};

/// Limited-memory BFGS (Nocedal 1980; Liu and Nocedal 1989), as torch.optim.LBFGS, line search by cubic interpolation
/// included:
///
///   nn::Lbfgs lbfgs(net.parameters(), {.strong_wolfe = true});
///   lbfgs.step([&] {
///     Tape tape;
///     const Tensor loss = nn::mse_loss(net(x), y);
///     return nn::LossAndGradients{loss.item<double>(), tape.grad(loss, net.parameters())};
///   });
///
/// Numbers between evaluations are f64, whatever the parameters are. It has no groups, and no state for checkpoints: a
/// run is best ended by a step.
class Lbfgs {
 public:
  using Closure = std::function<LossAndGradients()>;

  /// Throws ValueError for options that are negative, not finite or 0 (history, iterations), no parameters, an empty
  /// handle or a parameter that is given twice.
  explicit Lbfgs(std::vector<Parameter> parameters, const LbfgsOptions& options = {});

  /// Iterates until a tolerance or a limit is reached; gives the loss at its beginning. When the closure throws, the
  /// parameters and what is remembered are as before. Throws ValueError for another number of gradients, ShapeError for
  /// another shape, TraceError inside a compiled function.
  double step(const Closure& closure);

  std::int64_t iterations() const { return memory_.iterations; }
  std::int64_t evaluations() const { return memory_.evaluations; }
  const std::vector<Parameter>& parameters() const& { return parameters_; }
  std::vector<Parameter> parameters() const&& { return parameters_; }

 private:
  using Vector = std::vector<double>;
  struct Pair {
    Vector y, s;  ///< changes of the gradient and of the parameters
    double rho = 0;
  };
  struct Memory {
    std::int64_t iterations = 0, evaluations = 0;
    std::vector<Pair> pairs{};
    Vector direction{}, previous_gradient{};
    double length = 0, curvature = 1, previous_loss = 0;
  };
  struct Point {
    double loss = 0;
    Vector gradient{};
  };

  Point evaluate(const Closure& closure);
  void iterate(const Closure& closure, Point point);
  void choose_direction(const Vector& gradient);

  std::vector<Parameter> parameters_;
  LbfgsOptions options_;
  Memory memory_;
};

}  // namespace ferrite::nn
