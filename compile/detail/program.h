#pragma once
/// A traced function made ready to run and to be differentiated.
#include <atomic>
#include <mutex>

#include "ferrite/compile/passes/gradient.h"
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A function as traced: its program, the switches that it read, and the variables that its arguments held.
struct Traced {
  Graph graph;
  std::vector<TracedFlag> flags;
  std::vector<const void*> variables;
};

/// A traced function made ready: its plan, and the plans of its gradient, made when a tape first asks for them. What a
/// tape has recorded holds it.
class Program final : public Subprogram, public std::enable_shared_from_this<Program> {
 public:
  static std::shared_ptr<Program> make(Traced traced, const PlanOptions& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  /// Whether it was traced for such arguments and the switches stand as they stood then.
  bool fits(std::span<const Tensor* const> arguments, std::span<const void* const> variables) const;

  /// What the operation on a tape runs: results, what is written to variables, what the gradient needs.
  const Graph& recorded() const { return gradient().forward->graph(); }

  bool equals(const Subprogram& other) const override { return this == &other; }
  /// Runs it where recorders listen (or part of a trace): arguments as for Plan::evaluate, results too.
  Tensors apply(std::span<const Tensor* const> arguments) const;

 private:
  friend struct CompiledCall;
  /// The gradient, and what was made of it.
  struct Gradient {
    GraphGradient of;
    std::shared_ptr<Program> forward;  ///< gives the residuals, too
    struct Backward {
      std::vector<char> arriving, wanted;
      std::shared_ptr<Program> run;
    };
    std::vector<Backward> backward;
  };
  Program(Traced traced, const PlanOptions& options);

  const Gradient& gradient() const;
  /// The backward pass from cotangents that arrive at these results to those inputs whose gradients are wanted.
  std::shared_ptr<Program> backward(std::vector<char> arriving, std::vector<char> wanted) const;

  Graph graph_;
  std::vector<TracedFlag> flags_;
  std::vector<const void*> variables_;  ///< alive: the graph holds those that it reads
  PlanOptions options_;
  Plan plan_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Gradient> gradient_;
};

/// The operation that a tape records for a call of a program: its arguments and the variables it reads -> its results,
/// what it writes, what its gradient needs. Its body is the program.
const Primitive& compiled_primitive();

}  // namespace ferrite::detail
