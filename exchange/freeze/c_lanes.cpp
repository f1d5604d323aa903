/// Finds concatenations that products read, and lays blocks of steps channel by channel.
#include "ferrite/exchange/freeze/c_lanes.h"

#include <algorithm>
#include <set>

#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {
namespace {

namespace ops = ferrite::detail::ops;
using Step = LoweredInstruction::Step;

// ---- concatenations -------------------------------------------------------------------------------------------

/// A piece of a concatenation and where it begins on the last axis.
struct Piece {
  std::int64_t first;
  LoweredWindow window;
};

/// Returns what a loop that only copies writes into one value, a concatenation of rows; nothing for other loops.
std::vector<Piece> copied_pieces(const LoweredProgram& p, const LoweredLoop& l, ValueId v) {
  const Shape& shape = p.graph.values[v].shape;
  if (shape.rank() < 2 || l.extents.rank() > 2 || l.reduced || l.across != LoweredLoop::Across::none) return {};
  const std::int64_t K = shape[-1], M = shape.numel() / std::max<std::int64_t>(K, 1);
  std::map<std::size_t, const LoweredAccess*> loads;
  std::vector<Piece> pieces;
  for (const LoweredInstruction& i : l.instructions) {
    if (i.step == Step::load) loads[i.slot] = &l.accesses[i.access];
    if (i.step == Step::load) continue;
    if (i.step != Step::store || !loads.contains(i.slot)) return {};
    const LoweredAccess &to = l.accesses[i.access], &from = *loads[i.slot];
    if (to.value != v || !to.whole || !from.whole || from.of_rows || to.of_rows) return {};
    std::int64_t rows = 1, count = 1, row = 0, column = 0;
    for (int k = 0; k < l.extents.rank(); ++k) {
      const std::int64_t n = l.extents[k];
      if (n == 1) continue;
      if (to.strides[k] == K && n == M && K > 1) {
        rows = n, row = from.strides[k];
      } else if (to.strides[k] == 1 && n <= K) {
        count = n, column = from.strides[k];
      } else {
        return {};
      }
    }
    if (rows != M || to.offset + count > K) return {};
    pieces.push_back({to.offset, {from.value, from.offset, {{M, count}, p.graph.values[v].dtype}, {row, column}}});
  }
  return pieces;
}

/// Returns whether every step that reads a value is a product of it, as it is, by something else.
bool only_multiplied(const LoweredProgram& p, ValueId v) {
  if (std::ranges::find(p.graph.outputs, v) != p.graph.outputs.end()) return false;
  const std::int64_t K = p.graph.values[v].shape[-1], M = p.graph.values[v].shape.numel() / K;
  for (const LoweredStep& s : p.steps) {
    for (const LoweredInstruction& i : s.loop.instructions)
      if (i.step == Step::load && s.loop.accesses[i.access].value == v) return false;
    for (std::size_t k = 0; k < s.in.size(); ++k) {
      const LoweredWindow& w = s.in[k];
      if (w.value != v) continue;
      if (s.node->op != ops::matmul || k != 0 || w.offset != 0 || w.spec.shape.rank() < 2) return false;
      if (w.spec.shape[-1] != K || w.spec.shape.numel() != M * K || (K > 1 && w.strides[-1] != 1)) return false;
      for (int a = 0; a + 1 < w.spec.shape.rank(); ++a)
        if (w.spec.shape[a] == M && M > 1 && w.strides[a] != K) return false;
    }
  }
  return true;
}

}  // namespace

std::map<ValueId, std::vector<LoweredWindow>> joined_rows(const LoweredProgram& program) {
  std::map<ValueId, std::vector<LoweredWindow>> all;
  for (const LoweredStep& s : program.steps) {
    if (!s.is_loop) continue;
    std::set<ValueId> stored;
    for (const LoweredInstruction& i : s.loop.instructions)
      if (i.step == Step::store || i.step == Step::across) stored.insert(s.loop.accesses[i.access].value);
    if (stored.size() != 1) continue;
    const ValueId v = *stored.begin();
    std::vector<Piece> pieces = copied_pieces(program, s.loop, v);
    std::ranges::sort(pieces, {}, &Piece::first);
    std::int64_t end = 0;
    std::vector<LoweredWindow> windows;
    for (const Piece& piece : pieces) {
      if (piece.first != end) break;
      end += piece.window.spec.shape[1];
      windows.push_back(piece.window);
    }
    if (windows.size() < 2 || windows.size() != pieces.size() || end != program.graph.values[v].shape[-1]) continue;
    if (only_multiplied(program, v)) all.emplace(v, std::move(windows));
  }
  return all;
}

