#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ferrite/compile/fuse/kernel.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {

RepeatedLine repeated_line(const Scalar& s, Dtype dtype) {
  RepeatedLine line;
  visit_dtype(dtype, [&](auto zero) {
    const auto v = s.as<decltype(zero)>();
    for (std::int64_t at = 0; at < kLineBytes; at += static_cast<std::int64_t>(sizeof v))
      std::memcpy(line.bytes + at, &v, sizeof v);
  });
  return line;
}

namespace {

constexpr std::int64_t kFewElements = 32;  ///< up to here, beginning a chain costs more than it saves

class Builder {
 public:
  Builder(const Graph& g, const Group& group, const Locations& where) : g_(g), group_(group), where_(where) {}

  Kernel run() {
    order();
    slot_of_.resize(group_.expressions.size(), -1);
    const std::vector<char> live = live_expressions(group_);
    for (const int e : order_)
      if (live[static_cast<std::size_t>(e)]) emit(e);
    k_.extents = group_.domain.extents();
    k_.outer = group_.domain.outer();
    k_.reduced = group_.domain.has_rows() ? group_.domain.row_elements() : 0;
    k_.across = group_.across;
    k_.across_elements = group_.across_elements;
    if (k_.across != Across::none) k_.outer = across_axes();
    if (k_.extents.numel() > kFewElements) chain_operations(k_);
    lay_out_kernel(k_);
    return std::move(k_);
  }

 private:
  const Expression& expression(int e) const { return group_.expressions[static_cast<std::size_t>(e)]; }

  void order() {
    order_.resize(group_.expressions.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return expression(a).order < expression(b).order; });
    // Copies stand at the position of their node and read what stands before it.
  }

  int new_slot(std::int64_t bytes, bool of_rows = false) {
    if (k_.slots.size() > std::numeric_limits<std::uint16_t>::max())  // instructions name slots by 16 bits
      throw Error(
          "plan: a fused kernel has more than 65536 operands and intermediates; use PlanOptions{.fuse = false}");
    k_.slots.push_back({});
    k_.slots.back().bytes = bytes;
    k_.slots.back().of_rows = of_rows;
    return static_cast<int>(k_.slots.size() - 1);
  }

  void emit(int e) {
    const Expression& x = expression(e);
    Kernel::Instruction apply;
    apply.of_rows = x.of_rows;
    for (std::size_t j = 0; j < x.operands.size(); ++j)
      apply.in[j] = static_cast<std::uint16_t>(operand(x, x.operands[j]));
    if (x.reduces && group_.across != Across::none) return total(e, x, apply);
    if (x.node) {
      if (x.reduces) {
        apply.step = Kernel::Step::reduce;
        apply.reduction = x.node->op->row_reduction(x.dtype);
      } else {
        apply.op = x.node->op;
        apply.block = block_of(g_, *x.node);
      }
      apply.slot = static_cast<std::uint16_t>(new_slot(size_of(x.dtype), x.of_rows));
      apply.index = static_cast<std::uint32_t>(x.operands.size());
      slot_of_[static_cast<std::size_t>(e)] = apply.slot;
      k_.program.push_back(apply);
      ++k_.operations;
    } else {
      slot_of_[static_cast<std::size_t>(e)] = apply.in[0];
    }
    for (const GroupOutput& o : group_.outputs)
      if (o.expression == e) store(x, o, slot_of_[static_cast<std::size_t>(e)]);
  }

  /// The first axis of the domain that is not of the first kind: reduced ones before kept ones, or the other way.
  int across_axes() const {
    const Shape& extents = group_.domain.extents();
    std::int64_t first =
        group_.across == Across::columns ? group_.across_elements : extents.numel() / group_.across_elements;
    int k = 0;
    for (; first > 1; ++k) first /= extents[k];
    return k;
  }

  void total(int e, const Expression& x, Kernel::Instruction i) {
    Kernel::Total t;
    t.slot = i.in[0];
    t.dtype = x.dtype;
    t.kind = kind_of(*x.node->op);
    t.rows = row_reduction(t.kind, t.dtype);
    for (const GroupOutput& o : group_.outputs)
      if (o.expression == e) t.to = where_.place_of(o.value);
    i.step = Kernel::Step::across;
    i.slot = i.in[0];
    k_.totals.push_back(t);
    k_.program.push_back(i);
    ++k_.operations;
  }

  static Reduction kind_of(const Primitive& op) {
    if (&op == ops::sum) return Reduction::sum;
    if (&op == ops::prod) return Reduction::prod;
    return &op == ops::amax ? Reduction::max : Reduction::min;
  }

  /// The slot that an expression reads, of rows where it works on rows.
  int operand(const Expression& x, const GroupOperand& o) {
    if (o.value == kNoValue) return literal(x, o);
    const bool of_rows = x.of_rows && !x.reduces;
    int slot = o.expression >= 0 ? slot_of_[static_cast<std::size_t>(o.expression)] : load(o, of_rows);
    const Dtype dtype = g_.values[o.value].dtype;
    if (!of_rows && k_.slots[static_cast<std::size_t>(slot)].of_rows) slot = spread(slot);
    for (std::size_t f = filled_by_load(o); f < o.fills.size(); ++f) slot = fill(slot, o.fills[f], dtype, of_rows);
    return slot;
  }

