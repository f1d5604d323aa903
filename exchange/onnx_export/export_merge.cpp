/// Programs of one function at several extents as one: constants that differ become arithmetic on the extents.
#include <algorithm>
#include <map>

#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/exchange/onnx_export/export_builder.h"
#include "ferrite/exchange/onnx_export/export_model.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {
namespace {

using exchange::detail::ExtentNumbers;
using exchange::detail::ExtentReal;
using exchange::detail::Extents;
using exchange::detail::only_element;
using exchange::detail::same_bits;

void claim_all(const GraphParts& g, UniqueNames& names) {
  for (const PortParts& p : g.inputs) names.claim(p.name);
  for (const InitialiserParts& i : g.initialisers) names.claim(i.name);
  for (const NodeParts& n : g.nodes) {
    names.claim(n.name);
    for (const std::string& name : n.out) names.claim(name);
    for (const AttributeParts& a : n.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<GraphParts>>(&a.value)) claim_all(**inner, names);
  }
}

/// The nodes that compute from extents, in front of all others.
class Arithmetic {
 public:
  Arithmetic(const Extents& extents, const std::vector<DynamicAxis>& axes, const GraphParts& program)
      : extents_(extents), axes_(axes), program_(program), b_(claimed(names_, program)) {}

  GraphParts& parts() { return b_.parts(); }

  /// i64 [1].
  ExportValue value(const SymbolicNumber& n) {
    if (n.is_constant()) return b_.integers({n.more()});
    const std::string key = extents_.text(n);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
    ExportValue x;
    for (const SymbolicNumber::Term& t : n.terms()) {
      ExportValue term = product(t.symbols);
      if (t.factor != 1) term = b_.multiply(term, b_.integers({t.factor}));
      x = x.exists() ? b_.add(x, term) : term;
    }
    if (n.more() != 0) x = b_.add(x, b_.integers({n.more()}));
    if (n.divisor() != 1) x = b_.divide(x, b_.integers({n.divisor()}));
    return known_[key] = x;
  }

  /// An i64 constant of that name, of rank 0 or 1. `bounds`: of a slice, where a number below 0 would count from the
  /// end.
  void define(const std::string& name, const ExtentNumbers& elements, int rank, bool bounds) {
    ExportValue x = list(elements);
    if (bounds && std::ranges::any_of(elements, [](const SymbolicNumber& n) { return n.may_be_negative(); }))
      x = b_.elementwise("Max", {x, b_.integers({0})});
    if (rank == 0) x = b_.reshape(x, {});
    alias(x, name);
  }

  /// A constant that is one element everywhere.
  void define(const std::string& name, const Tensor& element, const ExtentNumbers& shape) {
    alias(b_.node("Expand", {b_.constant(element), list(shape)},
                  {Shape::filled(static_cast<int>(shape.size()), 1), element.dtype()}),
          name);
  }

  /// A float constant of rank 0 that is the number, or 1 / the number.
  void define(const std::string& name, const ExtentReal& r, Dtype dtype) {
    ExportValue x = b_.convert(b_.reshape(value(r.number), {}), Dtype::f64);
    if (r.factor != 1) x = b_.multiply(x, b_.scalar(r.factor, Dtype::f64));
    if (r.more != 0) x = b_.add(x, b_.scalar(r.more, Dtype::f64));
    if (r.inverse) x = b_.divide(b_.scalar(1.0, Dtype::f64), x);
    alias(b_.convert(x, dtype), name);
  }

 private:
  static UniqueNames& claimed(UniqueNames& names, const GraphParts& program) {
    claim_all(program, names);
    return names;
  }
  ExportValue list(const ExtentNumbers& numbers) {
    ExportValues parts;
    for (const SymbolicNumber& n : numbers) parts.push_back(value(n));
    return b_.concatenate(parts, 0);
  }
  void alias(const ExportValue& x, const std::string& name) {
    b_.parts().nodes.push_back({.op = "Identity", .name = name + ":extents", .in = {x.name}, .out = {name}});
  }
  ExportValue product(std::uint32_t set) {
    ExportValue all;
    for (std::size_t k = 0; k < extents_.names().size(); ++k)
      if (set >> k & 1) all = all.name.empty() ? extent(k) : b_.multiply(all, extent(k));
    return all;
  }
  /// i64 [1]: from the first input that has it.
  ExportValue extent(std::size_t k) {
    const std::string& name = extents_.names()[k];
    if (const auto at = known_.find(name); at != known_.end()) return at->second;
    const DynamicAxis& a = *std::ranges::find(axes_, name, &DynamicAxis::name);
    const PortParts& input = program_.inputs[a.input];
    const ExportValue shape = b_.node("Shape", {{input.name, input.spec}}, {{input.spec.shape.rank()}, Dtype::i64});
    return known_[name] = b_.node("Gather", {shape, b_.integers({a.axis})}, {{1}, Dtype::i64});
  }