std::optional<LanesProduct> lanes_product(const LoweredStep& s) {
  if (s.is_loop || s.node->op != ops::matmul || !is_float(s.out[0].spec.dtype)) return {};
  const LoweredWindow &a = s.in[0], &b = s.in[1], &y = s.out[0];
  const int ra = a.spec.shape.rank(), ry = y.spec.shape.rank();
  if (ra < 2 || b.spec.shape.rank() < 2) return {};
  for (int k = 0; k + 2 < b.spec.shape.rank(); ++k)
    if (b.spec.shape[k] != 1) return {};
  LanesProduct p{.terms = a.spec.shape[-1], .columns = b.spec.shape[-1]};
  for (int k = 0; k + 1 < ry; ++k) {
    if (y.spec.shape[k] == 1) continue;
    const int of_a = k - (ry - ra);
    if (p.steps != 0 || of_a < 0 || a.spec.shape[of_a] != y.spec.shape[k]) return {};
    p.steps = y.spec.shape[k], p.a_step = a.strides[of_a], p.y_step = y.strides[k];
  }
  if (p.steps == 0 || p.steps % 16 != 0) return {};
  p.a_term = a.strides[-1], p.y_column = y.strides[-1];
  p.b_term = b.strides[-2], p.b_column = b.strides[-1];
  return p;
}

std::int64_t widest_product(const FrozenProgram& program) {
  std::int64_t most = 0;
  for (const LoweredStep& s : program.lowered.steps)
    if (const auto p = lanes_product(s)) most = std::max(most, p->columns);
  return most;
}

namespace {

// ---- layouts --------------------------------------------------------------------------------------------------

/// Where a domain lies in a value: the value's axis on which each axis of the domain walks, -1 for none.
struct Walk {
  std::vector<int> axis;
  std::int64_t offset = 0;
  Shape strides;
  int split = -1;  ///< an axis of the domain that walks on two axes of the value and must be split
  std::int64_t inner = 0;
};

/// The layouts of the values of a program, and which of their axes are time.
class Layouts {
 protected:
  explicit Layouts(const FrozenProgram& p) : p_(p), graph_(p.lowered.graph), is_block_(p.steps > 1) {}

  /// Lays the frames of a line next to each other, its channels `channel` elements apart.
  void set_line(ValueId v, std::int64_t channel) {
    layouts_[v] = inner(v, 0, channel);
    if (is_block_) time_[v] = 0;
  }
  bool is_known(ValueId v) const { return layouts_.contains(v) || time_.contains(v); }
  Shape layout(ValueId v) const {
    const auto at = layouts_.find(v);
    return at == layouts_.end() ? graph_.values[v].shape.strides() : at->second;
  }
  /// Notes that a result has an axis of time.
  bool has_time(ValueId v, int axis) {
    if (const auto at = time_.find(v); at != time_.end()) return at->second == axis;
    time_[v] = axis;
    const bool given = std::ranges::find(p_.outputs, v) != p_.outputs.end();
    for (const FrozenState& s : p_.states)
      if (s.next == v && s.channel == 0 && s.keeping != Keeping::line) return false;
    if (!given && !layouts_.contains(v)) layouts_[v] = inner(v, axis, graph_.values[v].shape[axis]);
    return true;
  }