  int spread(int from) {
    for (const auto& [rows, full] : spread_)
      if (rows == from) return full;
    Kernel::Instruction i;
    i.step = Kernel::Step::spread;
    i.in[0] = static_cast<std::uint16_t>(from);
    const int slot = new_slot(k_.slots[static_cast<std::size_t>(from)].bytes);
    i.slot = static_cast<std::uint16_t>(slot);
    k_.program.push_back(i);
    spread_.emplace_back(from, slot);
    return slot;
  }

  /// A literal takes the dtype of the operands beside it.
  int literal(const Expression& x, const GroupOperand& o) {
    Dtype dtype = x.dtype;
    if (dtype == Dtype::boolean) dtype = g_.values[x.node->in[0]].dtype;
    const int slot = new_slot(size_of(dtype));
    k_.slots.back().kind = Kernel::Slot::repeated;
    k_.slots.back().index = static_cast<std::uint32_t>(k_.literals.size());
    k_.literals.push_back(repeated_line(o.literal, dtype));
    return slot;
  }

  /// A padding of a value in memory is part of its load.
  static std::size_t filled_by_load(const GroupOperand& o) { return o.expression >= 0 || o.fills.empty() ? 0 : 1; }

  int load(const GroupOperand& o, bool of_rows) {
    for (const Loaded& l : loaded_)
      if (l.of_rows == of_rows && l.operand->value == o.value && l.operand->map == o.map &&
          l.operand->region == o.region && same_fill(*l.operand, o))
        return l.slot;
    Kernel::Load l;
    const Dtype dtype = g_.values[o.value].dtype;
    const Shape& extents = group_.domain.extents();
    const Shape strides = where_.strides_of(o.value);
    l.bytes = size_of(dtype);
    l.from = where_.place_of(o.value);
    for (int a = 0; a < o.map.shape.rank(); ++a) l.from.offset += o.map.offset[a] * strides[a] * l.bytes;
    for (int k = 0; k < extents.rank(); ++k) {
      const std::int64_t a = o.map.axis[k];
      l.strides.push_back(a < 0 ? 0 : o.map.coefficient[k] * strides[static_cast<int>(a)]);
    }
    l.box = o.region;
    l.whole = is_whole(l.box, extents);
    l.outside = repeated_line(filled_by_load(o) ? o.fills[0].value : Scalar(0), dtype);
    l.of_rows = of_rows;
    const int slot = new_slot(l.bytes, of_rows);
    Kernel::Instruction i;
    i.step = Kernel::Step::load;
    i.of_rows = of_rows;
    i.slot = static_cast<std::uint16_t>(slot);
    i.index = static_cast<std::uint32_t>(k_.loads.size());
    k_.loads.push_back(l);
    k_.program.push_back(i);
    loaded_.push_back({&o, slot, of_rows});
    return slot;
  }

  static bool same_fill(const GroupOperand& a, const GroupOperand& b) {
    if (a.fills.empty() || b.fills.empty()) return a.fills.empty() == b.fills.empty();
    const double x = a.fills[0].value.real();
    const double y = b.fills[0].value.real();
    return x == y && std::signbit(x) == std::signbit(y) && a.fills[0].value == b.fills[0].value;
  }

  int fill(int from, const Fill& f, Dtype dtype, bool of_rows) {
    Kernel::Instruction i;
    i.step = Kernel::Step::fill;
    i.of_rows = of_rows;
    i.in[0] = static_cast<std::uint16_t>(from);
    i.index = static_cast<std::uint32_t>(k_.fillings.size());
    k_.fillings.push_back({f.box, size_of(dtype), of_rows, repeated_line(f.value, dtype)});
    i.slot = static_cast<std::uint16_t>(new_slot(size_of(dtype), of_rows));
    k_.program.push_back(i);
    return i.slot;
  }

  void store(const Expression& x, const GroupOutput& o, int slot) {
    Kernel::Store s;
    s.bytes = size_of(x.dtype);
    s.to = where_.place_of(o.value);
    const Shape& extents = group_.domain.extents();
    Shape strides = where_.strides_of(o.value);
    s.window = o.window;
    if (o.window) {
      s.to.offset += o.layout.offset * s.bytes;
      strides = o.layout.strides;
    }
    for (int k = 0; k < extents.rank(); ++k) {
      const std::int64_t a = x.map.axis[k];
      s.strides.push_back(a < 0 ? 0 : x.map.coefficient[k] * strides[static_cast<int>(a)]);
    }
    Kernel::Instruction i;
    i.step = Kernel::Step::store;
    i.of_rows = s.of_rows = x.of_rows;
    i.slot = static_cast<std::uint16_t>(slot);
    i.index = static_cast<std::uint32_t>(k_.stores.size());
    k_.stores.push_back(s);
    k_.program.push_back(i);
  }

  struct Loaded {
    const GroupOperand* operand;
    int slot;
    bool of_rows;
  };

  const Graph& g_;
  const Group& group_;
  const Locations& where_;
  Kernel k_;
  std::vector<int> order_;
  std::vector<int> slot_of_;
  std::vector<Loaded> loaded_;
  std::vector<std::pair<int, int>> spread_;
};

}  // namespace

Kernel build_kernel(const Graph& g, const Group& group, const Locations& where) {
  return Builder(g, group, where).run();
}

}  // namespace ferrite::detail
