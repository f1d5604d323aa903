/// From a graph to a plan.
#include "ferrite/compile/plan/detail/build.h"
#include "ferrite/compile/fuse/products.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/plan/detail/plan_memory.h"

namespace ferrite::detail {

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

namespace {

/// Operations that only plans know come in, every result gets a buffer, copies stand right behind what they copy.
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

/// What the values of the arena need; of a product computed in blocks, one block.
std::vector<std::int64_t> bytes_of_values(const Graph& g, const PlannedProgram& program) {
  std::vector<std::int64_t> bytes;
  for (const Spec& s : g.values) bytes.push_back(s.shape.numel() * size_of(s.dtype));
  for (const PlannedStep& s : program.steps)
    if (s.block_rows)
      for (const PlannedProduct& p : s.products)
        bytes[program.calls[static_cast<std::size_t>(p.call)].out[0].base] = s.block_rows * p.row_bytes;
  return bytes;
}

/// Where values stand in the arena.
struct Arena {
  std::vector<std::int64_t> offset;  ///< by value
  std::int64_t bytes = 0, bound = 0;
};

Arena lay_out_arena(const std::vector<std::int64_t>& bytes, const std::vector<std::uint32_t>& base,
                    const std::vector<LiveRange>& live, const Reuse& reuse, bool overlap) {
  std::vector<Lifetime> lives;
  std::vector<std::size_t> index(bytes.size(), kNoNode);  // by value: the buffer
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

/// The program with addresses in place of values. A kernel sees blocks of rows through a base of their own, which moves
/// from block to block. Behind results that are windows something else may follow.
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
    for (Kernel::Total& t : k.memory.totals) resolve(t.to);
    for (Kernel::Store& s : k.memory.stores) {
      resolve(s.to);
      s.window |= s.to.base >= first_window;
    }
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
