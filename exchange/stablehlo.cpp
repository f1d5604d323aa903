/// Writes graphs as StableHLO: arguments, results, and one lowering for each node.
#include "ferrite/exchange/stablehlo.h"

#include <algorithm>

#include "ferrite/exchange/stablehlo/lowering.h"

namespace ferrite::exchange {
namespace {

using detail::HloBuilder;
using detail::HloValue;
using detail::HloValues;

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

void check_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool fits = !name.empty() && !digit(name[0]) &&
                    std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
  if (!fits)
    throw ValueError("to_stablehlo: the module's name must be letters, digits and underscores, no digit first: " +
                     in_quotes(name));
}

/// The text of one module.
class Module {
 public:
  Module(const Graph& g, const StablehloOptions& o)
      : g_(g), options_(o), values_(g.values.size()), body_("    ", o.scan == ScanExport::unrolled, o.locations) {}

  std::string text() {
    declare_arguments();
    HloValues results = detail::lower_graph(body_, g_, values_);
    for (const HloValue& r : results)
      if (r.name.empty())
        throw ExportError("to_stablehlo: a result " + r.spec.str() +
                          " has no lowering: it is what a sequence keeps for its gradient; do not return it");
    for (std::size_t i = 0; i < g_.writes.size(); ++i)
      note("result " + std::to_string(g_.outputs.size() + i) + ": variable " + variable_name(g_.writes[i]));
    return notes_ + "module @" + options_.name + " {\n  func.func public @main(" + list(arguments_, named) + ") -> (" +
           list(results, type) + ") {\n" + body_.text() + returned(results) + "  }\n}\n";
  }

 private:
  static std::string type(const HloValue& v) { return detail::hlo_type(v.spec); }
  static std::string name(const HloValue& v) { return v.name; }
  static std::string named(const HloValue& v) { return v.name + ": " + type(v); }
  static std::string list(const HloValues& values, std::string (*part)(const HloValue&)) {
    std::string s;
    for (const HloValue& v : values) s += (s.empty() ? "" : ", ") + part(v);
    return s;
  }
  static std::string returned(const HloValues& results) {
    if (results.empty()) return "    return\n";
    return "    return " + list(results, name) + " : " + list(results, type) + "\n";
  }

  std::string variable_name(const Graph::VariableValue& c) const { return in_quotes(g_.variables[c.variable].name()); }
  void note(const std::string& what) { notes_ += "// " + what + "\n"; }

  const HloValue& argument(ValueId v) {
    values_[v] = {"%arg" + std::to_string(arguments_.size()), g_.values[v]};
    arguments_.push_back(values_[v]);
    return values_[v];
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
        note(argument(r.value).name + ": variable " + variable_name(r));
      }
    }
    if (!options_.constants_as_arguments) return;
    for (std::size_t i = 0; i < g_.constants.size(); ++i)
      if (g_.constants[i].tensor.numel() > 1)
        note(argument(g_.constants[i].value).name + ": constant " + std::to_string(i));
  }

  const Graph& g_;
  const StablehloOptions& options_;
  std::vector<HloValue> values_;
  HloBuilder body_;
  HloValues arguments_;
  std::string notes_;
};

}  // namespace

std::string to_stablehlo(const Graph& graph, const StablehloOptions& options) {
  check_name(options.name);
  graph.validate();
  return Module(graph, options).text();
}

}  // namespace ferrite::exchange