  /// Finds the axes of a value on which a domain walks; nullopt if that cannot be said.
  std::optional<Walk> walk(ValueId v, std::int64_t offset, const Shape& extents, const Shape& strides) const {
    const Shape &shape = graph_.values[v].shape, dense = shape.strides();
    if (offset < 0 || offset >= std::max<std::int64_t>(shape.numel(), 1)) return {};
    Shape first = Shape::filled(shape.rank(), 0), most;
    for (int d = 0; d < shape.rank(); ++d)
      if (shape[d] > 1) first[d] = offset / dense[d] % shape[d];
    most = first;
    Walk w{.axis = std::vector<int>(static_cast<std::size_t>(extents.rank()), -1), .strides = strides};
    const Shape to = layout(v);
    for (int k = 0; k < extents.rank(); ++k) {
      if (extents[k] == 1 || strides[k] == 0) continue;
      int on = -1;
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] > 1 && dense[d] <= strides[k] && (on < 0 || dense[d] > dense[on])) on = d;
      if (on < 0 || strides[k] % dense[on] != 0) return {};
      const std::int64_t factor = strides[k] / dense[on];
      if (most[on] + factor * (extents[k] - 1) >= shape[on]) {
        if (first[on] != 0 || shape[on] % factor != 0 || extents[k] % (shape[on] / factor) != 0) return {};
        w.split = k, w.inner = shape[on] / factor;
        return w;
      }
      most[on] += factor * (extents[k] - 1);
      w.axis[static_cast<std::size_t>(k)] = on;
      w.strides[k] = factor * to[on];
    }
    for (int d = 0; d < shape.rank(); ++d) w.offset += first[d] * to[d];
    return w;
  }
  /// Brings a window to the layout of its value. Returns false if that cannot be done.
  bool turn_window(LoweredWindow& w) const {
    if (!is_known(w.value)) return true;
    const auto on = walk(w.value, w.offset, w.spec.shape, w.strides);
    if (!on || on->split >= 0) return false;
    w.offset = on->offset, w.strides = on->strides;
    return true;
  }

  const FrozenProgram& p_;
  const Graph& graph_;
  bool is_block_;
  std::map<ValueId, int> time_;       ///< the axis of time of values that have one
  std::map<ValueId, Shape> layouts_;  ///< strides of values that are not row-major

 private:
  /// Returns strides in which an axis is the innermost one and the other ones lie `row` elements apart.
  Shape inner(ValueId v, int axis, std::int64_t row) const {
    const Shape& shape = graph_.values[v].shape;
    Shape strides = Shape::filled(shape.rank(), 0);
    for (int k = shape.rank() - 1; k >= 0; --k)
      if (k != axis) strides[k] = row, row *= shape[k];
    strides[axis] = 1;
    return strides;
  }
};

/// Gives the values of a program other layouts, and its accesses the offsets and strides in them.
class Turning : Layouts {
 public:
  explicit Turning(const FrozenProgram& p) : Layouts(p) {}

  /// Returns false if some operation cannot do that. `channels` holds the distances of the channels of lines.
  bool run(const std::vector<std::int64_t>& channels) {
    joined_ = p_.joined;
    for (std::size_t k = 0; k < p_.states.size(); ++k) {
      if (channels[k] == 0) continue;
      for (const ValueId v : {p_.states[k].now, p_.states[k].next}) set_line(v, channels[k]);
    }
    if (is_block_)
      for (const ValueId v : p_.inputs) time_[v] = 0;
    for (const LoweredStep& s : p_.lowered.steps) {
      steps_.push_back(s);
      if (!(s.is_loop ? turn_loop(steps_.back()) : turn_call(steps_.back()))) return false;
    }
    for (auto& [v, windows] : joined_)
      for (LoweredWindow& w : windows)
        if (!turn_window(w)) return false;
    return true;
  }
  void finish(FrozenProgram& p) {
    p.lowered.steps = std::move(steps_);
    p.joined = std::move(joined_);
    p.lanes = is_block_;
  }

 private:
  // ---- operations that run alone ------------------------------------------------------------------------------

