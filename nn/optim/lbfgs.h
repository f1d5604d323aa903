#pragma once
/// L-BFGS: a quasi-Newton method for losses that do not change between evaluations.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Options of Lbfgs: rate, limits, tolerances and line search.
struct LbfgsOptions {
  double learning_rate = 1;           ///< step length along every direction; with strong_wolfe the first trial
  std::int64_t most_iterations = 20;  ///< limit of iterations in one `step`
  std::optional<std::int64_t> most_evaluations{};  ///< limit of closure calls in one `step`; unset: 5/4 most_iterations
  double gradient_tolerance = 1e-7;                ///< ends a step when no |element| of the gradient is larger
  double change_tolerance = 1e-9;  ///< ends a step when an iteration changes the loss or every parameter less
  std::size_t history = 100;       ///< number of latest iterations that approximate the curvature
  bool strong_wolfe = false;       ///< searches along each direction for a point that meets the strong Wolfe conditions
};

/// What the closure of Lbfgs returns: the loss for the current parameters, and its gradients.
struct LossAndGradients {
  double loss = 0;  ///< the value to be minimised
  Tensors grads;    ///< gradients of the parameters, in their order; an undefined one counts as 0
};

/// The limited-memory BFGS method (Nocedal 1980; Liu and Nocedal 1989), as torch.optim.LBFGS, including the line search
/// by cubic interpolation.
///
///   nn::Lbfgs lbfgs(net.parameters(), {.strong_wolfe = true});
///   lbfgs.step([&] {
///     Tape tape;
///     const Tensor loss = nn::mse_loss(net(x), y);
///     return nn::LossAndGradients{loss.item<double>(), tape.grad(loss, net.parameters())};
///   });
///
/// Computes in f64 between evaluations, whatever the parameters' dtype. It has no groups, and no state for checkpoints:
/// finish a step before you end a run.
class Lbfgs {
 public:
  /// Evaluates the loss and its gradients for the current parameters, which a step changes between calls.
  using Closure = std::function<LossAndGradients()>;

  /// Throws ValueError for options that are negative or not finite, a limit or history below 1, no parameters, an empty
  /// handle or a parameter that is given twice.
  explicit Lbfgs(std::vector<Parameter> parameters, const LbfgsOptions& options = {});

  /// Iterates until a tolerance or a limit is reached, and returns the loss before the first iteration. If the closure
  /// throws, the parameters and the memory of the method are restored. Throws ValueError if the number of gradients is
  /// wrong, ShapeError if a shape is, TraceError inside a compiled function.
  double step(const Closure& closure);

  /// Returns the number of iterations in all steps so far.
  std::int64_t iterations() const { return memory_.iterations; }
  /// Returns the number of calls of the closure in all steps so far.
  std::int64_t evaluations() const { return memory_.evaluations; }
  const std::vector<Parameter>& parameters() const& { return parameters_; }
  std::vector<Parameter> parameters() const&& { return parameters_; }

 private:
  using Vector = std::vector<double>;
  struct Pair {
    Vector y, s;  ///< changes of the gradient (y) and of the parameters (s)
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
