/// Composites that stand as one node, back to the operations that they are made of.
#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::passes {
namespace {

bool is_composite(const Graph::Node& n) { return n.op->is_composite(); }

/// Puts the operations of composites in their places.
class Expanding {
 public:
  explicit Expanding(Graph& g) : g_(g), to_(g.values.size()) {}

  void run() {
    std::vector<Graph::Node> nodes = std::move(g_.nodes);
    g_.nodes.clear();
    for (Graph::Node& n : nodes) {
      to_.apply(n);
      if (is_composite(n)) {
        expand(n);
      } else {
        g_.nodes.push_back(std::move(n));
      }
    }
    to_.apply_ends(g_);
  }

 private:
  void expand(const Graph::Node& n) {
    std::vector<Spec> types;
    for (const ValueId v : n.in) types.push_back(g_.values[v]);
    const Graph parts = trace([&](const Tensors& in) { return n.op->reference(OperandList(in), n.attrs); },
                              {types.data(), types.size()});
    std::vector<ValueId> here(parts.values.size());
    for (std::size_t i = 0; i < parts.inputs.size(); ++i) here[parts.inputs[i]] = n.in[i];
    for (const Graph::Constant& c : parts.constants) here[c.value] = g_.add_constant(c.tensor);
    for (Graph::Node part : parts.nodes) {
      for (ValueId& v : part.in) v = here[v];
      for (ValueId& v : part.out) v = here[v] = g_.add_value(parts.values[v]);
      part.scope = n.scope;
      g_.nodes.push_back(std::move(part));
    }
    for (std::size_t k = 0; k < n.out.size(); ++k) to_.replace(n.out[k], here[parts.outputs[k]]);
  }

  Graph& g_;
  detail::Substitution to_;
};

}  // namespace

void expand_composites(Graph& g) {
  if (std::any_of(g.nodes.begin(), g.nodes.end(), is_composite)) Expanding(g).run();
}

}  // namespace ferrite::passes
