/// Common subexpressions: merges equal applications, as far as their effects allow.
#include <unordered_map>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite {
namespace detail {

Effects effects_of(const Primitive& op, std::span<const Spec> in, const Attrs& attrs) {
  Effects all;
  if (op.effects) all = op.effects(in, attrs);
  const Body* body = find_body(attrs);
  if (!body) return all;
  all |= effects_of(body->graph());
  all |= {.allocates = true};  // room for what a step leaves
  return all;
}

Effects effects_of(const Graph& g, const Graph::Node& n) {
  InlineVector<Spec, 8> in;
  for (const ValueId v : n.in) in.push_back(g.values[v]);
  return effects_of(*n.op, {in.data(), in.size()}, n.attrs);
}

Effects effects_of(const Graph& g) {
  Effects all;
  for (const Graph::Node& n : g.nodes) all |= effects_of(g, n);
  return all;
}

}  // namespace detail

namespace passes {
namespace {

std::size_t hash_of(const Graph::Node& n) {
  std::size_t h = n.attrs.hash() ^ std::hash<const void*>{}(n.op);
  for (const ValueId v : n.in) h = (h ^ v) * 1099511628211U;
  return h;
}

bool same(const Graph::Node& a, const Graph::Node& b) {
  if (a.op != b.op || a.in.size() != b.in.size()) return false;
  for (std::size_t i = 0; i < a.in.size(); ++i)
    if (a.in[i] != b.in[i]) return false;
  return a.attrs.same_bits(b.attrs);
}

}  // namespace

void merge_common_subexpressions(Graph& g) {
  detail::Substitution to(g.values.size());
  std::unordered_multimap<std::size_t, std::size_t> seen;
  seen.reserve(g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    Graph::Node& n = g.nodes[i];
    to.apply(n);
    const std::size_t h = hash_of(n);
    const auto [first, last] = seen.equal_range(h);
    auto at = first;
    while (at != last && !same(g.nodes[at->second], n)) ++at;
    if (at == last || detail::effects_of(g, n).communicates) {
      seen.emplace(h, i);
      continue;
    }
    const Graph::Node& earlier = g.nodes[at->second];
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], earlier.out[k]);
  }
  to.apply_ends(g);
}

}  // namespace passes
}  // namespace ferrite
