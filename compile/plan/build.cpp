/// Builds a plan from a graph, stage by stage; each is a function of the results of the stages before it. Until
/// addresses are known, the base of a place is the number of its value.
#include "ferrite/compile/plan/body.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/graph_view.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/plan/detail/plan_memory.h"
#include "ferrite/compile/rewrite.h"

namespace ferrite::detail {
namespace {

/// The inputs and outputs of a plan, and the bases of values; 0 for values in the arena or without memory.
struct PlacedEnds {
  PlanEnds ends;
  std::vector<std::uint32_t> base;  ///< by value: of inputs, variables, constants, results
  std::vector<std::uint32_t>
      blocks;  ///< by value: of products computed in blocks, as the kernel that reads them sees them
};

/// The first and the last step at which a value is in memory.
struct LiveRange {
  std::size_t first = kNoNode, last = 0;
};

/// Results that reuse the places of operands which are not needed after the step that computes them.
struct Reuse {
  std::vector<ValueId> place_of;      ///< by value: whose place it takes; kNoValue: it has a separate place
  std::vector<std::int64_t> updates;  ///< by result: the argument, a variable, whose buffer it may take; else -1

  /// Returns the value whose place v finally has.
  ValueId root(ValueId v) const {
    while (place_of[v] != kNoValue) v = place_of[v];
    return v;
  }
};

// ---- steps: kernels with the products that run in them, and operations that run alone ---------------------

constexpr std::int64_t kWholeBytes = 1 << 20;    ///< size up to which a product's result stays in the caches as a whole
constexpr std::int64_t kBlockBytes = 512 << 10;  ///< size of the rows that a kernel reads before the next are computed
constexpr std::int64_t kFewestRows = 96;         ///< with fewer rows, a product would pack its operands too often

PlannedCall call_of(const Graph& g, const Fused& fused, const Graph::Node& n) {
  PlannedCall call{n.op, n.attrs, {}, {}, n.scope};
  for (const ValueId v : n.in) {
    const Window& w = fused.windows[v];
    call.in.push_back({w.base, w.offset * size_of(g.values[v].dtype), g.values[v], w.strides});
  }
  for (const ValueId v : n.out) call.out.push_back({v, 0, g.values[v], g.values[v].shape.strides()});
  return call;
}

/// Cuts the products of a step into blocks of rows, if their results are large and rows end where tiles end.
void cut_rows(PlannedStep& s, PlannedProgram& program) {
  const Kernel& k = program.kernels[static_cast<std::size_t>(s.kernel)];
  const auto call_of = [&](const PlannedProduct& p) -> PlannedCall& {
    return program.calls[static_cast<std::size_t>(p.call)];
  };
  std::int64_t row_bytes = 0;
  if (k.axes.across != Across::none) return;
  for (const PlannedProduct& p : s.products) {
    const PlannedCall& c = call_of(p);
    const Spec& out = c.out[0].spec;
    if (out.shape.rank() != 2 || c.in[0].spec.shape.rank() != 2) return;
    if (s.rows && s.rows != out.shape[0]) return;
    s.rows = out.shape[0];
    row_bytes += out.shape[1] * size_of(out.dtype);
  }
  if (s.rows * row_bytes <= kWholeBytes) return;
  const Kernel::Tiling& t = k.tiling;
  const std::int64_t points = t.elements() / s.rows;  // points of the kernel's domain for each row
  const bool one_run = t.tile_rows == 0 && t.rows == 1;
  const std::int64_t unit = one_run ? t.tile : (t.tile_rows ? t.tile_rows * t.length : t.length);
  const std::int64_t even = unit / std::gcd(unit, points);  // this many rows end where a tile ends
  const std::int64_t wanted = std::max(kBlockBytes / row_bytes, kFewestRows);
  const std::int64_t block = (wanted + even - 1) / even * even;
  if (block * 2 > s.rows || block > 4 * wanted) return;
  s.block_rows = block;
  s.block_tiles = block * points / unit * (one_run || t.tile_rows ? 1 : t.pieces);
  for (PlannedProduct& p : s.products) {
    PlannedCall& c = call_of(p);
    p.row_bytes = c.out[0].spec.shape[1] * size_of(c.out[0].spec.dtype);
    c.in[0].spec.shape[0] = block;
    c.out[0].spec.shape[0] = block;
  }
}

/// Returns the kernels, calls and steps of the tasks, in order. With `blocks`, products whose results would leave the
/// caches before the kernel reads them are computed some rows at a time, each time into the same place.
PlannedProgram write_program(const Graph& g, const Fused& fused, bool blocks) {
  PlannedProgram to;
  const auto add_call = [&](std::size_t node) {
    to.calls.push_back(call_of(g, fused, g.nodes[node]));
    return static_cast<int>(to.calls.size()) - 1;
  };
  for (const Task& t : fused.tasks) {
    PlannedStep step;
    if (t.group >= 0) {
      step.kernel = static_cast<int>(to.kernels.size());
      to.kernels.push_back(build_kernel(g, fused.groups[static_cast<std::size_t>(t.group)], fused.windows));
      for (const std::size_t node : t.products) step.products.push_back({add_call(node)});
      if (blocks) cut_rows(step, to);
    } else {
      step.call = add_call(t.position);
    }
    to.steps.push_back(std::move(step));
  }
  return to;
}

// ---- live ranges, and results that reuse the places of operands -------------------------------------------

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

/// Returns the last step that may throw: after it, variables may be written before the program has ended.
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

/// Returns whether no instruction reads slot `in` after the one that writes slot `out`.
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
  /// Lets a result of an operation that allows it reuse the place of an operand that ends here. A value assigned to a
  /// variable reuses the place of the variable's old value, if nothing else holds that at run time.
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

