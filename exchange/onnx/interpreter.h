#pragma once
/// Runs the graphs of a model in operations of Ferrite.
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
  Values values{};                      ///< by slot
  const Environment* outer = nullptr;   ///< of the surrounding graph
  const Function* function = nullptr;   ///< whose body this is
  const Node* node = nullptr;           ///< that calls the function
  const Environment* caller = nullptr;  ///< where that node stands
};

/// One run of a model: its nodes in their order, each lowered to Ferrite's operations. What depends on constants and
/// shapes alone is computed apart, so that it is known while a program is traced; with open extents by the program,
/// too.
class Interpreter {
 public:
  struct Limits {
    std::int64_t most_trips = 1024;
    std::int64_t most_elements = std::int64_t{1} << 32;
  };
  using Note = std::function<void(const Node& node, const std::string& what)>;

  /// `parameter` gives the value of a parameter by its number; `note` hears what nodes became.
  Interpreter(const CheckedModel& program, std::function<Tensor(std::size_t)> parameter, Limits limits, Note note)
      : program_(program),
        parameter_(std::move(parameter)),
        limits_(limits),
        note_(std::move(note)),
        model_(ferrite::detail::frame().scope) {}

  Values run(const Values& inputs) const { return run_graph(program_.graphs().main, inputs, nullptr); }
  Values run_graph(const Graph& graph, const Values& inputs, const Environment* outer) const;
  /// Counts one run of a graph within `node`; refuses it where loops within loops have made too many.
  void count_body(const Node& node) const;

  const CheckedModel& program() const { return program_; }
  const Limits& limits() const { return limits_; }
  void note(const Node& node, const std::string& what) const {
    if (note_) note_(node, what);
  }

 private:
  /// What is traced or profiled of a node belongs to the layer "model.onnx/node", "encoder/node" where the model is
  /// part of another one: errors of compiled programs name it.
  Scope scope_of(const Node& node) const;
  Values run_function(const Node& node, const Values& inputs, const Environment& at) const;
  void run_nodes(Environment& at) const;
  Values run_node(const Node& node, const Values& inputs, const Environment& at) const;
  Values results_of(const Environment& at) const;

  const CheckedModel& program_;
  std::function<Tensor(std::size_t)> parameter_;
  Limits limits_;
  Note note_;
  Scope model_{};  ///< the layer in which it runs
  mutable std::int64_t bodies_ = 0;
};

/// The attribute of a node that is meant by this name there, through the functions that pass it on; null: absent.
const Attribute* find_attribute(const Node& node, std::string_view name, const Environment& at,
                                const Environment** where = nullptr, std::size_t* index = nullptr);

}  // namespace ferrite::onnx::detail
