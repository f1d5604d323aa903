/// Rewrites programs in another floating-point type, node by node, bodies of scans included.
#include "ferrite/exchange/freeze/of_dtype.h"

#include <algorithm>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using namespace ferrite::detail;

/// Returns a program of operations of `dtype` in place of f32.
class Conversion {
 public:
  explicit Conversion(Dtype dtype) : dtype_(dtype) {}

  Graph run(const Graph& g) const {
    std::vector<Spec> specs;
    for (const ValueId v : g.inputs) specs.push_back(of(g.values[v]));
    const std::vector<Tensor> constants = converted(g);
    return trace([&](const Tensors& in) { return replayed(g, in, constants); }, specs);
  }

 private:
  Spec of(Spec s) const {
    if (s.dtype == Dtype::f32) s.dtype = dtype_;
    return s;
  }

  std::vector<Tensor> converted(const Graph& g) const {
    const NewFrame frame;
    std::vector<Tensor> list;
    for (const Graph::Constant& c : g.constants)
      list.push_back(c.tensor.dtype() == Dtype::f32 ? ferrite::cast(c.tensor, dtype_) : c.tensor);
    return list;
  }

  Attrs converted(const Graph::Node& n) const {
    Attrs attrs = n.attrs;
    for (std::size_t i = 0; i < n.op->attributes->size(); ++i)
      if (const AttrValue* v = attrs.at(i); v && std::get_if<Dtype>(v) && std::get<Dtype>(*v) == Dtype::f32)
        attrs.replace(i, AttrValue(dtype_));
    if (find_body(attrs)) {
      Graph body = run(Body::of(attrs).graph());
      ScanBody::give(attrs, std::move(body));
    }
    return attrs;
  }

  Tensors replayed(const Graph& g, const Tensors& in, const std::vector<Tensor>& constants) const {
    std::vector<Tensor> values(g.values.size());
    for (std::size_t i = 0; i < g.inputs.size(); ++i) values[g.inputs[i]] = in[i];
    for (std::size_t i = 0; i < g.constants.size(); ++i) values[g.constants[i].value] = constants[i];
    Scoped scope(frame().scope);
    for (const Graph::Node& n : g.nodes) {
      InlineVector<const Tensor*, 8> list;
      for (const ValueId v : n.in) list.push_back(&values[v]);
      const Inputs operands{list.data(), list.size()};
      scope.enter(n.scope.or_else(scope.before()));
      const Attrs attrs = converted(n);
      const Tensors out = in_layer(n.scope, [&] {
        const bool defined = n.op->reference && !n.op->is_pointwise();
        return defined ? n.op->reference(operands, attrs) : n.op->apply(operands, attrs);
      });
      for (std::size_t i = 0; i < out.size() && i < n.out.size(); ++i) values[n.out[i]] = out[i];
    }
    Tensors results;
    for (const ValueId v : g.outputs) results.push_back(values[v]);
    return results;
  }

  Dtype dtype_;
};

/// Returns whether a node of the graph, or of a body in it, must be replaced by its definition.
bool has_definitions(const Graph& g) {
  return std::ranges::any_of(g.nodes, [](const Graph::Node& n) {
    if (const Body* body = find_body(n.attrs); body && has_definitions(body->graph())) return true;
    return n.op->reference && !n.op->is_pointwise();
  });
}

}  // namespace

Graph with_constants(Graph graph, const std::string& who) {
  if (!graph.writes.empty())
    throw ValueError(who + ": the function assigns the variable '" + graph.variables[graph.writes[0].variable].name() +
                     "'; return its new value instead");
  if (effects_of(graph).draws)
    throw ValueError(who + ": the function draws random numbers; switch modules to evaluation (eval)");
  for (const Graph::VariableValue& r : graph.reads)
    graph.constants.push_back({r.value, ferrite::contiguous(graph.variables[r.variable].peek())});
  graph.reads.clear();
  graph.variables.clear();
  return graph;
}

Graph of_dtype(const Graph& graph, Dtype dtype) {
  Graph g = Conversion(dtype).run(graph);
  // A definition may use composites and other operations that have one.
  for (int depth = 0; depth < 8 && has_definitions(g); ++depth) g = Conversion(dtype).run(g);
  passes::expand_composites(g);
  passes::simplify(g);
  return g;
}

}  // namespace ferrite::exchange::detail
