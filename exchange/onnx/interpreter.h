#pragma once
/// The interpreter that runs the graphs of a model as Ferrite's operations.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx/onnx_graph.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/scope.h"

namespace ferrite::onnx::detail {

/// The values of one run of a graph.
struct Environment {
  const Graph* graph = nullptr;
  Values values{};                      ///< the values by slot
  const Environment* outer = nullptr;   ///< the environment of the surrounding graph
  const Function* function = nullptr;   ///< the function whose body the graph is, or null
  const Node* node = nullptr;           ///< the node that calls the function
  const Environment* caller = nullptr;  ///< the environment of that node
};

/// One run of a model: its nodes in order, each lowered to Ferrite's operations. Values that depend only on constants
/// and shapes are computed separately, so that they are known while a program is traced; with open extents the program
/// computes them, too.
class Interpreter {
 public:
  struct Limits {
    std::int64_t most_trips = 1024;
    std::int64_t most_elements = std::int64_t{1} << 32;
  };
  using Note = std::function<void(const Node& node, const std::string& what)>;

  /// `parameter` returns the value of a parameter by its number; `note` is called with what each node became.
  Interpreter(const CheckedModel& program, std::function<Tensor(std::size_t)> parameter, Limits limits, Note note)
      : program_(program),
        parameter_(std::move(parameter)),
        limits_(limits),
        note_(std::move(note)),
        model_(ferrite::detail::frame().scope) {}

  Values run(const Values& inputs) const { return run_graph(program_.graphs().main, inputs, nullptr); }
  Values run_graph(const Graph& graph, const Values& inputs, const Environment* outer) const;
  /// Counts one run of a graph within `node`; refuses the node where nested loops have run too many.
  void count_body(const Node& node) const;

  const CheckedModel& program() const { return program_; }
  const Limits& limits() const { return limits_; }
  void note(const Node& node, const std::string& what) const {
    if (note_) note_(node, what);
  }

 private:
  /// Returns the layer to which a node's operations belong in traces, profiles and errors of compiled programs:
  /// "model.onnx/node", or "encoder/node" where the model is part of another one.
  Scope scope_of(const Node& node) const;
  Values run_function(const Node& node, const Values& inputs, const Environment& at) const;
  void run_nodes(Environment& at) const;
  Values run_node(const Node& node, const Values& inputs, const Environment& at) const;
  Values results_of(const Environment& at) const;

  const CheckedModel& program_;
  std::function<Tensor(std::size_t)> parameter_;
  Limits limits_;
  Note note_;
  Scope model_{};  ///< the layer in which the model runs
  mutable std::int64_t bodies_ = 0;
};

/// Returns an attribute of a node in the environment `at`, or null; one that refers to an attribute of the surrounding
/// function is followed to the call that gives it.
const Attribute* find_attribute(const Node& node, std::string_view name, const Environment& at,
                                const Environment** where = nullptr, std::size_t* index = nullptr);

}  // namespace ferrite::onnx::detail
