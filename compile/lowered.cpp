/// Turns a graph into a program of loops and calls, as plans do, without places for its values.
#include "ferrite/compile/lowered.h"

#include <cstring>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/fuse/kernel.h"
#include "ferrite/compile/plan/body.h"

namespace ferrite::detail {
namespace {

using Step = LoweredInstruction::Step;

std::array<std::byte, 8> number_of(const RepeatedLine& line) {
  std::array<std::byte, 8> number;
  std::memcpy(number.data(), line.bytes, number.size());
  return number;
}
LoweredBox box_of(const Box& b) { return {b.begin, b.end}; }

class Lowering {
 public:
  Lowering(const Graph& g, const WrittenKernel& k) : g_(g), k_(k) {}

  LoweredLoop run() {
    to_.extents = k_.axes.extents;
    to_.outer = k_.axes.outer;
    to_.reduced = k_.axes.reduced;
    to_.across = static_cast<LoweredLoop::Across>(k_.axes.across);
    for (const Kernel::SlotInfo& s : k_.slots.all) {
      to_.slots.push_back({.dtype = s.dtype, .of_rows = s.of_rows});
      if (s.kind != Kernel::Slot::repeated) continue;
      to_.slots.back().literal = true;
      to_.slots.back().number = number_of(k_.slots.literals[s.index]);
    }
    for (std::size_t i = 0; i < k_.program.instructions.size(); ++i) add(k_.program.instructions[i], k_.nodes[i]);
    return std::move(to_);
  }

 private:
  void add(const Kernel::Instruction& from, const Graph::Node* node) {
    LoweredInstruction i{.slot = from.slot, .access = to_.accesses.size(), .node = node};
    const auto take = [&](Step step, std::size_t reads) {
      i.step = step;
      for (std::size_t j = 0; j < reads; ++j) i.in.push_back(from.in[j]);
    };
    switch (from.step) {
      case Kernel::Step::load: take(Step::load, 0), add_load(k_.memory.loads[from.index]); break;
      case Kernel::Step::fill: take(Step::fill, 1), add_filling(k_.memory.fillings[from.index]); break;
      case Kernel::Step::apply: take(Step::apply, from.index); break;
      case Kernel::Step::spread: take(Step::spread, 1); break;
      case Kernel::Step::reduce: take(Step::reduce, 1); break;
      case Kernel::Step::store: take(Step::store, 0), add_store(k_.memory.stores[from.index]); break;
      case Kernel::Step::across:
        take(Step::across, 1);
        to_.accesses.push_back({.value = k_.memory.totals[totals_++].to.base, .strides = {}, .box = {}});
        break;
      case Kernel::Step::chain: break;  // written kernels have none
    }
    to_.instructions.push_back(std::move(i));
  }
  std::int64_t elements(const Place& p) const { return p.offset / size_of(g_.values[p.base].dtype); }
  void add_load(const Kernel::Load& l) {
    to_.accesses.push_back({.value = l.from.base,
                            .offset = elements(l.from),
                            .strides = l.strides,
                            .of_rows = l.of_rows,
                            .whole = is_whole(l.box, k_.axes.of(l.of_rows)),
                            .box = box_of(l.box),
                            .number = number_of(l.outside)});
  }
  void add_filling(const Kernel::Filling& f) {
    to_.accesses.push_back(
        {.strides = {}, .of_rows = f.of_rows, .whole = false, .box = box_of(f.box), .number = number_of(f.outside)});
  }
  void add_store(const Kernel::Store& s) {
    to_.accesses.push_back(
        {.value = s.to.base, .offset = elements(s.to), .strides = s.strides, .of_rows = s.of_rows, .box = {}});
  }

  const Graph& g_;
  const WrittenKernel& k_;
  LoweredLoop to_;
  std::size_t totals_ = 0;
};

LoweredStep lone_step(const Graph& g, const Fused& fused, const Graph::Node& n) {
  LoweredStep step{.node = &n};
  for (const ValueId v : n.in) {
    const Window& w = fused.windows[v];
    step.in.push_back({w.base, w.offset, g.values[v], w.strides});
  }
  for (const ValueId v : n.out) step.out.push_back({v, 0, g.values[v], g.values[v].shape.strides()});
  return step;
}

}  // namespace

LoweredProgram lower(Graph graph) {
  LoweredProgram to{prepared(std::move(graph), {}, PlanFor::steps), {}};
  const Graph& g = to.graph;
  const Fused fused = fuse(g, {});
  for (const Task& t : fused.tasks) {
    if (t.group < 0) {
      to.steps.push_back(lone_step(g, fused, g.nodes[t.position]));
      continue;
    }
    for (const std::size_t node : t.products) to.steps.push_back(lone_step(g, fused, g.nodes[node]));
    const WrittenKernel k = write_kernel(g, fused.groups[static_cast<std::size_t>(t.group)], fused.windows);
    to.steps.push_back({.is_loop = true, .loop = Lowering(g, k).run()});
  }
  return to;
}

}  // namespace ferrite::detail