  const Extents& extents_;
  const std::vector<DynamicAxis>& axes_;
  const GraphParts& program_;
  UniqueNames names_;
  GraphBuilder b_;
  std::map<std::string, ExportValue> known_;
};

using Graphs = std::vector<GraphParts*>;

class Merger {
 public:
  Merger(const Extents& extents, Arithmetic& arithmetic) : extents_(extents), arithmetic_(arithmetic) {}

  void merge(const Graphs& all) {
    merge_graphs(all);
    for (auto ports : {&GraphParts::inputs, &GraphParts::outputs}) name_extents(all, ports, true);
  }

 private:
  void merge_graphs(const Graphs& all) {
    const GraphParts& g = *all[0];
    for (const GraphParts* other : all) {
      const std::size_t common = std::min(g.nodes.size(), other->nodes.size());
      for (std::size_t i = 0; i < common; ++i) check(g.nodes[i], other->nodes[i]);
      if (g.nodes.size() != other->nodes.size() || g.initialisers.size() != other->initialisers.size())
        refuse(g.nodes.empty() ? "the program" : described(g.nodes[common ? common - 1 : 0]),
               "what follows it depends on the extent");
    }
    for (std::size_t i = 0; i < g.nodes.size(); ++i) merge_bodies(all, i);
    merge_constants(all);
  }

  [[noreturn]] static void refuse(const std::string& where, const std::string& what) {
    throw ExportError("to_onnx: an extent that should stay open is fixed: " + where + ": " + what +
                      "; write the function for any extent, or export it without this dynamic axis");
  }
  static std::string described(const NodeParts& n) { return "node '" + n.name + "' (" + n.op + ")"; }

  /// All but the graphs within.
  static void check(const NodeParts& a, const NodeParts& b) {
    if (a.op != b.op || a.in != b.in || a.out != b.out || a.attributes.size() != b.attributes.size())
      refuse(described(a), "at another extent it is " + described(b));
    for (std::size_t i = 0; i < a.attributes.size(); ++i) {
      const AttributeParts &p = a.attributes[i], &q = b.attributes[i];
      const bool graphs = std::holds_alternative<std::shared_ptr<GraphParts>>(p.value);
      if (p.name != q.name || p.value.index() != q.value.index() || (!graphs && p.value != q.value))
        refuse(described(a), "its attribute " + p.name + " depends on the extent");
    }
  }

  void merge_bodies(const Graphs& all, std::size_t node) {
    for (std::size_t k = 0; k < all[0]->nodes[node].attributes.size(); ++k) {
      Graphs inner;
      for (GraphParts* g : all)
        if (const auto* body = std::get_if<std::shared_ptr<GraphParts>>(&g->nodes[node].attributes[k].value))
          inner.push_back(body->get());
      if (inner.empty()) continue;
      merge_graphs(inner);
      for (auto ports : {&GraphParts::inputs, &GraphParts::outputs}) name_extents(inner, ports, false);
    }
  }

  void merge_constants(const Graphs& all) {
    GraphParts& g = *all[0];
    std::vector<InitialiserParts> kept;
    for (std::size_t i = 0; i < g.initialisers.size(); ++i) {
      std::vector<Tensor> values;
      for (const GraphParts* other : all) values.push_back(other->initialisers[i].tensor);
      const bool same = std::ranges::all_of(values, [&](const Tensor& t) { return same_bits(t, values[0]); });
      if (same || stays_as_reshape(g, g.initialisers[i], values)) {
        kept.push_back(g.initialisers[i]);
      } else if (g.initialisers[i].variable ||
                 !(replace_integers(g, g.initialisers[i].name, values) ||
                   replace_float(g.initialisers[i].name, values) || replace_filled(g.initialisers[i].name, values))) {
        refuse(reader_of(g, g.initialisers[i].name), "a constant that it reads depends on the extent");
      }
    }
    g.initialisers = std::move(kept);
  }

  struct Reader {
    const NodeParts* node = nullptr;
    std::size_t operand = 0;
  };
  /// The nodes that read a value, in the graphs within nodes, too.
  static std::vector<Reader> readers(const GraphParts& g, const std::string& name) {
    std::vector<Reader> all;
    for (const NodeParts& n : g.nodes) {
      for (std::size_t i = 0; i < n.in.size(); ++i)
        if (n.in[i] == name) all.push_back({&n, i});
      for (const AttributeParts& a : n.attributes)
        if (const auto* inner = std::get_if<std::shared_ptr<GraphParts>>(&a.value))
          std::ranges::copy(readers(**inner, name), std::back_inserter(all));
    }
    return all;
  }
  static std::string reader_of(const GraphParts& g, const std::string& name) {
    const std::vector<Reader> all = readers(g, name);
    return all.empty() ? "the program" : described(*all[0].node);
  }
  static bool is_shape_of_reshape(const Reader& r) { return r.node->op == "Reshape" && r.operand == 1; }
  static bool is_bound_of_slice(const Reader& r) { return r.node->op == "Slice" && (r.operand == 1 || r.operand == 2); }

