/// Replaces composites that are single nodes by the operations that define them.
#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::passes {
namespace {

bool is_composite(const Graph::Node& n) { return n.op->is_composite(); }

/// One level: composites are made of composites.
void expand_once(Graph& g) {
  detail::Substitution to(g.values.size());
  detail::rewrite_nodes(g, to, [&](Graph::Node& n) {
    if (!is_composite(n)) return g.nodes.push_back(std::move(n));
    std::vector<Spec> types;
    for (const ValueId v : n.in) types.push_back(g.values[v]);
    const Graph parts = trace([&](const Tensors& in) { return n.op->reference(OperandList(in), n.attrs); }, types);
    const std::vector<ValueId> out = detail::splice(g, parts, {n.in.data(), n.in.size()}, n.scope);
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], out[k]);
  });
}

}  // namespace

void expand_composites(Graph& g) {
  while (std::any_of(g.nodes.begin(), g.nodes.end(), is_composite)) expand_once(g);
}

}  // namespace ferrite::passes
