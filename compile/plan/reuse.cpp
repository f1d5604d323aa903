/// How long values live in a plan, and which results take the place of operands that end.
#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/plan/detail/build.h"

namespace ferrite::detail {

std::vector<LiveRange> find_live_ranges(const Graph& g, const PlannedProgram& program) {
  std::vector<LiveRange> live(g.values.size());
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto touch = [&](ValueId v) {
      if (g.values[v].shape.numel() == 0) return;
      live[v].first = std::min(live[v].first, s);
      live[v].last = std::max(live[v].last, s);
    };
    const auto touch_call = [&](int call) {
      const PlannedCall& c = program.calls[static_cast<std::size_t>(call)];
      for (const PlannedTensor& t : c.in) touch(t.base);
      for (const PlannedTensor& t : c.out) touch(t.base);
    };
    const PlannedStep& step = program.steps[s];
    if (step.kernel < 0) {
      touch_call(step.call);
      continue;
    }
    const Kernel::Memory& m = program.kernels[static_cast<std::size_t>(step.kernel)].memory;
    for (const Kernel::Load& l : m.loads) touch(l.from.base);
    for (const Kernel::Store& st : m.stores) touch(st.to.base);
    for (const Kernel::Total& t : m.totals) touch(t.to.base);
    for (const PlannedProduct& p : step.products) touch_call(p.call);
  }
  return live;
}

namespace {

/// The last step with which a run may end: from there on variables may be written before the program has ended.
std::size_t find_last_to_fail(const PlannedProgram& program) {
  std::size_t last = 0;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (program.steps[s].kernel >= 0) continue;
    const PlannedCall& c = program.calls[static_cast<std::size_t>(program.steps[s].call)];
    InlineVector<Spec, 8> in;
    for (const PlannedTensor& t : c.in) in.push_back(t.spec);
    if (effects_of(*c.op, {in.data(), in.size()}, c.attrs).may_fail()) last = s;
  }
  return last;
}

/// Whether no instruction reads slot `in` after the one that writes slot `out`.
bool read_before(const Kernel& k, std::uint16_t in, std::uint16_t out) {
  bool written = false;
  for (const Kernel::Instruction& i : k.program.instructions) {
    const bool reads_in = i.reads_slot(in);
    if (reads_in && (written || i.step == Kernel::Step::across)) return false;
    if (i.slot == out && (i.step == Kernel::Step::apply || i.step == Kernel::Step::chain)) written = true;
    if (i.slot == out && (i.step == Kernel::Step::fill || i.step == Kernel::Step::spread)) return false;
  }
  return written;
}

class Reusing {
 public:
  Reusing(const Graph& g, const PlannedProgram& program, const PlacedEnds& placed, const std::vector<LiveRange>& live)
      : g_(g),
        program_(program),
        ends_(placed.ends),
        base_(placed.base),
        live_(live),
        to_{std::vector<ValueId>(g.values.size(), kNoValue), std::vector<std::int64_t>(ends_.results.size(), -1)} {}

