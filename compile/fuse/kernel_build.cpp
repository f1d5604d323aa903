/// From a group to its kernel: the program as written, then stage by stage to one that runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ferrite/compile/fuse/detail/kernel_stages.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {

namespace {

constexpr std::int64_t kFewElements = 32;  ///< up to here, beginning a chain costs more than it saves

RepeatedLine repeated_line(const Scalar& s, Dtype dtype) {
  RepeatedLine line;
  visit_dtype(dtype, [&](auto zero) {
    const auto v = s.as<decltype(zero)>();
    for (std::int64_t at = 0; at < kLineBytes; at += static_cast<std::int64_t>(sizeof v))
      std::memcpy(line.bytes + at, &v, sizeof v);
  });
  return line;
}

/// Expressions in order: copies stand at the position of their node and read what stands before it.
std::vector<std::size_t> in_order(const Group& group) {
  std::vector<std::size_t> order(group.expressions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t e) { return group.expressions[e].order; });
  return order;
}

/// The first axis of the domain that is not of the first kind: reduced axes before those that stay, or the reverse.
int across_axes(const Group& group) {
  const Shape& extents = group.domain.extents();
  std::int64_t first =
      group.across == Across::columns ? group.across_elements : extents.numel() / group.across_elements;
  int k = 0;
  for (; first > 1; ++k) first /= extents[k];
  return k;
}

Kernel::Axes axes_of(const Group& group) {
  const Domain& domain = group.domain;
  return {.extents = domain.extents(),
          .row_extents = {},
          .outer = group.across == Across::none ? domain.outer() : across_axes(group),
          .reduced = domain.has_rows() ? domain.row_elements() : 0,
          .across = group.across,
          .across_elements = group.across_elements};
}

const Reduction& kind_of(const Primitive& op) {
  if (&op == ops::sum) return sum_in_use;
  if (&op == ops::prod) return prod_in_use;
  return &op == ops::amax ? max_in_use : min_in_use;
}

/// Steps of the domain's axes, and the offset, in a buffer of these strides that a map leads to; in elements.
Layout layout_through(const IndexMap& map, const Shape& strides) {
  Layout layout;
  for (int a = 0; a < map.shape.rank(); ++a) layout.offset += map.offset[a] * strides[a];
  for (int k = 0; k < map.axis.rank(); ++k)
    layout.strides.push_back(map.axis[k] < 0 ? 0 : map.coefficient[k] * strides[static_cast<int>(map.axis[k])]);
  return layout;
}

/// A padding of a value in memory is part of its load.
std::size_t filled_by_load(const GroupOperand& o) { return o.expression >= 0 || o.fills.empty() ? 0 : 1; }

bool same_load(const GroupOperand& a, const GroupOperand& b) {
  if (a.value != b.value || !(a.map == b.map) || !(a.region == b.region) || a.fills.empty() != b.fills.empty())
    return false;
  if (a.fills.empty()) return true;
  const Scalar &x = a.fills[0].value, &y = b.fills[0].value;
  return x == y && x.real() == y.real() && std::signbit(x.real()) == std::signbit(y.real());
}

/// Writes the program of a group, expression by expression.
class Writing {
 public:
  Writing(const Graph& g, const Group& group, std::span<const Window> windows)
      : g_(g), group_(group), windows_(windows) {}

  WrittenKernel run() {
    slot_of_.resize(group_.expressions.size());
    const std::vector<char> live = live_expressions(group_);
    for (const std::size_t e : in_order(group_))
      if (live[e]) write(e);
    to_.axes = axes_of(group_);
    return std::move(to_);
  }

 private:
  std::uint16_t new_slot(std::int64_t bytes, bool of_rows = false) {
    if (to_.slots.all.size() > std::numeric_limits<std::uint16_t>::max())  // instructions name slots by 16 bits
      throw Error(
          "plan: a fused kernel has more than 65536 operands and intermediates; use PlanOptions{.fuse = false}");
    to_.slots.all.push_back({.bytes = bytes, .of_rows = of_rows});
    return static_cast<std::uint16_t>(to_.slots.all.size() - 1);
  }

  Kernel::Instruction& add(Kernel::Step step, std::uint16_t slot, std::size_t index = 0) {
    Kernel::Instruction& i = to_.program.instructions.emplace_back();
    i.step = step;
    i.slot = slot;
    i.index = static_cast<std::uint32_t>(index);
    return i;
  }

  Shape strides_of(ValueId v) const {
    return windows_[v].base == v ? windows_[v].strides : g_.values[v].shape.strides();
  }

  void write(std::size_t e) {
    const Expression& x = group_.expressions[e];
    Kernel::Instruction apply;
    apply.of_rows = x.of_rows;
    apply.index = static_cast<std::uint32_t>(x.operands.size());
    for (std::size_t j = 0; j < x.operands.size(); ++j) apply.in[j] = operand(x, x.operands[j]);
    if (x.reduces && group_.across != Across::none) return total(e, x, apply.in[0]);
    slot_of_[e] = x.node ? new_slot(size_of(x.dtype), x.of_rows) : apply.in[0];
    if (x.node) {
      apply.slot = slot_of_[e];
      if (x.reduces) {
        apply.step = Kernel::Step::reduce;
        apply.reduction = x.node->op->row_reduction(x.dtype);
      } else {
        apply.op = x.node->op;
        apply.block = block_of(g_, *x.node);
      }
      to_.program.instructions.push_back(apply);
    }
    for (const GroupOutput& o : group_.outputs)
      if (static_cast<std::size_t>(o.expression) == e) store(x, o, slot_of_[e]);
  }

