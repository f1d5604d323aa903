/// Types and graphs whose extents and constants depend on symbols.
#include "ferrite/compile/symbols.h"

#include <algorithm>
#include <cmath>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"

namespace ferrite {

using detail::checked_add;

// ---- types ---------------------------------------------------------------------------------------------

Spec SymbolicSpec::at(std::span<const std::int64_t> sizes) const {
  Spec spec{{}, dtype};
  for (const SymbolicNumber& n : shape) spec.shape.push_back(n.at(sizes));
  return spec;
}

std::string SymbolicSpec::str(std::span<const std::string> symbols) const {
  return std::string(name_of(dtype)) + shape_str(symbols);
}

std::string SymbolicSpec::shape_str(std::span<const std::string> symbols) const {
  std::string text = "[";
  for (const SymbolicNumber& n : shape) text += (text.size() > 1 ? ", " : "") + n.str(symbols);
  return text + "]";
}

// ---- trials --------------------------------------------------------------------------------------------

SymbolicTrial::SymbolicTrial(std::vector<std::string> symbols, const std::vector<std::int64_t>& sizes)
    : symbols_(std::move(symbols)) {
  const std::size_t n = symbols_.size();
  if (n == 0 || n > kMaxSymbols || sizes.size() != n)
    throw ValueError("symbols: " + std::to_string(n) + " symbols with " + std::to_string(sizes.size()) +
                     " sizes; needs a size for each, and 1 to " + std::to_string(kMaxSymbols) + " symbols");
  for (const std::int64_t size : sizes)
    if (size < 1) throw ValueError("symbols: a size must be positive, got " + std::to_string(size));
  for (std::size_t set = 0; set < std::size_t{1} << n; ++set) {
    sizes_.push_back(sizes);
    for (std::size_t k = 0; k < n; ++k)
      if (set >> k & 1) sizes_.back()[k] = checked_add(sizes[k], 1, "symbols");
  }
  sizes_.push_back(sizes);
  for (std::size_t k = 0; k < n; ++k)
    sizes_.back()[k] = checked_add(sizes[k], 3 + 2 * static_cast<std::int64_t>(k), "symbols");
}

std::optional<SymbolicNumber> SymbolicTrial::number(std::span<const std::int64_t> values) const {
  return SymbolicNumber::with_values(sizes_, values);
}

std::optional<SymbolicSpec> SymbolicTrial::spec(std::span<const Spec> specs) const {
  SymbolicSpec found;
  found.dtype = specs[0].dtype;
  for (const Spec& s : specs)
    if (s.dtype != found.dtype || s.shape.rank() != specs[0].shape.rank()) return {};
  for (int axis = 0; axis < specs[0].shape.rank(); ++axis) {
    std::vector<std::int64_t> values;
    for (const Spec& s : specs) values.push_back(s.shape[axis]);
    const std::optional<SymbolicNumber> n = number(values);
    if (!n) return {};
    found.shape.push_back(*n);
  }
  return found;
}

// ---- graphs --------------------------------------------------------------------------------------------

namespace {

std::string place_of(const Graph::Node& node, const std::string& where) {
  const std::string path(node.scope.path());
  return (path.empty() ? where : "in " + path + ": ") + std::string(node.op->name);
}

/// The whole numbers of a constant: none for what is none.
std::optional<std::vector<std::int64_t>> whole_numbers(const AttrValue& v) {
  const auto whole = [](double x) -> std::optional<std::vector<std::int64_t>> {
    constexpr double kExact = 9007199254740992;  // 2^53
    if (!(std::abs(x) <= kExact) || std::trunc(x) != x) return {};
    return std::vector{static_cast<std::int64_t>(x)};
  };
  if (const auto* i = std::get_if<std::int64_t>(&v)) return std::vector{*i};
  if (const auto* x = std::get_if<double>(&v)) return whole(*x);
  if (const auto* s = std::get_if<Scalar>(&v)) return s->is_floating() ? whole(s->real()) : std::vector{s->integer()};
  if (const auto* list = std::get_if<Shape>(&v)) return std::vector(list->begin(), list->end());
  return {};
}

/// The same constant with another whole number.
void put_number(AttrValue& v, int element, std::int64_t n) {
  if (auto* i = std::get_if<std::int64_t>(&v)) *i = n;
  if (auto* x = std::get_if<double>(&v)) *x = static_cast<double>(n);
  if (auto* s = std::get_if<Scalar>(&v)) *s = s->is_floating() ? Scalar(static_cast<double>(n)) : Scalar(n);
  if (auto* list = std::get_if<Shape>(&v)) (*list)[element] = n;
}

/// Whether two programs have as many of everything, and the same inputs, outputs and variables.
bool same_form(const Graph& a, const Graph& b) {
  if (a.values.size() != b.values.size() || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.nodes.size() != b.nodes.size() || a.variables.size() != b.variables.size() ||
      a.reads.size() != b.reads.size() || a.writes.size() != b.writes.size() ||
      a.constants.size() != b.constants.size())
    return false;
  const auto same_variables = [](const Graph::VariableValue& x, const Graph::VariableValue& y) {
    return x.variable == y.variable && x.value == y.value;
  };
  return std::ranges::equal(a.variables, b.variables) && std::ranges::equal(a.reads, b.reads, same_variables) &&
         std::ranges::equal(a.writes, b.writes, same_variables);
}

void check_form(const Graph& first, const Graph& other, const std::string& where) {
  if (!same_form(first, other))
    throw TraceError(where + "the program has another form at other sizes: " + std::to_string(first.nodes.size()) +
                     " and " + std::to_string(other.nodes.size()) +
                     " operations; steps in a C++ loop need nn::Form::scan or fused");
  for (std::size_t i = 0; i < first.constants.size(); ++i)
    if (first.constants[i].value != other.constants[i].value ||
        !detail::same_constant(first.constants[i].tensor, other.constants[i].tensor))
      throw TraceError(where + "the constant %" + std::to_string(first.constants[i].value) + " " +
                       first.constants[i].tensor.spec().str() + " is another tensor at other sizes");
}

void check_node(const Graph::Node& first, const Graph::Node& other, const std::string& place) {
  if (first.op != other.op || !std::ranges::equal(first.in, other.in) || !std::ranges::equal(first.out, other.out) ||
      (first.attrs.body == nullptr) != (other.attrs.body == nullptr))
    throw TraceError(place + " is " + std::string(other.op->name) + " or has other operands at other sizes");
}

}  // namespace

std::vector<SymbolicGraph::Number> SymbolicGraph::numbers_of(const SymbolicTrial& trial,
                                                             std::span<const Graph* const> graphs, std::size_t node,
                                                             std::size_t field, const std::string& place) {
  const auto value = [&](const Graph* g) { return g->nodes[node].attrs.at(field); };
  const AttrValue* const first = value(graphs[0]);
  const auto differs = [&](const Graph* g) {
    return (first == nullptr) != (value(g) == nullptr) || (first && !Attrs::same_bits(*first, *value(g)));
  };
  if (std::none_of(graphs.begin(), graphs.end(), differs)) return {};
  std::vector<std::vector<std::int64_t>> lists;  // by trial
  for (const Graph* g : graphs) {
    const auto list = value(g) ? whole_numbers(*value(g)) : std::nullopt;
    if (list && (lists.empty() || lists[0].size() == list->size())) lists.push_back(*list);
  }
  bool found = lists.size() == graphs.size();
  std::vector<Number> numbers;
  for (std::size_t e = 0; found && e < lists[0].size(); ++e) {
    std::vector<std::int64_t> values;
    for (const auto& list : lists) values.push_back(list[e]);
    const std::optional<SymbolicNumber> n = trial.number(values);
    found = n.has_value();
    if (n && !n->constant()) numbers.push_back({node, field, static_cast<int>(e), *n});
  }
  if (!found)
    throw TraceError(place + " has a constant that is no sum of products of symbols: " +
                     graphs.front()->nodes[node].attrs.str() + "; " + graphs.back()->nodes[node].attrs.str());
  return numbers;
}

SymbolicSpec SymbolicGraph::spec_of(const SymbolicTrial& trial, std::span<const Graph* const> graphs, std::size_t value,
                                    const std::string& where) {
  std::vector<Spec> specs;
  for (const Graph* g : graphs) specs.push_back(g->values[value]);
  if (const std::optional<SymbolicSpec> spec = trial.spec(specs)) return *spec;
  std::string types;
  for (const Spec& s : specs) types += (types.empty() ? "" : ", ") + s.str();
  throw TraceError(where + "the type of %" + std::to_string(value) + " is no sum of products of symbols: " + types);
}

SymbolicGraph::Table SymbolicGraph::compare(const SymbolicTrial& trial, std::span<const Graph* const> graphs,
                                            const std::string& where) {
  const Graph& first = *graphs[0];
  for (const Graph* g : graphs) check_form(first, *g, where);
  Table table;
  for (std::size_t v = 0; v < first.values.size(); ++v) table.values.push_back(spec_of(trial, graphs, v, where));
  for (std::size_t i = 0; i < first.nodes.size(); ++i) {
    const Graph::Node& node = first.nodes[i];
    const std::string place = place_of(node, where);
    for (const Graph* g : graphs) check_node(node, g->nodes[i], place);
    for (std::size_t field = 0; field < Attrs::kMaxFields; ++field) {
      const std::vector<Number> numbers = numbers_of(trial, graphs, i, field, place);
      table.numbers.insert(table.numbers.end(), numbers.begin(), numbers.end());
    }
    if (!detail::find_body(node.attrs)) continue;
    std::vector<const Graph*> bodies;
    for (const Graph* g : graphs) bodies.push_back(&detail::Body::of(g->nodes[i].attrs).graph());
    const bool same =
        std::all_of(bodies.begin(), bodies.end(), [&](const Graph* g) { return detail::same_graph(*bodies[0], *g); });
    if (same) continue;
    if (detail::find_scan(node.op->name) != node.op)
      throw TraceError(place + ": what it runs depends on the symbols; call it as it is, not compiled");
    table.scans.push_back(i);
    table.bodies.push_back(compare(trial, bodies, place + ": "));
  }
  return table;
}

Graph SymbolicGraph::put(const Graph& graph, const Table& table, std::span<const std::int64_t> sizes) {
  Graph g = graph;
  for (std::size_t v = 0; v < g.values.size(); ++v) g.values[v] = table.values[v].at(sizes);
  for (const Number& n : table.numbers) {
    AttrValue value = *g.nodes[n.node].attrs.at(n.field);
    put_number(value, n.element, n.value.at(sizes));
    g.nodes[n.node].attrs.replace(n.field, value);
  }
  for (std::size_t k = 0; k < table.scans.size(); ++k) {
    Attrs& attrs = g.nodes[table.scans[k]].attrs;
    detail::ScanBody::give(attrs, put(detail::Body::of(attrs).graph(), table.bodies[k], sizes));
  }
  return g;
}

Graph SymbolicGraph::at(const std::vector<std::int64_t>& sizes) const {
  if (sizes.size() != symbols_.size())
    throw ValueError("symbols: the program has " + std::to_string(symbols_.size()) + ", got " +
                     std::to_string(sizes.size()) + " sizes");
  for (const std::int64_t size : sizes)
    if (size < 1) throw ValueError("symbols: a size must be positive, got " + std::to_string(size));
  Graph g = put(graph_, table_, sizes);
  g.validate();
  return g;
}

SymbolicGraph trace_symbolic(const std::function<Tensors(const Tensors&)>& f, std::vector<std::string> symbols,
                             const std::vector<SymbolicSpec>& inputs, const std::vector<std::int64_t>& sizes) {
  const SymbolicTrial trial(std::move(symbols), sizes);
  std::vector<Graph> graphs;
  for (const auto& at : trial.sizes()) {
    std::vector<Spec> specs;
    for (const SymbolicSpec& s : inputs) specs.push_back(s.at(at));
    graphs.push_back(trace(f, specs));
  }
  std::vector<const Graph*> all;
  for (const Graph& g : graphs) all.push_back(&g);
  SymbolicGraph result;
  result.table_ = SymbolicGraph::compare(trial, all, "");
  result.symbols_ = trial.symbols();
  result.graph_ = std::move(graphs[0]);
  return result;
}

}  // namespace ferrite