  bool turn_call(LoweredStep& s) {
    if (s.node->op == &append_operation()) {
      for (LoweredWindow* w : {&s.in[0], &s.in[1], &s.out[0]})
        if (!turn_window(*w)) return false;
      return true;
    }
    if (!is_block_) {
      for (LoweredWindow& w : s.in)
        if (layouts_.contains(w.value) && (s.node->op != ops::matmul || !turn_window(w))) return false;
      return true;
    }
    return turn_product(s);
  }
  bool turn_product(LoweredStep& s) {
    if (s.node->op != ops::matmul || !lanes_product(s) || is_known(s.in[1].value)) return false;
    LoweredWindow &a = s.in[0], &y = s.out[0];
    const bool joined = joined_.contains(a.value);
    const auto of_a = joined ? std::nullopt : walk(a.value, a.offset, a.spec.shape, a.strides);
    const auto of_y = walk(y.value, y.offset, y.spec.shape, y.strides);
    if (!of_y || of_y->split >= 0 || (joined ? !pieces_have_time(a.value) : !of_a || !time_.contains(a.value)))
      return false;
    const int lead = y.spec.shape.rank() - a.spec.shape.rank();
    for (int k = 0; k + 1 < y.spec.shape.rank(); ++k) {
      if (y.spec.shape[k] == 1) continue;
      if (!joined && of_a->axis[static_cast<std::size_t>(k - lead)] != time_.at(a.value)) return false;
      if (!has_time(y.value, of_y->axis[static_cast<std::size_t>(k)])) return false;
    }
    return (joined || turn_window(a)) && turn_window(y);
  }
  /// Returns whether the rows of all pieces of a concatenation are steps.
  bool pieces_have_time(ValueId v) const {
    return std::ranges::all_of(joined_.at(v), [this](const LoweredWindow& piece) {
      const auto at = time_.find(piece.value);
      const auto on = walk(piece.value, piece.offset, piece.spec.shape, piece.strides);
      return at != time_.end() && on && on->split < 0 && on->axis[0] == at->second;
    });
  }

  // ---- loops ----------------------------------------------------------------------------------------------------

  static bool uses_access(const LoweredInstruction& i) {
    return i.step == Step::load || i.step == Step::store || i.step == Step::fill || i.step == Step::across;
  }
  bool turn_loop(LoweredStep& s) {
    LoweredLoop& l = s.loop;
    std::set<std::size_t> loads, stores;
    for (const LoweredInstruction& i : l.instructions) {
      if (i.step == Step::load) loads.insert(i.access);
      if (i.step == Step::store || i.step == Step::across) stores.insert(i.access);
      // Products of a block read the pieces of a concatenation themselves.
      if (is_block_ && i.step == Step::store && joined_.contains(l.accesses[i.access].value)) return true;
    }
    bool touches = false;
    for (const std::size_t a : loads) touches = touches || is_known(l.accesses[a].value);
    for (const std::size_t a : stores) touches = touches || is_known(l.accesses[a].value);
    if (!touches) return true;
    if (l.reduced || l.across != LoweredLoop::Across::none) return false;
    for (const LoweredAccess& a : l.accesses)
      if (!a.whole || a.of_rows) return false;
    std::vector<std::optional<Walk>> walks;
    if (!split_axes(l, loads, stores, walks)) return false;
    int time = -1;
    if (is_block_ && !find_time(l, loads, walks, time)) return false;
    for (const std::size_t a : stores) {
      if (!is_block_ || time < 0) continue;
      const int on = walks[a] ? walks[a]->axis[static_cast<std::size_t>(time)] : -1;
      if (on < 0 || !has_time(l.accesses[a].value, on)) return false;
    }
    for (std::size_t a = 0; a < l.accesses.size(); ++a) {
      LoweredAccess& access = l.accesses[a];
      if (!is_known(access.value)) continue;
      const auto now = walk(access.value, access.offset, l.extents, access.strides);
      access.offset = now->offset, access.strides = now->strides;
    }
    if (time >= 0) move_last(l, time);
    return true;
  }
  /// Splits axes of the domain until each walks on one axis of every value.
  bool split_axes(LoweredLoop& l, const std::set<std::size_t>& loads, const std::set<std::size_t>& stores,
                  std::vector<std::optional<Walk>>& walks) const {
    for (int attempt = 0; attempt < 8; ++attempt) {
      walks.assign(l.accesses.size(), {});
      int split = -1;
      std::int64_t inner = 0;
      for (std::size_t a = 0; a < l.accesses.size(); ++a) {
        const LoweredAccess& access = l.accesses[a];
        const bool wanted = is_known(access.value) || (is_block_ && stores.contains(a));
        if ((!loads.contains(a) && !stores.contains(a)) || !wanted) continue;
        walks[a] = walk(access.value, access.offset, l.extents, access.strides);
        if (!walks[a]) return false;
        if (walks[a]->split >= 0) split = walks[a]->split, inner = walks[a]->inner;
      }
      if (split < 0) return true;
      l.extents = halves(l.extents, split, l.extents[split] / inner, inner);
      for (LoweredAccess& a : l.accesses) {
        a.strides = halves(a.strides, split, a.strides[split] * inner, a.strides[split]);
        a.box = {Shape::filled(l.extents.rank(), 0), l.extents};
      }
      l.outer = l.extents.rank();
    }
    return false;
  }
  /// Returns a shape in which two numbers take the place of one.
  static Shape halves(const Shape& s, int axis, std::int64_t outer, std::int64_t inner) {
    Shape all;
    for (int k = 0; k < s.rank(); ++k) {
      if (k != axis) all.push_back(s[k]);
      if (k == axis) all.push_back(outer), all.push_back(inner);
    }
    return all;
  }
  /// Finds the axis of the domain that walks along time in all operands; -1 if there is none.
  bool find_time(const LoweredLoop& l, const std::set<std::size_t>& loads,
                 const std::vector<std::optional<Walk>>& walks, int& time) const {
    for (const std::size_t a : loads) {
      const auto at = time_.find(l.accesses[a].value);
      if (at == time_.end() || !walks[a]) continue;
      for (int k = 0; k < l.extents.rank(); ++k) {
        if (walks[a]->axis[static_cast<std::size_t>(k)] != at->second) continue;
        if (time >= 0 && time != k) return false;
        time = k;
      }
    }
    return true;
  }
  static void move_last(LoweredLoop& l, int axis) {
    const auto moved = [axis](const Shape& s) {
      Shape all;
      for (int k = 0; k < s.rank(); ++k)
        if (k != axis) all.push_back(s[k]);
      all.push_back(s[axis]);
      return all;
    };
    for (LoweredAccess& a : l.accesses) {
      a.strides = moved(a.strides);
      if (a.box.begin.rank() == l.extents.rank()) a.box = {moved(a.box.begin), moved(a.box.end)};
    }
    l.extents = moved(l.extents);
  }