  /// Lets a result reuse the place of an operand that ends here, if every element is read before it is written: both
  /// are in the order of the kernel, and no instruction reads the operand after the result has been computed.
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

  /// Returns whether u is complete before the kernel of a step begins, and no product of that step reads it.
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

Reuse find_reuse(const Graph& g, const PlannedProgram& program, const PlacedEnds& placed,
                 const std::vector<LiveRange>& live, bool reuse) {
  Reusing reusing(g, program, placed, live);
  return reuse ? reusing.run() : reusing.none();
}

// ---- the arena: buffers in order of steps by best fit, or largest first -----------------------------------

constexpr std::size_t kMostForSorting = 3000;

std::int64_t to_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::size_t steps_of(std::span<const Lifetime> buffers) {
  std::size_t n = 0;
  for (const Lifetime& b : buffers) n = std::max(n, b.last + 1);
  return n;
}

std::int64_t bound_of(std::span<const Lifetime> buffers) {
  std::vector<std::int64_t> change(steps_of(buffers) + 1);
  for (const Lifetime& b : buffers) {
    change[b.first] += to_lines(b.bytes);
    change[b.last + 1] -= to_lines(b.bytes);
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t c : change) most = std::max(most, live += c);
  return most;
}

/// The free stretches of a block of memory that grows at its end.
class Heap {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at)
      if (at->second >= bytes && (best == free_.end() || at->second < best->second)) best = at;
    if (best == free_.end()) return grow(bytes);
    const std::int64_t offset = best->first;
    const std::int64_t left = best->second - bytes;
    free_.erase(best);
    if (left) free_[offset + bytes] = left;
    return offset;
  }
  void give(std::int64_t offset, std::int64_t bytes) {
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + bytes == after->first) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free_[offset] = bytes;
  }
  std::int64_t bytes() const { return end_; }

 private:
  /// Returns space at the end, using the last stretch if it is free already.
  std::int64_t grow(std::int64_t bytes) {
    std::int64_t offset = end_;
    if (!free_.empty() && std::prev(free_.end())->first + std::prev(free_.end())->second == end_) {
      offset = std::prev(free_.end())->first;
      free_.erase(std::prev(free_.end()));
    }
    end_ = offset + bytes;
    return offset;
  }
  std::map<std::int64_t, std::int64_t> free_;
  std::int64_t end_ = 0;
};

MemoryLayout in_order(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.offsets.resize(buffers.size());
  const std::size_t steps = steps_of(buffers);
  std::vector<std::vector<std::size_t>> born(steps), dying(steps);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    born[buffers[i].first].push_back(i);
    dying[buffers[i].last].push_back(i);
  }
  Heap heap;
  for (std::size_t t = 0; t < steps; ++t) {
    for (const std::size_t i : born[t]) layout.offsets[i] = heap.take(to_lines(buffers[i].bytes));
    for (const std::size_t i : dying[t]) heap.give(layout.offsets[i], to_lines(buffers[i].bytes));
  }
  layout.bytes = heap.bytes();
  return layout;
}