  void total(std::size_t e, const Expression& x, std::uint16_t slot) {
    Kernel::Total t{.slot = slot, .kind = &kind_of(*x.node->op), .dtype = x.dtype};
    t.rows = row_reduction(*t.kind, t.dtype);
    for (const GroupOutput& o : group_.outputs)
      if (static_cast<std::size_t>(o.expression) == e) t.to.base = o.value;
    Kernel::Instruction& i = add(Kernel::Step::across, slot);
    i.of_rows = x.of_rows;
    i.in[0] = slot;
    to_.memory.totals.push_back(t);
  }

  /// The slot that an expression reads, of rows where it works on rows.
  std::uint16_t operand(const Expression& x, const GroupOperand& o) {
    if (o.value == kNoValue) return literal(x, o);
    const bool of_rows = x.of_rows && !x.reduces;
    std::uint16_t slot = o.expression >= 0 ? slot_of_[static_cast<std::size_t>(o.expression)] : load(o, of_rows);
    if (!of_rows && to_.slots[slot].of_rows) slot = spread(slot);
    for (std::size_t f = filled_by_load(o); f < o.fills.size(); ++f)
      slot = fill(slot, o.fills[f], g_.values[o.value].dtype, of_rows);
    return slot;
  }

  std::uint16_t spread(std::uint16_t from) {
    for (const auto& [rows, full] : spread_)
      if (rows == from) return full;
    const std::uint16_t slot = new_slot(to_.slots[from].bytes);
    add(Kernel::Step::spread, slot).in[0] = from;
    spread_.emplace_back(from, slot);
    return slot;
  }

  /// A literal takes the dtype of the operands beside it.
  std::uint16_t literal(const Expression& x, const GroupOperand& o) {
    Dtype dtype = x.dtype;
    if (dtype == Dtype::boolean) dtype = g_.values[x.node->in[0]].dtype;
    const std::uint16_t slot = new_slot(size_of(dtype));
    to_.slots[slot].kind = Kernel::Slot::repeated;
    to_.slots[slot].index = static_cast<std::uint32_t>(to_.slots.literals.size());
    to_.slots.literals.push_back(repeated_line(o.literal, dtype));
    return slot;
  }

  std::uint16_t load(const GroupOperand& o, bool of_rows) {
    for (const Loaded& l : loaded_)
      if (l.of_rows == of_rows && same_load(*l.operand, o)) return l.slot;
    const Dtype dtype = g_.values[o.value].dtype;
    const Layout layout = layout_through(o.map, strides_of(o.value));
    Kernel::Load l{.from = {o.value, layout.offset * size_of(dtype)},
                   .strides = layout.strides,
                   .box = o.region,
                   .of_rows = of_rows,
                   .bytes = size_of(dtype),
                   .outside = repeated_line(filled_by_load(o) ? o.fills[0].value : Scalar(0), dtype)};
    const std::uint16_t slot = new_slot(l.bytes, of_rows);
    add(Kernel::Step::load, slot, to_.memory.loads.size()).of_rows = of_rows;
    to_.memory.loads.push_back(l);
    loaded_.push_back({&o, slot, of_rows});
    return slot;
  }

  std::uint16_t fill(std::uint16_t from, const Fill& f, Dtype dtype, bool of_rows) {
    const std::uint16_t slot = new_slot(size_of(dtype), of_rows);
    Kernel::Instruction& i = add(Kernel::Step::fill, slot, to_.memory.fillings.size());
    i.of_rows = of_rows;
    i.in[0] = from;
    to_.memory.fillings.push_back({f.box, size_of(dtype), of_rows, repeated_line(f.value, dtype)});
    return slot;
  }

  void store(const Expression& x, const GroupOutput& o, std::uint16_t slot) {
    Kernel::Store s;
    s.bytes = size_of(x.dtype);
    s.to.base = o.value;
    s.window = o.window;
    s.of_rows = x.of_rows;
    if (o.window) s.to.offset += o.layout.offset * s.bytes;
    s.strides = layout_through(x.map, o.window ? o.layout.strides : strides_of(o.value)).strides;
    add(Kernel::Step::store, slot, to_.memory.stores.size()).of_rows = x.of_rows;
    to_.memory.stores.push_back(s);
  }

  struct Loaded {
    const GroupOperand* operand;
    std::uint16_t slot;
    bool of_rows;
  };

  const Graph& g_;
  const Group& group_;
  std::span<const Window> windows_;  ///< by value
  WrittenKernel to_;
  std::vector<std::uint16_t> slot_of_;  ///< by expression
  std::vector<Loaded> loaded_;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> spread_;  ///< of rows, of all elements
};

}  // namespace

Kernel build_kernel(const Graph& g, const Group& group, std::span<const Window> windows) {
  WrittenKernel written = Writing(g, group, windows).run();
  if (written.axes.extents.numel() > kFewElements)
    written.program = with_chains(std::move(written.program), written.slots);
  MergedAxes merged = merge_axes(std::move(written.axes), std::move(written.memory));
  Kernel k;
  k.axes = merged.axes;
  k.tiling = choose_tiles(merged, written.slots, written.program);
  PlacedSlots placed = place_slots(std::move(merged), std::move(written.slots), k.tiling, written.program);
  k.program = resolve_program(std::move(written.program), placed, k.tiling);
  k.slots = assign_scratch(std::move(placed.slots), placed.memory, k.tiling, k.program);
  k.memory = std::move(placed.memory);
  return k;
}

}  // namespace ferrite::detail
