#include <algorithm>
#include <numeric>

#include "ferrite/compile/fuse/products.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/plan/body.h"
#include "ferrite/compile/plan/detail/memory.h"

namespace ferrite::detail {
namespace {

constexpr std::size_t kNever = ~std::size_t{0};

constexpr std::int64_t kWholeBytes = 1 << 20;    ///< the result of a product that stays in the caches as it is
constexpr std::int64_t kBlockBytes = 512 << 10;  ///< of rows that a kernel reads before the next are computed
constexpr std::int64_t kFewestRows = 96;         ///< fewer, and a product would pack its operands too often

/// Places while they are not known: the base is the number of the value.
class Symbolic final : public Locations {
 public:
  Symbolic(const Graph& g, const Fused& fused) : g_(g), fused_(fused) {}
  Place place_of(ValueId v) const override { return {v, 0}; }
  Shape strides_of(ValueId v) const override {
    const Window& w = fused_.windows[v];
    return w.base == v ? w.strides : g_.values[v].shape.strides();
  }

 private:
  const Graph& g_;
  const Fused& fused_;
};

/// Puts a plan together.
class Builder {
 public:
  Builder(PlanBody& body, const PlanOptions& options, PlanFor use)
      : body_(body), g_(body.graph), options_(options), use_(use) {}

  void run() {
    if (options_.fuse && use_ != PlanFor::steps) {
      accumulate_products(g_);
      copy_turned_operands(g_);
    }
    materialize_ends(g_);
    if (options_.fuse) move_copies_up(g_);
    block_bytes_.assign(g_.values.size(), 0);
    moving_base_.assign(g_.values.size(), 0);
    fused_ = fuse(g_, {options_.fuse, options_.guard});
    const Symbolic symbolic(g_, fused_);
    for (const Task& t : fused_.tasks) add_step(t, symbolic);
    place_ends();
    live();
    lay_out_arena();
    resolve();
    describe_plan(body_, fused_);
  }

 private:
  void add_step(const Task& t, const Locations& where) {
    PlannedStep step;
    if (t.group >= 0) {
      step.kernel = static_cast<int>(body_.kernels.size());
      body_.kernels.push_back(build_kernel(g_, fused_.groups[static_cast<std::size_t>(t.group)], where));
      for (const std::size_t node : t.products) step.products.push_back({add_call(node), 0, 0, 0});
      if (options_.reuse) cut_rows(step);
    } else {
      step.call = add_call(t.position);
    }
    body_.steps.push_back(std::move(step));
  }

  int add_call(std::size_t node) {
    const Graph::Node& n = g_.nodes[node];
    PlannedCall call;
    call.op = n.op;
    call.attrs = n.attrs;
    call.scope = n.scope;
    for (const ValueId v : n.in) {
      const Window& w = fused_.windows[v];
      call.in.push_back({w.base, w.offset * size_of(g_.values[v].dtype), g_.values[v], w.strides});
    }
    for (const ValueId v : n.out) call.out.push_back({v, 0, g_.values[v], g_.values[v].shape.strides()});
    body_.calls.push_back(std::move(call));
    return static_cast<int>(body_.calls.size()) - 1;
  }

  /// Products whose results would leave the caches before the kernel reads them are computed some rows at a time, into
  /// the same place again and again.
  void cut_rows(PlannedStep& s) {
    const Kernel& k = body_.kernels[static_cast<std::size_t>(s.kernel)];
    std::int64_t row_bytes = 0;
    if (k.axes.across != Across::none) return;
    for (const PlannedProduct& p : s.products) {
      const PlannedCall& c = body_.calls[static_cast<std::size_t>(p.call)];
      const Spec& out = c.out[0].spec;
      if (out.shape.rank() != 2 || c.in[0].spec.shape.rank() != 2) return;
      if (s.rows && s.rows != out.shape[0]) return;
      s.rows = out.shape[0];
      row_bytes += out.shape[1] * size_of(out.dtype);
    }
    if (s.rows * row_bytes <= kWholeBytes) return;
    const std::int64_t points = k.tiling.elements() / s.rows;  // of the kernel's domain, for each row
    const bool one_run = k.tiling.tile_rows == 0 && k.tiling.rows == 1;
    const std::int64_t unit =
        one_run ? k.tiling.tile : (k.tiling.tile_rows ? k.tiling.tile_rows * k.tiling.length : k.tiling.length);
    const std::int64_t even = unit / std::gcd(unit, points);  // so many rows end where a tile ends
    const std::int64_t wanted = std::max(kBlockBytes / row_bytes, kFewestRows);
    const std::int64_t block = (wanted + even - 1) / even * even;
    if (block * 2 > s.rows || block > 4 * wanted) return;
    s.block_rows = block;
    s.block_tiles = block * points / unit * (one_run || k.tiling.tile_rows ? 1 : k.tiling.pieces);
    for (PlannedProduct& p : s.products) begin_block(p, block);
  }

