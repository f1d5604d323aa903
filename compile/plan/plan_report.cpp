/// What a plan does, in numbers and words.
#include <algorithm>

#include "ferrite/compile/fuse/products.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/plan/body.h"

namespace ferrite::detail {
namespace {

/// Says what a plan does.
class Reporter {
 public:
  Reporter(const Graph& g, const Fused& fused) : g_(g), fused_(fused) {}

  PlanReport run(const PlanEnds& ends) {
    PlanReport& r = report_;
    r.operations = g_.nodes.size();
    r.refusals = fused_.refusals;
    for (const Task& t : fused_.tasks) r.steps.push_back(t.group >= 0 ? describe_group(t) : describe_call(t));
    for (const PlanReport::Step& s : r.steps) r.bytes_moved += s.bytes;
    for (const ValueId v : ends.results) r.result_bytes += bytes_of(v);
    for (const Tensor& c : ends.constants) r.constant_bytes += (c.contiguous() ? c.numel() : 1) * size_of(c.dtype());
    return std::move(report_);
  }

 private:
  std::int64_t bytes_of(ValueId v) const { return g_.values[v].shape.numel() * size_of(g_.values[v].dtype); }

  PlanReport::Step describe_group(const Task& t) {
    const Group& group = fused_.groups[static_cast<std::size_t>(t.group)];
    PlanReport::Step s;
    s.kernel = true;
    ++report_.kernels;
    std::vector<std::pair<std::size_t, std::string_view>> names;
    std::vector<std::pair<std::size_t, Scope>> scopes;
    std::vector<ValueId> read;
    const std::vector<char> live = live_expressions(group);
    for (std::size_t i = 0; i < group.expressions.size(); ++i) {
      if (!live[i]) continue;
      const Expression& e = group.expressions[i];
      names.emplace_back(e.order, e.node ? e.node->op->name : "copy");
      if (e.node) scopes.emplace_back(e.order, e.node->scope);
      s.operations += e.node ? 1 : 0;
      for (const GroupOperand& o : e.operands)
        if (o.value != kNoValue && o.expression < 0) read.push_back(o.value);
    }
    for (const std::size_t node : t.products) name_layer(s, g_.nodes[node].scope);
    std::sort(scopes.begin(), scopes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [order, scope] : scopes) name_layer(s, scope);
    std::sort(names.begin(), names.end());
    for (const auto& [order, name] : names) s.what += (s.what.empty() ? "" : " ") + std::string(name);
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const ValueId v : read) s.bytes += bytes_of(v);
    for (const std::size_t node : t.products) add_product(s, node);
    for (const GroupOutput& o : group.outputs) {
      const Expression& e = group.expressions[static_cast<std::size_t>(o.expression)];
      s.bytes += e.map.shape.numel() * size_of(e.dtype);
    }
    return s;
  }

  static void name_layer(PlanReport::Step& s, Scope scope) {
    if (!scope.empty() && std::find(s.layers.begin(), s.layers.end(), scope) == s.layers.end())
      s.layers.push_back(scope);
  }

  /// A product that runs with a kernel: its result never leaves the caches.
  void add_product(PlanReport::Step& s, std::size_t node) {
    const Graph::Node& n = g_.nodes[node];
    s.what = std::string(n.op->name) + " " + s.what;
    s.operations += 1;
    ++report_.products;
    ++report_.epilogues;
    for (const ValueId v : n.in) s.bytes += bytes_of(v);
    s.bytes -= bytes_of(n.out[0]);
  }

  PlanReport::Step describe_call(const Task& t) {
    const Graph::Node& n = g_.nodes[t.position];
    PlanReport::Step s;
    s.what = n.op->name;
    s.operations = 1;
    name_layer(s, n.scope);
    ++(is_product(*n.op) ? report_.products : report_.others);
    for (const ValueId v : n.in) s.bytes += bytes_of(v);
    for (const ValueId v : n.out) s.bytes += bytes_of(v);
    return s;
  }

  const Graph& g_;
  const Fused& fused_;
  PlanReport report_;
};

}  // namespace

const std::vector<StepNames::Name>& StepNames::of(const PlanReport& report) const {
  std::call_once(made_, [&] {
    for (const PlanReport::Step& s : report.steps) {
      std::string layers;
      for (const Scope layer : s.layers) layers += (layers.empty() ? "" : ", ") + std::string(layer.path());
      names_.push_back({Label::of(s.what), Scope::of(layers)});
    }
  });
  return names_;
}

PlanReport describe_plan(const Graph& g, const Fused& fused, const PlanEnds& ends) {
  return Reporter(g, fused).run(ends);
}

}  // namespace ferrite::detail