  Reuse run() {
    const std::size_t last_to_fail = find_last_to_fail(program_);
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const PlannedStep& step = program_.steps[s];
      if (step.kernel >= 0) {
        reuse_in(program_.kernels[static_cast<std::size_t>(step.kernel)], s);
      } else {
        reuse_in(program_.calls[static_cast<std::size_t>(step.call)], s, s > last_to_fail);
      }
    }
    return std::move(to_);
  }
  Reuse none() { return std::move(to_); }

 private:
  /// A result of an operation that allows it takes the place of an operand that ends here; what is assigned to a
  /// variable that of the variable's value, if at run time nobody else holds that.
  void reuse_in(const PlannedCall& c, std::size_t step, bool to_variables) {
    for (std::size_t k = 0; k < std::min(c.op->in_place.size(), c.out.size()); ++k) {
      const PlannedTensor& in = c.in[c.op->in_place[k]];
      const ValueId u = in.base, v = c.out[k].base;
      const bool alone = std::ranges::count(c.in, u, &PlannedTensor::base) == 1;
      if (!alone || live_[u].last != step || live_[v].first != step || in.offset != 0) continue;
      if (in.spec != g_.values[u] || in.strides != in.spec.shape.strides()) continue;
      if (base_[u] == 0 && base_[v] == 0) to_.place_of[v] = u;
      if (to_variables && base_[u] != 0 && base_[v] != 0) update_variable(u, v);
    }
  }

  void update_variable(ValueId read, ValueId written) {
    const auto from = std::ranges::find(g_.reads, read, &Graph::VariableValue::value);
    const auto to = std::ranges::find(g_.writes, written, &Graph::VariableValue::value);
    if (from == g_.reads.end() || to == g_.writes.end() || from->variable != to->variable) return;
    const std::size_t result = base_[written] - ends_.bases.results;
    if (std::ranges::count(ends_.of, result) != 1) return;
    to_.updates[result] = base_[read] - static_cast<std::int64_t>(ends_.bases.arguments);
  }

  /// A result may take the place of an operand that ends here, where every element is read before it is written: both
  /// lie in the order of the kernel, and no instruction reads the operand after the result has been computed.
  void reuse_in(const Kernel& k, std::size_t step) {
    for (const Kernel::Instruction& out : k.program.instructions) {
      if (out.step != Kernel::Step::store || k.slots[out.slot].kind != Kernel::Slot::direct) continue;
      const Kernel::Store& store = k.memory.stores[out.index];
      const ValueId v = store.to.base;
      if (!store.dense || store.window || base_[v] != 0 || live_[v].first != step || store.to.offset != 0 ||
          to_.place_of[v] != kNoValue)
        continue;
      for (const Kernel::Instruction& in : k.program.instructions)
        if (in.step == Kernel::Step::load && takes_place(k, out, in, step)) {
          to_.place_of[v] = k.memory.loads[in.index].from.base;
          break;
        }
    }
  }

  bool takes_place(const Kernel& k, const Kernel::Instruction& out, const Kernel::Instruction& in,
                   std::size_t step) const {
    const Kernel::Load& l = k.memory.loads[in.index];
    const Kernel::Store& s = k.memory.stores[out.index];
    const ValueId u = l.from.base;
    if (base_[u] != 0 || live_[u].last != step || live_[u].first == kNoNode || !whole_before(u, step)) return false;
    if (k.slots[in.slot].kind != Kernel::Slot::direct || l.from.offset != 0) return false;
    if (l.bytes != s.bytes || !(l.strides == k.axes.extents.strides())) return false;
    if (g_.values[u].shape.numel() != g_.values[s.to.base].shape.numel()) return false;
    for (const Kernel::Load& other : k.memory.loads)
      if (&other != &l && other.from.base == u) return false;
    for (const Kernel::Store& other : k.memory.stores)  // a place is taken once
      if (to_.place_of[other.to.base] == u && live_[other.to.base].first == step) return false;
    return read_before(k, in.slot, out.slot);
  }

  /// Whether u is complete before the kernel of a step begins, and no product of that step reads it.
  bool whole_before(ValueId u, std::size_t step) const {
    const PlannedStep& s = program_.steps[step];
    bool whole = live_[u].first != step;
    for (const PlannedProduct& p : s.products) {
      const PlannedCall& c = program_.calls[static_cast<std::size_t>(p.call)];
      whole |= c.out[0].base == u && s.block_rows == 0;
      for (const PlannedTensor& t : c.in)
        if (to_.root(t.base) == to_.root(u)) return false;
    }
    return whole;
  }

  const Graph& g_;
  const PlannedProgram& program_;
  const PlanEnds& ends_;
  const std::vector<std::uint32_t>& base_;
  const std::vector<LiveRange>& live_;
  Reuse to_;
};

}  // namespace

Reuse find_reuse(const Graph& g, const PlannedProgram& program, const PlacedEnds& placed,
                 const std::vector<LiveRange>& live, bool reuse) {
  Reusing reusing(g, program, placed, live);
  return reuse ? reusing.run() : reusing.none();
}

}  // namespace ferrite::detail