/// Places buffers, largest first, each at the lowest place that is free over its whole lifetime.
MemoryLayout by_size(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.offsets.resize(buffers.size());
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<std::size_t> placed;  // in the order of their offsets
  for (const std::size_t i : order) {
    const Lifetime& b = buffers[i];
    std::int64_t at = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = buffers[j];
      if (other.last < b.first || other.first > b.last) continue;
      if (at + to_lines(b.bytes) <= layout.offsets[j]) break;
      at = std::max(at, layout.offsets[j] + to_lines(other.bytes));
    }
    layout.offsets[i] = at;
    layout.bytes = std::max(layout.bytes, at + to_lines(b.bytes));
    const auto place = std::upper_bound(placed.begin(), placed.end(), at,
                                        [&](std::int64_t o, std::size_t j) { return o < layout.offsets[j]; });
    placed.insert(place, i);
  }
  return layout;
}

}  // namespace

void check_bytes(std::span<const Spec> values) {
  constexpr auto where = "plan: the bytes of all values";
  std::int64_t bytes = 0;
  for (const Spec& s : values) {
    const std::int64_t lines = checked_add(checked_mul(s.shape.numel("plan"), size_of(s.dtype), where), 128, where);
    bytes = checked_add(bytes, lines, where);
  }
}

MemoryLayout lay_out(std::span<const Lifetime> buffers) {
  const std::int64_t bound = bound_of(buffers);
  MemoryLayout best = in_order(buffers);
  if (best.bytes > bound + bound / 20 && buffers.size() <= kMostForSorting) {
    MemoryLayout other = by_size(buffers);
    if (other.bytes < best.bytes) best = std::move(other);
  }
  best.bound = bound;
  return best;
}

MemoryLayout lay_out_apart(std::span<const Lifetime> buffers) {
  MemoryLayout layout;
  layout.bound = bound_of(buffers);
  for (const Lifetime& b : buffers) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += to_lines(b.bytes);
  }
  return layout;
}

// ---- the plan ---------------------------------------------------------------------------------------------

