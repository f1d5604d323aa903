/// Inputs, variables and outputs of a model around the nodes of its program.
#include "ferrite/exchange/onnx_export/export_model.h"

#include <algorithm>
#include <map>

#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

/// Gives values other names, in nodes and in the graphs within them.
void rename(GraphParts& g, const std::map<std::string, std::string>& names) {
  const auto change = [&](std::string& name) {
    if (const auto at = names.find(name); at != names.end()) name = at->second;
  };
  for (NodeParts& n : g.nodes) {
    std::ranges::for_each(n.in, change);
    std::ranges::for_each(n.out, change);
    for (AttributeParts& a : n.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<GraphParts>>(&a.value)) rename(**inner, names);
  }
  for (PortParts& p : g.outputs) change(p.name);
}

class Model {
 public:
  Model(const Graph& g, const ExportOptions& o) : g_(g), options_(o), values_(g.values.size()), body_(names_) {}

  GraphParts parts() {
    body_.parts().name = options_.name;
    claim_outputs();
    declare_inputs();
    declare_variables();
    const ExportValues results = lower_graph(body_, g_, values_);
    for (std::size_t i = 0; i < results.size(); ++i) give(results[i], wanted_[i]);
    rename(body_.parts(), given_);
    return std::move(body_.parts());
  }

 private:
  static std::string name_at(const std::vector<std::string>& names, std::size_t i, const char* otherwise) {
    return i < names.size() ? names[i] : otherwise + std::to_string(i);
  }
  std::string variable_name(std::uint32_t variable) {
    std::string& name = variables_[variable];
    if (name.empty()) {
      const std::string own = g_.variables[variable].name();
      name = names_.claim(own.empty() ? "variable" : own);
    }
    return name;
  }
  bool is_written(std::uint32_t variable) const {
    return std::any_of(g_.writes.begin(), g_.writes.end(), [&](const auto& w) { return w.variable == variable; });
  }
  /// A name that a caller chose is kept, or it is an error.
  std::string chosen(const std::string& name) {
    if (name.empty() || names_.claim(name) != name)
      throw ValueError("to_onnx: names of inputs and outputs must differ and not be empty: '" + name + "'");
    return name;
  }

  void claim_outputs() {
    check_count("inputs", options_.inputs.size(), g_.inputs.size());
    check_count("outputs", options_.outputs.size(), g_.outputs.size());
    for (std::size_t i = 0; i < g_.outputs.size(); ++i)
      wanted_.push_back(chosen(name_at(options_.outputs, i, "output")));
  }
  static void check_count(const char* what, std::size_t names, std::size_t count) {
    if (names > count)
      throw ValueError("to_onnx: there are more names of " + std::string(what) + " than " + what + ": " +
                       std::to_string(names) + " and " + std::to_string(count));
  }

  void declare(ValueId v, const std::string& name) {
    body_.parts().inputs.push_back({name, g_.values[v]});
    values_[v] = {name, g_.values[v]};
  }
  void declare_inputs() {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i)
      declare(g_.inputs[i], chosen(name_at(options_.inputs, i, "input")));
  }
  void declare_variables() {
    for (const Graph::VariableValue& r : g_.reads) {
      const std::string name = variable_name(r.variable);
      if (is_written(r.variable) ? options_.states_as_inputs : options_.variables_as_inputs) {
        declare(r.value, name);
      } else {
        body_.parts().initialisers.push_back({name, g_.variables[r.variable].peek(), true});
        values_[r.value] = {name, g_.values[r.value]};
      }
    }
    for (const Graph::VariableValue& w : g_.writes)
      wanted_.push_back(names_.claim(variable_name(w.variable) + ".next"));
  }

  /// A result under its name: that of the node that makes it where it has none yet.
  void give(const ExportValue& value, const std::string& name) {
    if (!value.exists())
      throw ExportError("to_onnx: a result " + value.spec.str() +
                        " has no lowering: it is what a sequence keeps for its gradient; do not return it");
    if (body_.makes(value) && given_.try_emplace(value.name, name).second) {
      body_.parts().outputs.push_back({value.name, value.spec});
      return;
    }
    const ExportValue copy = body_.node("Identity", {value}, value.spec);
    given_.emplace(copy.name, name);
    body_.parts().outputs.push_back({copy.name, value.spec});
  }

  const Graph& g_;
  const ExportOptions& options_;
  ExportValues values_;
  UniqueNames names_;
  GraphBuilder body_;
  std::map<std::uint32_t, std::string> variables_;
  std::vector<std::string> wanted_;           ///< names of the outputs, then of what is written
  std::map<std::string, std::string> given_;  ///< by name of the value that a node makes
};

}  // namespace

GraphParts parts_of(const Graph& graph, const ExportOptions& options) {
  if (options.name.empty()) throw ValueError("to_onnx: the graph's name must not be empty");
  graph.validate();
  return Model(graph, options).parts();
}

}  // namespace ferrite::onnx::detail
