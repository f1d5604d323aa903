#pragma once
#include <atomic>
#include <mutex>

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

  bool equals(const Subprogram& other) const override { return this == &other; }
  /// Runs it where recorders listen (or part of a trace): arguments as for Plan::evaluate, results too.
  Tensors apply(std::span<const Tensor* const> arguments) const;

 private:
  friend struct CompiledCall;
  /// Forward pass that also gives what the backward pass needs, and the backward pass.
  struct Gradient {
    Graph forward;                        ///< -> results, then residuals
    Graph backward;                       ///< arguments, residuals, cotangents -> gradients of the float arguments
    std::size_t results = 0;              ///< of the program, without residuals
    std::vector<std::size_t> wanted;      ///< by gradient: which argument it belongs to
    std::vector<std::size_t> cotangents;  ///< by cotangent: which result it belongs to
    std::shared_ptr<Program> run;         ///< of `forward`
    struct Variant {
      std::vector<bool> wants;
      std::shared_ptr<Program> run;
    };
    std::vector<Variant> variants;  ///< of `backward`, by the gradients that are wanted
  };
  Program(Traced traced, const PlanOptions& options);

  const Gradient& gradient() const;
  Graph trace_gradient(Gradient& g) const;
  static void cut(const Graph& joint, Gradient& g);
  std::shared_ptr<Program> backward(const std::vector<bool>& wants) const;

  Graph graph_;
  std::vector<TracedFlag> flags_;
  std::vector<const void*> variables_;  ///< alive: the graph holds those that it reads
  PlanOptions options_;
  Plan plan_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Gradient> gradient_;
};

/// The operation that a tape records for a call of a program: its arguments and the cells it reads -> its results, what
/// it writes, what its gradient needs. Its body is the program.
const Primitive& compiled_primitive();

}  // namespace ferrite::detail