namespace {

PlacedEnds place_ends(const Graph& g, const PlannedProgram& program) {
  PlacedEnds to;
  to.base.resize(g.values.size());
  to.blocks.resize(g.values.size());
  Bases& bases = to.ends.bases;
  std::uint32_t next = static_cast<std::uint32_t>(bases.arguments);
  for (const ValueId v : g.inputs) to.base[v] = next++;
  for (const Graph::VariableValue& r : g.reads) to.base[r.value] = next++;
  bases.constants = next;
  for (const Graph::Constant& c : g.constants) {
    to.base[c.value] = next++;
    to.ends.constants.push_back(c.tensor);
  }
  bases.results = next;
  const auto end = [&](ValueId v) {
    std::uint32_t& base = to.base[v];
    if (base == 0) {
      base = next++;
      to.ends.results.push_back(v);
    }
    to.ends.of.push_back(base - bases.results);
  };
  for (const ValueId v : g.outputs) end(v);
  for (const Graph::VariableValue& w : g.writes) end(w.value);
  for (const PlannedStep& s : program.steps)
    if (s.block_rows)
      for (const PlannedProduct& p : s.products)
        to.blocks[program.calls[static_cast<std::size_t>(p.call)].out[0].base] = next++;
  bases.count = next;
  return to;
}

/// Returns the bytes that each value needs in the arena; one block of a product that is computed in blocks.
std::vector<std::int64_t> bytes_of_values(const Graph& g, const PlannedProgram& program) {
  std::vector<std::int64_t> bytes;
  for (const Spec& s : g.values) bytes.push_back(s.shape.numel() * size_of(s.dtype));
  for (const PlannedStep& s : program.steps)
    if (s.block_rows)
      for (const PlannedProduct& p : s.products)
        bytes[program.calls[static_cast<std::size_t>(p.call)].out[0].base] = s.block_rows * p.row_bytes;
  return bytes;
}

/// The arena of a plan and the places of values in it.
struct Arena {
  std::vector<std::int64_t> offset;  ///< by value, in bytes
  std::int64_t bytes = 0, bound = 0;
};

Arena lay_out_arena(const std::vector<std::int64_t>& bytes, const std::vector<std::uint32_t>& base,
                    const std::vector<LiveRange>& live, const Reuse& reuse, bool overlap) {
  std::vector<Lifetime> lives;
  std::vector<std::size_t> index(bytes.size(), kNoNode);  // by value: index of its buffer
  for (ValueId v = 0; v < bytes.size(); ++v) {
    if (live[v].first == kNoNode || base[v] != 0) continue;
    const ValueId r = reuse.root(v);
    if (index[r] == kNoNode) {
      index[r] = lives.size();
      lives.push_back({live[r].first, live[r].last, bytes[r]});
    }
    index[v] = index[r];
    lives[index[r]].first = std::min(lives[index[r]].first, live[v].first);
    lives[index[r]].last = std::max(lives[index[r]].last, live[v].last);
  }
  const MemoryLayout layout = overlap ? lay_out(lives) : lay_out_apart(lives);
  Arena arena{std::vector<std::int64_t>(bytes.size()), layout.bytes, layout.bound};
  for (ValueId v = 0; v < bytes.size(); ++v)
    if (index[v] != kNoNode) arena.offset[v] = layout.offsets[index[v]];
  return arena;
}

/// Returns the program with addresses in place of values. A kernel sees blocks of rows through a separate base, which
/// moves from block to block. Results that are windows may be followed by other elements.
PlannedProgram with_addresses(PlannedProgram program, const PlacedEnds& placed, const Arena& arena,
                              std::size_t first_window) {
  const auto resolve = [&](Place& p) {
    const std::uint32_t block = placed.blocks[p.base];
    p = block ? Place{block, p.offset} : Place{placed.base[p.base], p.offset + arena.offset[p.base]};
  };
  for (PlannedStep& s : program.steps) {
    if (!s.block_rows) continue;
    for (PlannedProduct& p : s.products) {
      const ValueId out = program.calls[static_cast<std::size_t>(p.call)].out[0].base;
      p.base = placed.blocks[out];
      p.offset = arena.offset[out];
    }
  }
  for (Kernel& k : program.kernels) {
    for (Kernel::Load& l : k.memory.loads) resolve(l.from);
    for (Kernel::RepeatedLoad& r : k.slots.repeated_loads) r.from = k.memory.loads[r.load].from;
    for (Kernel::Total& t : k.memory.totals) resolve(t.to);
    for (Kernel::Store& s : k.memory.stores) {
      resolve(s.to);
      s.window |= s.to.base >= first_window;
    }
    k.settle();
  }
  for (PlannedCall& c : program.calls)
    for (std::vector<PlannedTensor>* list : {&c.in, &c.out})
      for (PlannedTensor& t : *list) {
        t.offset += arena.offset[t.base];
        t.base = placed.base[t.base];
      }
  return program;
}

}  // namespace

Graph prepared(Graph g, const PlanOptions& options, PlanFor use) {
  passes::drop_detach(g);
  passes::simplify(g);
  check_bytes(g.values);
  if (options.fuse && use != PlanFor::steps) {
    accumulate_products(g);
    copy_transposed_operands(g);
  }
  materialize_ends(g);
  if (options.fuse) move_copies_up(g);
  return g;
}

std::unique_ptr<const PlanBody> make_plan(Graph graph, const PlanOptions& options, PlanFor use) {
  const ProfileEvent event("plan", Scope());
  Graph g = prepared(std::move(graph), options, use);
  const Fused fused = fuse(g, {options.fuse, options.guard});
  PlannedProgram program = write_program(g, fused, options.reuse);
  PlacedEnds placed = place_ends(g, program);
  const std::vector<LiveRange> live = find_live_ranges(g, program);
  Reuse reuse = find_reuse(g, program, placed, live, options.reuse);
  const Arena arena = lay_out_arena(bytes_of_values(g, program), placed.base, live, reuse, options.reuse);
  PlanReport report = describe_plan(g, fused, placed.ends);
  report.arena_bytes = arena.bytes;
  report.bound_bytes = arena.bound;
  const Bases& bases = placed.ends.bases;
  program = with_addresses(std::move(program), placed, arena, use == PlanFor::calls ? bases.count : bases.results);
  return std::unique_ptr<const PlanBody>(new PlanBody{std::move(g), std::move(program), std::move(placed.ends),
                                                      std::move(reuse.updates), arena.bytes, std::move(report)});
}

}  // namespace ferrite::detail
