/// Passes over scans in a program: unused results, single steps, and merging of scans that overlap.
#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite::passes {
namespace {

using detail::ScanBody;
using detail::ScanSignature;

bool is_scan(const Graph::Node& n) { return n.op == &detail::scan_primitive(); }

detail::ScanAttrs constants_of(const Graph::Node& n) { return n.attrs.as<detail::ScanAttrs>(n.op->name); }

/// Rewrites the scans of a graph, node by node.
class Scans {
 public:
  explicit Scans(Graph& g) : g_(g), view_(g), to_(g.values.size()) {}

  void run() {
    if (std::none_of(g_.nodes.begin(), g_.nodes.end(), is_scan)) return;
    share(g_.nodes);
    detail::rewrite_nodes(g_, to_, [&](Graph::Node& n) {
      if (!n.op) return;  // another one computes it
      if (is_scan(n) && stands_for_itself(n)) return inline_step(n);
      if (is_scan(n)) drop_unused(n);
      g_.nodes.push_back(std::move(n));
    });
  }

 private:
  bool is_read(ValueId v) const { return view_.uses(v) > 0 || std::ranges::count(also_read_, v) > 0; }

  // ---- the same scan twice -------------------------------------------------------------------------------

  /// Where one scan only gives more than another, that one is enough: the steps of a program and those that its
  /// gradient asks for.
  void share(std::vector<Graph::Node>& nodes) {
    for (Graph::Node& a : nodes) {
      if (!a.op || !is_scan(a)) continue;
      for (Graph::Node& b : nodes) {
        if (!b.op || !is_scan(b) || &a == &b || !gives_more(b, a)) continue;
        for (std::size_t k = 0; k < a.out.size(); ++k) to_.replace(a.out[k], b.out[k]);
        for (std::size_t k = 0; k < a.out.size(); ++k)
          if (is_read(a.out[k])) also_read_.push_back(b.out[k]);
        if (&a < &b) {  // where the first of the two stands
          a = std::move(b);
          b = {};
        } else {
          a = {};
        }
        break;
      }
    }
  }
  static bool gives_more(const Graph::Node& b, const Graph::Node& a) {
    const detail::ScanAttrs of_a = constants_of(a), of_b = constants_of(b);
    return of_a.steps != 1 && std::ranges::equal(a.in, b.in) &&
           ScanBody::of(b.attrs).base().get() == a.attrs.body.get() && of_a.steps == of_b.steps &&
           of_a.reverse == of_b.reverse;
  }

  // ---- a single step -------------------------------------------------------------------------------------

  /// Sums over steps have an order of their own (docs/numerics.md, rule 6), which no other operation has.
  static bool stands_for_itself(const Graph::Node& n) {
    return constants_of(n).steps == 1 && ScanBody::of(n.attrs).signature().sums == 0;
  }

  ValueId reshaped(ValueId v, const Shape& shape, Scope scope) {
    return g_.add_node(*detail::ops::reshape, detail::ShapeAttrs{shape}, {v}, {shape, Dtype(g_.values[v].dtype)},
                       scope);
  }

  void inline_step(const Graph::Node& n) {
    const ScanBody& body = ScanBody::of(n.attrs);
    const ScanSignature& s = body.signature();
    std::vector<ValueId> in(n.in.begin(), n.in.end());
    for (std::size_t i = s.carries; i < s.carries + s.xs; ++i) in[i] = reshaped(in[i], body.input(i).shape, n.scope);
    const std::vector<ValueId> out = detail::splice(g_, body.graph(), in, n.scope);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const bool y = k >= s.carries + s.sums;
      to_.replace(n.out[k], y ? reshaped(out[k], g_.values[n.out[k]].shape, n.scope) : out[k]);
    }
  }

  // ---- what nobody reads ---------------------------------------------------------------------------------

  /// Marks the inputs of a body that the outputs marked depend on; a carry that is read must also be computed.
  static std::vector<char> find_live(const ScanBody& body, std::vector<char>& outputs) {
    const Graph& b = body.graph();
    std::vector<char> live(b.values.size());
    for (bool more = true; more;) {
      more = false;
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (outputs[k]) live[b.outputs[k]] = true;
      detail::mark_needed(b, live);
      for (std::size_t k = 0; k < body.signature().carries; ++k) {
        if (outputs[k] || !live[b.inputs[k]]) continue;
        outputs[k] = true;
        more = true;
      }
    }
    std::vector<char> inputs;
    for (const ValueId v : b.inputs) inputs.push_back(live[v]);
    for (std::size_t k = 0; k < body.signature().carries; ++k) inputs[k] = outputs[k];
    return inputs;
  }

  void drop_unused(Graph::Node& n) {
    const ScanBody& body = ScanBody::of(n.attrs);
    const ScanSignature& s = body.signature();
    std::vector<char> outputs;
    for (const ValueId v : n.out) outputs.push_back(is_read(v));
    const bool read = std::any_of(outputs.begin(), outputs.end(), [](char c) { return c != 0; });
    if (!read && !detail::effects_of(body.graph()).must_run()) return;  // dead code
    if (!read) outputs[0] = true;                                       // a node has a result
    const std::vector<char> inputs = find_live(body, outputs);
    const auto all = [](const std::vector<char>& list) {
      return std::all_of(list.begin(), list.end(), [](char c) { return c != 0; });
    };
    if (all(inputs) && all(outputs)) return;
    Graph b = body.graph();
    ScanSignature kept;
    for (std::size_t k = 0; k < s.carries; ++k) kept.carries += outputs[k] != 0;
    for (std::size_t i = s.carries; i < s.carries + s.xs; ++i) kept.xs += inputs[i] != 0;
    for (std::size_t k = s.carries; k < s.carries + s.sums; ++k) kept.sums += outputs[k] != 0;
    keep(b.outputs, outputs);
    remove_dead_code(b);
    keep(b.inputs, inputs);
    keep(n.in, inputs);
    keep(n.out, outputs);
    const detail::ScanAttrs constants = constants_of(n);
    n.attrs =
        ScanBody::attrs_of(std::make_shared<const ScanBody>(std::move(b), kept), constants.steps, constants.reverse);
  }
  template <class List>
  static void keep(List& list, const std::vector<char>& kept) {
    const List old = list;
    list.clear();
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) list.push_back(old[i]);
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<ValueId> also_read_;  ///< results of a scan that are read as those of one that goes
  detail::Substitution to_;
};

}  // namespace

void simplify_scans(Graph& g) { Scans(g).run(); }

}  // namespace ferrite::passes