  void begin_block(PlannedProduct& p, std::int64_t rows) {
    PlannedCall& c = body_.calls[static_cast<std::size_t>(p.call)];
    p.row_bytes = c.out[0].spec.shape[1] * size_of(c.out[0].spec.dtype);
    c.in[0].spec.shape[0] = rows;
    c.out[0].spec.shape[0] = rows;
    block_bytes_[c.out[0].base] = rows * p.row_bytes;
  }

  /// Inputs, cells, constants and results have bases of their own.
  void place_ends() {
    base_.assign(g_.values.size(), 0);
    std::size_t next = body_.bases.arguments;
    for (const ValueId v : g_.inputs) base_[v] = static_cast<std::uint32_t>(next++);
    for (const Graph::CellValue& r : g_.reads) base_[r.value] = static_cast<std::uint32_t>(next++);
    body_.bases.constants = next;
    for (const Graph::Constant& c : g_.constants) {
      base_[c.value] = static_cast<std::uint32_t>(next++);
      body_.constants.push_back(c.tensor);
    }
    body_.bases.results = next;
    const auto end = [&](ValueId v) {
      if (base_[v] == 0) {
        base_[v] = static_cast<std::uint32_t>(next++);
        body_.results.push_back(v);
      }
      body_.ends.push_back(base_[v] - body_.bases.results);
    };
    for (const ValueId v : g_.outputs) end(v);
    for (const Graph::CellValue& w : g_.writes) end(w.value);
    for (PlannedStep& s : body_.steps) {
      if (!s.block_rows) continue;
      for (PlannedProduct& p : s.products) p.base = static_cast<std::uint32_t>(next++);
    }
    body_.bases.count = next;
  }

  // ---- lifetimes -----------------------------------------------------------------------------------------

  void touch(ValueId v, std::size_t step) {
    if (g_.values[v].shape.numel() == 0) return;
    first_[v] = std::min(first_[v], step);
    last_[v] = std::max(last_[v], step);
  }

  void touch_call(int call, std::size_t step) {
    const PlannedCall& c = body_.calls[static_cast<std::size_t>(call)];
    for (const PlannedTensor& t : c.in) touch(t.base, step);
    for (const PlannedTensor& t : c.out) touch(t.base, step);
  }

  void live() {
    first_.assign(g_.values.size(), kNever);
    last_.assign(g_.values.size(), 0);
    alias_.assign(g_.values.size(), kNoValue);
    for (std::size_t s = 0; s < body_.steps.size(); ++s) {
      const PlannedStep& step = body_.steps[s];
      if (step.kernel >= 0) {
        const Kernel& k = body_.kernels[static_cast<std::size_t>(step.kernel)];
        for (const Kernel::Load& l : k.memory.loads) touch(l.from.base, s);
        for (const Kernel::Store& st : k.memory.stores) touch(st.to.base, s);
        for (const Kernel::Total& t : k.memory.totals) touch(t.to.base, s);
        for (const PlannedProduct& p : step.products) touch_call(p.call, s);
      } else {
        touch_call(step.call, s);
      }
    }
    body_.updates.assign(body_.results.size(), -1);
    if (!options_.reuse) return;
    const std::size_t last_to_fail = find_last_to_fail();
    for (std::size_t s = 0; s < body_.steps.size(); ++s) {
      const PlannedStep& step = body_.steps[s];
      if (step.kernel >= 0) {
        write_in_place(body_.kernels[static_cast<std::size_t>(step.kernel)], s);
      } else {
        write_in_place(body_.calls[static_cast<std::size_t>(step.call)], s, s > last_to_fail);
      }
    }
  }

  /// The last step with which a run may end: from there on cells may be written before the program has ended.
  std::size_t find_last_to_fail() const {
    std::size_t last = 0;
    for (std::size_t s = 0; s < body_.steps.size(); ++s) {
      if (body_.steps[s].kernel >= 0) continue;
      const PlannedCall& c = body_.calls[static_cast<std::size_t>(body_.steps[s].call)];
      InlineVector<Spec, 8> in;
      for (const PlannedTensor& t : c.in) in.push_back(t.spec);
      if (effects_of(*c.op, {in.data(), in.size()}, c.attrs).may_fail()) last = s;
    }
    return last;
  }