  /// The elements of integers of all programs, by place; empty for other tensors.
  static std::vector<Integers> by_place(const std::vector<Tensor>& values) {
    std::vector<Integers> places;
    for (const Tensor& t : values) {
      if (t.dtype() != Dtype::i64 || t.shape() != values[0].shape() || t.rank() > 1) return {};
      const std::vector<std::int64_t> elements = t.to_vector<std::int64_t>();
      places.resize(elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) places[i].push_back(elements[i]);
    }
    return places;
  }

  /// What is the shape of Reshapes and nothing else, with one extent that depends on the others: -1.
  static bool stays_as_reshape(const GraphParts& g, InitialiserParts& i, const std::vector<Tensor>& values) {
    Integers shape;
    for (const Integers& v : by_place(values))
      shape.push_back(std::ranges::all_of(v, [&](std::int64_t n) { return n == v[0]; }) ? v[0] : -1);
    if (std::ranges::count(shape, -1) != 1) return false;
    const std::vector<Reader> all = readers(g, i.name);
    if (all.empty() || !std::ranges::all_of(all, is_shape_of_reshape)) return false;
    if (std::ranges::find(g.outputs, i.name, &PortParts::name) != g.outputs.end()) return false;
    const NewFrame frame;
    i.tensor = Tensor::from<std::int64_t>(shape, {static_cast<std::int64_t>(shape.size())});
    return true;
  }

  bool replace_integers(const GraphParts& g, const std::string& name, const std::vector<Tensor>& values) {
    ExtentNumbers elements;
    for (const Integers& v : by_place(values)) {
      const std::optional<SymbolicNumber> a = extents_.explain(v);
      if (!a) return false;
      elements.push_back(*a);
    }
    if (elements.empty()) return false;
    arithmetic_.define(name, elements, values[0].rank(), std::ranges::any_of(readers(g, name), is_bound_of_slice));
    return true;
  }

  bool replace_float(const std::string& name, const std::vector<Tensor>& values) {
    std::vector<double> numbers;
    for (const Tensor& t : values) {
      if (!is_float(t.dtype()) || t.rank() != 0) return false;
      numbers.push_back(
          visit_dtype(t.dtype(), [&](auto zero) { return static_cast<double>(t.to_vector<decltype(zero)>()[0]); }));
    }
    const std::optional<ExtentReal> r = extents_.explain(numbers, values[0].dtype());
    if (r) arithmetic_.define(name, *r, values[0].dtype());
    return r.has_value();
  }

  /// Of whatever dtype and rank: states that begin with zeros, for one.
  bool replace_filled(const std::string& name, const std::vector<Tensor>& values) {
    const Tensor element = only_element(values);
    if (!element.defined()) return false;
    std::vector<Shape> shapes;
    for (const Tensor& t : values) shapes.push_back(t.shape());
    const std::optional<ExtentNumbers> shape = extents_.explain(shapes);
    if (shape) arithmetic_.define(name, element, *shape);
    return shape.has_value();
  }

  /// Within a node extents have no names: runtimes that put numbers for the names outside do not for these.
  void name_extents(const Graphs& all, std::vector<PortParts> GraphParts::*ports, bool outside) const {
    std::vector<PortParts>& own = all[0]->*ports;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const int rank = own[i].spec.shape.rank();
      own[i].names.resize(static_cast<std::size_t>(rank));
      for (int axis = 0; axis < rank; ++axis) {
        Integers v;
        for (const GraphParts* g : all) v.push_back((g->*ports)[i].spec.shape[axis]);
        if (std::ranges::all_of(v, [&](std::int64_t n) { return n == v[0]; })) continue;
        const std::optional<SymbolicNumber> a = extents_.explain(v);
        own[i].names[static_cast<std::size_t>(axis)] = !outside ? kOpenExtent
                                                       : a      ? extents_.text(*a)
                                                                : own[i].name + "_" + std::to_string(axis);
      }
    }
  }

  const Extents& extents_;
  Arithmetic& arithmetic_;
};

}  // namespace

GraphParts merged(std::vector<GraphParts> programs, const Extents& extents, const std::vector<DynamicAxis>& axes) {
  Arithmetic arithmetic(extents, axes, programs[0]);
  Graphs graphs;
  for (GraphParts& g : programs) graphs.push_back(&g);
  Merger(extents, arithmetic).merge(graphs);
  GraphParts& g = programs[0];
  GraphParts& first = arithmetic.parts();
  first.nodes.insert(first.nodes.end(), std::make_move_iterator(g.nodes.begin()),
                     std::make_move_iterator(g.nodes.end()));
  g.nodes = std::move(first.nodes);
  g.initialisers.insert(g.initialisers.end(), first.initialisers.begin(), first.initialisers.end());
  return std::move(g);
}

}  // namespace ferrite::onnx::detail
