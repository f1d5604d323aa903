/// Arguments and results of a program, and between them one lowering for each node.
#include "ferrite/exchange/stablehlo/hlo_module.h"

#include <algorithm>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

class Module {
 public:
  Module(const Graph& g, const StablehloOptions& o, bool comparable)
      : g_(g),
        options_(o),
        values_(g.values.size()),
        body_({.unrolled = o.scan == ScanExport::unrolled, .comparable = comparable}) {}

  ExportProgram program() {
    declare_arguments();
    program_.main.results = lower_graph(body_, g_, values_);
    for (const Value& r : program_.main.results)
      if (!r.exists())
        throw ExportError("to_stablehlo: a result " + r.spec.str() +
                          " has no lowering: it is what a sequence keeps for its gradient; do not return it");
    for (std::size_t i = 0; i < g_.writes.size(); ++i)
      note("result " + std::to_string(g_.outputs.size() + i) + ": variable " + variable_name(g_.writes[i]));
    program_.main.instructions = std::move(body_.instructions());
    program_.values = body_.values();
    return std::move(program_);
  }

 private:
  std::string variable_name(const Graph::VariableValue& c) const {
    return "'" + std::string(g_.variables[c.variable].name()) + "'";
  }
  void note(const std::string& what) { program_.notes.push_back(what); }

  /// Its name in the text.
  std::string argument(ValueId v) {
    values_[v] = body_.fresh(g_.values[v]);
    program_.main.arguments.push_back(values_[v]);
    return "%arg" + std::to_string(program_.main.arguments.size() - 1);
  }

  bool is_written(std::uint32_t variable) const {
    return std::any_of(g_.writes.begin(), g_.writes.end(), [&](const auto& w) { return w.variable == variable; });
  }

  void declare_arguments() {
    for (const ValueId v : g_.inputs) argument(v);
    for (const Graph::VariableValue& r : g_.reads) {
      if (options_.inline_variables && !is_written(r.variable)) {
        values_[r.value] = body_.constant(g_.variables[r.variable].peek());
      } else {
        note(argument(r.value) + ": variable " + variable_name(r));
      }
    }
    if (!options_.constants_as_arguments) return;
    for (std::size_t i = 0; i < g_.constants.size(); ++i)
      if (g_.constants[i].tensor.numel() > 1) note(argument(g_.constants[i].value) + ": constant " + std::to_string(i));
  }

  const Graph& g_;
  const StablehloOptions& options_;
  std::vector<Value> values_;
  HloBuilder body_;
  ExportProgram program_;
};

}  // namespace

ExportProgram hlo_program(const Graph& graph, const StablehloOptions& options, bool comparable) {
  graph.validate();
  return Module(graph, options, comparable).program();
}

}  // namespace ferrite::exchange::detail