  /// A result of an operation that allows it takes the place of an operand that dies here; what is assigned to a cell
  /// that of the cell's value, if at run time nobody else holds that.
  void write_in_place(const PlannedCall& c, std::size_t step, bool to_cells) {
    for (std::size_t k = 0; k < c.op->in_place.size(); ++k) {
      const PlannedTensor& in = c.in[c.op->in_place[k]];
      const ValueId u = in.base;
      const ValueId v = c.out[k].base;
      const bool alone =
          std::count_if(c.in.begin(), c.in.end(), [&](const PlannedTensor& t) { return t.base == u; }) == 1;
      if (!alone || last_[u] != step || first_[v] != step || in.offset != 0) continue;
      if (in.spec != g_.values[u] || in.strides != in.spec.shape.strides()) continue;
      if (base_[u] == 0 && base_[v] == 0) alias_[v] = u;
      if (to_cells && base_[u] != 0 && base_[v] != 0) update_cell(u, v);
    }
  }

  void update_cell(ValueId read, ValueId written) {
    const auto of = [](const std::vector<Graph::CellValue>& list, ValueId v) {
      return std::find_if(list.begin(), list.end(), [&](const Graph::CellValue& c) { return c.value == v; });
    };
    const auto from = of(g_.reads, read);
    const auto to = of(g_.writes, written);
    if (from == g_.reads.end() || to == g_.writes.end() || from->cell != to->cell) return;
    const std::size_t result = base_[written] - body_.bases.results;
    if (std::count(body_.ends.begin(), body_.ends.end(), result) != 1) return;
    body_.updates[result] = base_[read] - static_cast<std::int64_t>(body_.bases.arguments);
  }

  /// A result may take the place of an operand that dies here, where every element is read before it is written: both
  /// lie in the order of the kernel, and no instruction reads the operand after the result has been computed.
  void write_in_place(const Kernel& k, std::size_t step) {
    for (const Kernel::Instruction& out : k.program.instructions) {
      if (out.step != Kernel::Step::store || k.slots[out.slot].kind != Kernel::Slot::direct) continue;
      const Kernel::Store& store = k.memory.stores[out.index];
      const ValueId v = store.to.base;
      if (!store.dense || store.window || base_[v] != 0 || first_[v] != step || store.to.offset != 0 ||
          alias_[v] != kNoValue)
        continue;
      for (const Kernel::Instruction& in : k.program.instructions)
        if (in.step == Kernel::Step::load && takes_place(k, out, in, step)) {
          alias_[v] = k.memory.loads[in.index].from.base;
          break;
        }
    }
  }

  bool takes_place(const Kernel& k, const Kernel::Instruction& out, const Kernel::Instruction& in,
                   std::size_t step) const {
    const Kernel::Load& l = k.memory.loads[in.index];
    const ValueId u = l.from.base;
    const ValueId v = k.memory.stores[out.index].to.base;
    if (base_[u] != 0 || last_[u] != step || first_[u] == kNever || !whole_before(u, step)) return false;
    if (k.slots[in.slot].kind != Kernel::Slot::direct || l.from.offset != 0) return false;
    if (l.bytes != k.memory.stores[out.index].bytes || !(l.strides == k.axes.extents.strides())) return false;
    if (g_.values[u].shape.numel() != g_.values[v].shape.numel()) return false;
    for (const Kernel::Load& other : k.memory.loads)
      if (&other != &l && other.from.base == u) return false;
    for (const ValueId taken : alias_of(step))
      if (taken == u) return false;
    return read_before(k, in.slot, out.slot);
  }

  /// Whether u is complete before the kernel of a step begins, and no product of that step reads it.
  bool whole_before(ValueId u, std::size_t step) const {
    const PlannedStep& s = body_.steps[step];
    bool whole = first_[u] != step;
    for (const PlannedProduct& p : s.products) {
      const PlannedCall& c = body_.calls[static_cast<std::size_t>(p.call)];
      whole |= c.out[0].base == u && s.block_rows == 0;
      for (const PlannedTensor& t : c.in)
        if (root(t.base) == root(u)) return false;
    }
    return whole;
  }

  /// Operands whose place results of this step have taken.
  std::vector<ValueId> alias_of(std::size_t step) const {
    std::vector<ValueId> list;
    for (const Kernel::Store& s : body_.kernels[static_cast<std::size_t>(body_.steps[step].kernel)].memory.stores)
      if (alias_[s.to.base] != kNoValue && first_[s.to.base] == step) list.push_back(alias_[s.to.base]);
    return list;
  }

