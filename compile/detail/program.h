#pragma once
/// A traced function made ready to run and to be differentiated.
#include <atomic>
#include <mutex>

#include "ferrite/compile/passes/gradient.h"
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::detail {

/// A traced function: its program, the switches that it read, and the variables that its arguments held.
struct Traced {
  Graph graph;
  std::vector<TracedFlag> flags;
  std::vector<const void*> variables;
};

/// A traced function made ready to run: its plan, and the plans of its gradient, made when a tape first asks for them.
/// Entries of a tape hold it.
class Program final : public Subprogram, public std::enable_shared_from_this<Program> {
 public:
  static std::shared_ptr<Program> make(Traced traced, const PlanOptions& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  /// Returns whether it was traced for arguments of these types and these variables, the switches have the same values
  /// as then, and no two of its variables have been tied since.
  bool fits(std::span<const Tensor* const> arguments, std::span<const void* const> variables) const;

  /// Returns the graph that the operation on a tape runs: its results are those of the program, the values written to
  /// variables, and the residuals of the gradient.
  const Graph& recorded() const { return gradient().forward->graph(); }

  bool equals(const Subprogram& other) const override { return this == &other; }
  /// Runs the program where recorders listen (or as part of a trace), with arguments and results as in Plan::evaluate.
  Tensors apply(std::span<const Tensor* const> arguments) const;

 private:
  friend struct CompiledCall;
  /// The gradient of the program, and the programs made from it.
  struct Gradient {
    GraphGradient of;
    std::shared_ptr<Program> forward;  ///< also returns the residuals
    struct Backward {
      std::vector<char> arriving, wanted;
      std::shared_ptr<Program> run;
    };
    std::vector<Backward> backward;
  };
  Program(Traced traced, const PlanOptions& options);

  const Gradient& gradient() const;
  /// Returns the backward pass from the cotangents that arrive, by result, to the wanted gradients, by input.
  std::shared_ptr<Program> backward(std::vector<char> arriving, std::vector<char> wanted) const;

  Graph graph_;
  std::vector<TracedFlag> flags_;
  std::vector<const void*> variables_;  ///< alive if the graph reads them, because it holds those
  PlanOptions options_;
  Plan plan_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Gradient> gradient_;
};

/// Returns the operation that a tape records for a call of a program: arguments, variables read -> results, values
/// written to variables, residuals of the gradient. Its body is the program.
const Primitive& compiled_primitive();

}  // namespace ferrite::detail