  std::vector<LoweredStep> steps_;
  std::map<ValueId, std::vector<LoweredWindow>> joined_;
};

/// The number of columns of a product up to which vectors over time are faster.
constexpr std::int64_t kNarrow = 16;

/// Returns whether most of the work of a block is in narrow products.
bool is_narrow(const FrozenProgram& block) {
  std::int64_t narrow = 0, wide = 0;
  for (const LoweredStep& s : block.lowered.steps)
    if (const auto p = lanes_product(s)) (p->columns <= kNarrow ? narrow : wide) += p->terms * p->columns;
  return narrow > wide;
}

}  // namespace

void turn_to_lanes(FrozenProgram& step, FrozenProgram& block) {
  if (block.steps % 16 != 0 || !is_narrow(block)) return;
  std::vector<std::int64_t> channels;
  for (std::size_t k = 0; k < step.states.size(); ++k) {
    const FrozenState& s = step.states[k];
    const std::int64_t past = s.spec.shape.rank() ? s.spec.shape[0] : 0;
    const std::int64_t frames = past + block.steps + std::max<std::int64_t>(past, 32);
    const std::int64_t whole = (frames + 15) / 16;
    channels.push_back(s.keeping == Keeping::line ? 16 * (whole + 1 - whole % 2) : 0);
    if (s.keeping != block.states[k].keeping || s.keeping != Keeping::line) return;
  }
  Turning of_step(step), of_block(block);
  if (!of_step.run(channels) || !of_block.run(channels)) return;
  of_step.finish(step), of_block.finish(block);
  for (std::size_t k = 0; k < channels.size(); ++k) step.states[k].channel = block.states[k].channel = channels[k];
}

}  // namespace ferrite::exchange::detail