  /// Whether no instruction reads slot `in` after the one that writes slot `out`.
  static bool read_before(const Kernel& k, std::uint16_t in, std::uint16_t out) {
    bool written = false;
    for (const Kernel::Instruction& i : k.program.instructions) {
      const bool reads_in = i.reads_slot(in);
      if (reads_in && (written || i.step == Kernel::Step::across)) return false;
      if (i.slot == out && (i.step == Kernel::Step::apply || i.step == Kernel::Step::chain)) written = true;
      if (i.slot == out && (i.step == Kernel::Step::fill || i.step == Kernel::Step::spread)) return false;
    }
    return written;
  }

  ValueId root(ValueId v) const {
    while (alias_[v] != kNoValue) v = alias_[v];
    return v;
  }

  std::int64_t bytes_of(ValueId v) const { return g_.values[v].shape.numel() * size_of(g_.values[v].dtype); }

  void lay_out_arena() {
    std::vector<Lifetime> lives;
    std::vector<int> index(g_.values.size(), -1);
    for (ValueId v = 0; v < g_.values.size(); ++v) {
      if (first_[v] == kNever || base_[v] != 0) continue;
      const ValueId r = root(v);
      const std::int64_t bytes = block_bytes_[r] ? block_bytes_[r] : bytes_of(r);
      if (index[r] < 0) {
        index[r] = static_cast<int>(lives.size());
        lives.push_back({first_[r], last_[r], bytes});
      }
      Lifetime& life = lives[static_cast<std::size_t>(index[r])];
      life.first = std::min(life.first, first_[v]);
      life.last = std::max(life.last, last_[v]);
    }
    const MemoryLayout layout = options_.reuse ? lay_out(lives) : lay_out_apart(lives);
    offset_.assign(g_.values.size(), 0);
    for (ValueId v = 0; v < g_.values.size(); ++v)
      if (first_[v] != kNever && base_[v] == 0) offset_[v] = layout.offsets[static_cast<std::size_t>(index[root(v)])];
    body_.arena_bytes = layout.bytes;
    body_.report.arena_bytes = layout.bytes;
    body_.report.bound_bytes = layout.bound;
  }

  // ---- addresses -----------------------------------------------------------------------------------------

  void resolve(Place& p) const {
    if (moving_base_[p.base]) {
      p.base = moving_base_[p.base];
      return;
    }
    p.offset += offset_[p.base];
    p.base = base_[p.base];
  }

  void resolve() {
    for (PlannedStep& s : body_.steps)
      if (s.block_rows) place_blocks(s);
    for (Kernel& k : body_.kernels) {
      for (Kernel::Load& l : k.memory.loads) resolve(l.from);
      for (Kernel::Store& s : k.memory.stores) {
        resolve(s.to);
        s.window |= use_ != PlanFor::calls && s.to.base >= body_.bases.results;
      }
      for (Kernel::Total& t : k.memory.totals) resolve(t.to);
    }
    for (PlannedCall& c : body_.calls)
      for (std::vector<PlannedTensor>* list : {&c.in, &c.out})
        for (PlannedTensor& t : *list) {
          t.offset += offset_[t.base];
          t.base = base_[t.base];
        }
  }

  /// A kernel sees blocks of rows through a base of their own, which moves from block to block.
  void place_blocks(PlannedStep& s) {
    for (PlannedProduct& p : s.products) {
      PlannedTensor& out = body_.calls[static_cast<std::size_t>(p.call)].out[0];
      p.offset = offset_[out.base];
      moving_base_[out.base] = p.base;
    }
  }

  PlanBody& body_;
  Graph& g_;
  const PlanOptions& options_;
  PlanFor use_;
  Fused fused_;
  std::vector<std::uint32_t> base_;
  std::vector<std::int64_t> offset_;
  std::vector<std::int64_t> block_bytes_;   ///< by value: what a product that is computed in blocks needs; else 0
  std::vector<std::uint32_t> moving_base_;  ///< by value: the base of these blocks; else 0
  std::vector<std::size_t> first_, last_;
  std::vector<ValueId> alias_;  ///< by value: whose place it takes
};

}  // namespace

std::unique_ptr<const PlanBody> make_plan(Graph graph, const PlanOptions& options, PlanFor use) {
  auto body = std::make_unique<PlanBody>();
  passes::drop_detach(graph);
  passes::simplify(graph);
  check_bytes(graph.values);
  body->graph = std::move(graph);
  Builder(*body, options, use).run();
  return body;
}

}  // namespace ferrite::detail
