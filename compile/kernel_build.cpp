#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ferrite/compile/detail/kernel.h"

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

constexpr std::int64_t kScratchBytes = 24 << 10;  ///< of all slots of a tile together: half of a first cache

class Builder {
 public:
  Builder(const Graph& g, const Group& group, const Locations& where) : g_(g), group_(group), where_(where) {}

  Kernel run() {
    order();
    slot_of_.resize(group_.expressions.size(), -1);
    for (const int e : order_) emit(e);
    merge_axes();
    choose_tiles();
    classify();
    assign_scratch();
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

  int new_slot(std::int64_t bytes) {
    k_.slots.push_back({});
    k_.slots.back().bytes = bytes;
    return static_cast<int>(k_.slots.size() - 1);
  }

  void emit(int e) {
    const Expression& x = expression(e);
    Kernel::Instruction apply;
    for (std::size_t j = 0; j < x.operands.size(); ++j)
      apply.in[j] = static_cast<std::uint16_t>(operand(x, x.operands[j]));
    if (x.node) {
      apply.block = block_of(g_, *x.node);
      apply.slot = static_cast<std::uint16_t>(new_slot(size_of(x.dtype)));
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

  int operand(const Expression& x, const GroupOperand& o) {
    if (o.value == kNoValue) return literal(x, o);
    int slot = o.expression >= 0 ? slot_of_[static_cast<std::size_t>(o.expression)] : load(o);
    const Dtype dtype = g_.values[o.value].dtype;
    for (std::size_t f = filled_by_load(o); f < o.fills.size(); ++f) slot = fill(slot, o.fills[f], dtype);
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

  int load(const GroupOperand& o) {
    for (const Loaded& l : loaded_)
      if (l.operand->value == o.value && l.operand->map == o.map && l.operand->region == o.region &&
          same_fill(*l.operand, o))
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
    const int slot = new_slot(l.bytes);
    Kernel::Instruction i;
    i.step = Kernel::Step::load;
    i.slot = static_cast<std::uint16_t>(slot);
    i.index = static_cast<std::uint32_t>(k_.loads.size());
    k_.loads.push_back(l);
    k_.program.push_back(i);
    loaded_.push_back({&o, slot});
    return slot;
  }

  static bool same_fill(const GroupOperand& a, const GroupOperand& b) {
    if (a.fills.empty() || b.fills.empty()) return a.fills.empty() == b.fills.empty();
    const double x = a.fills[0].value.real();
    const double y = b.fills[0].value.real();
    return x == y && std::signbit(x) == std::signbit(y) && a.fills[0].value == b.fills[0].value;
  }

  int fill(int from, const Fill& f, Dtype dtype) {
    Kernel::Instruction i;
    i.step = Kernel::Step::fill;
    i.in[0] = static_cast<std::uint16_t>(from);
    i.index = static_cast<std::uint32_t>(k_.fillings.size());
    k_.fillings.push_back({f.box, size_of(dtype), repeated_line(f.value, dtype)});
    i.slot = static_cast<std::uint16_t>(new_slot(size_of(dtype)));
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
    i.slot = static_cast<std::uint16_t>(slot);
    i.index = static_cast<std::uint32_t>(k_.stores.size());
    k_.stores.push_back(s);
    k_.program.push_back(i);
  }

  // ---- axes and tiles ------------------------------------------------------------------------------------

  static bool mergeable(const Shape& strides, int k, std::int64_t extent) {
    return strides[k] == strides[k + 1] * extent;
  }
  static bool mergeable(const Box& b, int k, const Shape& extents) {
    return b.begin[k + 1] == 0 && b.end[k + 1] == extents[k + 1];
  }
  bool can_merge(int k) const {
    const Shape& e = k_.extents;
    const auto stride_ok = [&](const auto& x) { return mergeable(x.strides, k, e[k + 1]); };
    const auto box_ok = [&](const auto& x) { return mergeable(x.box, k, e); };
    return std::all_of(k_.loads.begin(), k_.loads.end(), stride_ok) &&
           std::all_of(k_.loads.begin(), k_.loads.end(), box_ok) &&
           std::all_of(k_.fillings.begin(), k_.fillings.end(), box_ok) &&
           std::all_of(k_.stores.begin(), k_.stores.end(), stride_ok);
  }
  static void merge_box(Box& b, int k, std::int64_t inner) {
    b.begin[k] *= inner;
    b.end[k] *= inner;
    b.begin.erase(k + 1);
    b.end.erase(k + 1);
  }
  void erase_axis(int k) {
    k_.extents.erase(k);
    for (Kernel::Load& l : k_.loads) l.strides.erase(k);
    for (Kernel::Store& s : k_.stores) s.strides.erase(k);
  }

  void merge_axes() {
    k_.extents = group_.domain.extents();
    drop_single_axes();
    for (int k = k_.extents.rank() - 2; k >= 0; --k) {
      if (!can_merge(k)) continue;
      const std::int64_t inner = k_.extents[k + 1];
      for (Kernel::Load& l : k_.loads) {
        l.strides[k] = l.strides[k + 1];
        merge_box(l.box, k, inner);
      }
      for (Kernel::Filling& f : k_.fillings) merge_box(f.box, k, inner);
      for (Kernel::Store& s : k_.stores) s.strides[k] = s.strides[k + 1];
      k_.extents[k] *= inner;
      erase_axis(k + 1);
    }
  }

  /// Axes of extent 1 move nothing, unless a box is empty there.
  void drop_single_axes() {
    const auto empty_at = [](const auto& list, int k) {
      return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.box.end[k] != 1; });
    };
    for (int k = k_.extents.rank() - 1; k >= 0; --k) {
      if (k_.extents[k] != 1 || empty_at(k_.loads, k) || empty_at(k_.fillings, k)) continue;
      erase_axis(k);
      for (Kernel::Load& l : k_.loads) erase_from(l.box, k);
      for (Kernel::Filling& f : k_.fillings) erase_from(f.box, k);
    }
    if (k_.extents.rank()) return;
    k_.extents = {1};
    for (Kernel::Load& l : k_.loads) {
      l.strides = {0};
      l.box = {{0}, {1}};
    }
    for (Kernel::Filling& f : k_.fillings) f.box = {{0}, {1}};
    for (Kernel::Store& s : k_.stores) s.strides = {1};
  }
  static void erase_from(Box& b, int k) {
    b.begin.erase(k);
    b.end.erase(k);
  }

  void choose_tiles() {
    k_.length = k_.extents[-1];
    k_.rows = k_.extents.numel() / k_.length;
    std::int64_t widest = 1;
    for (const Kernel::SlotInfo& s : k_.slots) widest = std::max(widest, s.bytes);
    const auto slots = static_cast<std::int64_t>(std::min<std::size_t>(k_.slots.size(), 12));
    k_.tile = std::clamp<std::int64_t>(kScratchBytes / (slots * widest) / 64 * 64, 256, 1024);
    if (k_.length > k_.tile || k_.rows == 1) {
      k_.tile_rows = 0;
      k_.pieces = (k_.length + k_.tile - 1) / k_.tile;
      return;
    }
    const std::int64_t fit = k_.tile / k_.length;
    const std::int64_t even = 16 / std::gcd(k_.length, std::int64_t{16});  // so many rows end on a line
    k_.tile_rows = std::min(k_.rows, fit >= even ? fit / even * even : fit);
  }

  // ---- slots ---------------------------------------------------------------------------------------------

  bool is_dense(const Shape& strides) const {
    const Shape wanted = k_.extents.strides();
    for (int k = 0; k < wanted.rank(); ++k)
      if (strides[k] != wanted[k] && k_.extents[k] != 1) return false;
    return true;
  }
  static bool all_zero(const Shape& strides) {
    return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
  }

  /// Which loads need no copy, and which results are computed where they belong.
  void classify() {
    std::vector<char> written(k_.slots.size());  // by an operation or a filling, so that a store may give it its place
    for (Kernel::Instruction& i : k_.program) {
      if (i.step == Kernel::Step::apply || i.step == Kernel::Step::fill) written[i.slot] = true;
      if (i.step == Kernel::Step::load) classify_load(i);
      if (i.step == Kernel::Step::store) {
        Kernel::Store& s = k_.stores[i.index];
        s.dense = is_dense(s.strides);
        Kernel::SlotInfo& slot = k_.slots[i.slot];
        if (!s.dense || !written[i.slot] || slot.kind != Kernel::Slot::scratch) continue;
        slot.kind = Kernel::Slot::direct;
        slot.output = true;
        slot.index = i.index;
      }
    }
    for (std::size_t s = 0; s < k_.slots.size(); ++s)
      if (k_.slots[s].kind == Kernel::Slot::direct) k_.directs.push_back(static_cast<std::uint16_t>(s));
    for (Kernel::Instruction& i : k_.program) {
      if (i.step != Kernel::Step::apply) continue;
      for (std::uint32_t j = 0; j < i.index; ++j) i.run[j] = k_.slots[i.in[j]].kind == Kernel::Slot::repeated ? 0 : 1;
    }
  }

  void classify_load(const Kernel::Instruction& i) {
    Kernel::Load& l = k_.loads[i.index];
    Kernel::SlotInfo& slot = k_.slots[i.slot];
    l.whole = true;
    for (int k = 0; k < k_.extents.rank(); ++k) l.whole &= l.box.begin[k] == 0 && l.box.end[k] == k_.extents[k];
    if (!l.whole) return;
    if (all_zero(l.strides) && !is_stored(i.slot)) {
      slot.kind = Kernel::Slot::repeated;
      slot.index = static_cast<std::uint32_t>(k_.literals.size() + k_.repeated_loads.size());
      k_.repeated_loads.push_back(i.index);
      return;
    }
    const bool cut_rows = k_.tile_rows == 0 && l.strides[-1] == 1;
    if (is_dense(l.strides) || cut_rows) {
      slot.kind = Kernel::Slot::direct;
      slot.index = i.index;
      return;
    }
    l.once = k_.tile_rows > 0;
    for (int k = 0; k + 1 < k_.extents.rank(); ++k) l.once &= l.strides[k] == 0;
  }

  /// Whether a slot is stored or filled as it is: then it must be a run.
  bool is_stored(std::uint16_t slot) const {
    return std::any_of(k_.program.begin(), k_.program.end(), [&](const Kernel::Instruction& i) {
      return (i.step == Kernel::Step::store && i.slot == slot) || (i.step == Kernel::Step::fill && i.in[0] == slot);
    });
  }

  /// Pieces of scratch memory are used again after the last read of what is in them.
  void assign_scratch() {
    const std::size_t n = k_.program.size();
    std::vector<std::size_t> last(k_.slots.size(), 0);
    for (std::size_t t = 0; t < n; ++t) {
      const Kernel::Instruction& i = k_.program[t];
      last[i.slot] = std::max(last[i.slot], t);
      const std::uint32_t reads = i.step == Kernel::Step::apply ? i.index : i.step == Kernel::Step::fill ? 1 : 0;
      for (std::uint32_t j = 0; j < reads; ++j) last[i.in[j]] = t;
    }
    std::vector<std::int64_t> free;
    for (std::size_t t = 0; t < n; ++t) {
      const Kernel::Instruction& i = k_.program[t];
      const bool writes = i.step != Kernel::Step::store;
      Kernel::SlotInfo& slot = k_.slots[i.slot];
      const bool owns = slot.kind == Kernel::Slot::scratch || (slot.kind == Kernel::Slot::direct && slot.output);
      const bool kept = i.step == Kernel::Step::load && k_.loads[i.index].once;  // lives through all tiles
      if (writes && owns && slot.scratch < 0) slot.scratch = kept ? k_.scratch_pieces++ : take(free);
      release(i, t, last, free);
    }
  }

  std::int64_t take(std::vector<std::int64_t>& free) {
    if (free.empty()) return k_.scratch_pieces++;
    const std::int64_t piece = free.back();
    free.pop_back();
    return piece;
  }

  void release(const Kernel::Instruction& i, std::size_t t, const std::vector<std::size_t>& last,
               std::vector<std::int64_t>& free) {
    const auto end = [&](std::uint16_t s) {
      Kernel::SlotInfo& slot = k_.slots[s];
      if (last[s] != t || slot.scratch < 0 || released_.size() <= s || released_[s]) return;
      released_[s] = true;
      free.push_back(slot.scratch);
    };
    released_.resize(k_.slots.size());
    const bool kept = i.step == Kernel::Step::load && k_.loads[i.index].once;
    if (kept) once_.push_back(i.slot);
    const std::uint32_t reads = i.step == Kernel::Step::apply ? i.index : i.step == Kernel::Step::fill ? 1 : 0;
    for (std::uint32_t j = 0; j < reads; ++j)
      if (std::find(once_.begin(), once_.end(), i.in[j]) == once_.end()) end(i.in[j]);
    if (i.step == Kernel::Step::store && std::find(once_.begin(), once_.end(), i.slot) == once_.end()) end(i.slot);
  }

  struct Loaded {
    const GroupOperand* operand;
    int slot;
  };

  const Graph& g_;
  const Group& group_;
  const Locations& where_;
  Kernel k_;
  std::vector<int> order_;
  std::vector<int> slot_of_;
  std::vector<Loaded> loaded_;
  std::vector<char> released_;
  std::vector<std::uint16_t> once_;
};

}  // namespace

Kernel build_kernel(const Graph& g, const Group& group, const Locations& where) {
  return Builder(g, group, where).run();
}

}  // namespace ferrite::detail
