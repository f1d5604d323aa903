#pragma once
/// Plans: graphs made ready to run, and reports of what they do.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite {

namespace detail {
class PlanBody;
}

/// Options of plans and compiled functions: what is fused, whether buffers are shared, how many plans are kept.
struct PlanOptions {
  bool fuse = true;   ///< elementwise operations and reductions run together in kernels; off: each runs by itself
  bool guard = true;  ///< a value is not fused where that would compute it many times; off to measure what that saves
  bool reuse = true;  ///< buffers are reused after their last reader; off to find faults: the results are the same
  /// Maximum number of plans that a compiled function keeps (see Compiled::plans); 0 for no limit. The least recently
  /// used plan is dropped first, with a line in the log.
  std::size_t most_plans = 128;
};

/// A description of a plan in numbers and words: its steps, their memory, and what was not fused.
struct PlanReport {
  /// A step of a plan: a fused kernel, or an operation that runs alone.
  struct Step {
    std::string what;            ///< names of the operations, "matmul" or "sub exp sum"
    std::size_t operations = 0;  ///< number of operations in the step
    bool kernel = false;         ///< whether the step is a fused kernel, not an operation that runs alone
    std::int64_t bytes = 0;      ///< bytes read and written
    std::vector<Scope> layers;   ///< whose operations it runs, in order, each once; none for operations outside layers
  };
  std::vector<Step> steps;            ///< in the order in which they run
  std::size_t operations = 0;         ///< nodes of the simplified graph
  std::size_t kernels = 0;            ///< number of fused kernels: elementwise operations, and reductions with them
  std::size_t products = 0;           ///< number of matrix products, alone or in a kernel's step
  std::size_t epilogues = 0;          ///< number of the products that run in a kernel's step, a few rows at a time
  std::size_t others = 0;             ///< number of operations that run alone and are not products
  std::int64_t bytes_moved = 0;       ///< bytes read and written by all steps
  std::int64_t arena_bytes = 0;       ///< size of the arena, the memory that the intermediate values share
  std::int64_t bound_bytes = 0;       ///< lower bound of arena_bytes: the most intermediate values that live at once
  std::int64_t result_bytes = 0;      ///< size of the outputs and new values of variables
  std::int64_t constant_bytes = 0;    ///< size of the constants, such as captured tensors
  std::vector<std::string> refusals;  ///< what was not fused and why, one text each

  /// Returns the report as text: a line for the whole, one for each step and one for each refusal. With `layers`, the
  /// lines of steps end with the layers whose operations they run: "in encoder.0, head".
  std::string str(bool layers = false) const;
};

/// A graph made ready to run: kernels built, views resolved, buffers placed in one arena. Immutable; several threads
/// may run it at once, each call in its own workspace.
class Plan {
 public:
  /// Simplifies the graph and plans it. Throws TraceError for a graph that is not valid.
  explicit Plan(Graph graph, const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;

  /// Computes the outputs from the inputs and the variables, and assigns the variables. Outputs are fresh tensors. From
  /// the third call on, nothing is allocated except tensors from the pool. Throws ShapeError or DtypeError for inputs
  /// of other types.
  Tensors run(std::span<const Tensor> inputs) const;
  Tensors run(std::initializer_list<Tensor> inputs) const {
    return run(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }
  Tensors run(std::span<const Tensor* const> inputs) const;
  /// Computes the same as `run` without touching variables: `arguments` are the inputs, then the values of the
  /// variables read; the results are the outputs, then the new values of the variables written.
  Tensors evaluate(std::span<const Tensor* const> arguments) const;

  /// Returns the report of this plan.
  const PlanReport& report() const&;
  PlanReport report() const&& { return report(); }
  /// Returns the simplified graph, the one that runs.
  const Graph& graph() const&;
  Graph graph() const&& { return graph(); }

 private:
  std::unique_ptr<const detail::PlanBody> body_;
};

}  // namespace ferrite
