/// Writes fused loops as C: vectors along the last axis where all numbers are floats of one type, else element by
/// element.
#include <algorithm>

#include "ferrite/exchange/freeze/c_points.h"

namespace ferrite::exchange::detail {
namespace {

using Step = LoweredInstruction::Step;
using Across = LoweredLoop::Across;

class LoopWriter : public PointsWriter {
 public:
  LoopWriter(CBody& body, const LoweredLoop& loop, CText& to) : PointsWriter(body, loop, to) { find_levels(); }

  void write() {
    const int rank = loop_.extents.rank();
    if (loop_.across != Across::none) return write_across();
    if (!loop_.reduced) return write_points(0, rank, 0);
    find_spills();
    open_axes(0, loop_.outer);
    for (int level = 0; level <= levels_; ++level) {
      write_rows(level);
      write_points(loop_.outer, rank, level);
      write_reductions(level);
    }
    close_axes(0, loop_.outer);
  }

 private:
  // ---- which instructions wait for which reductions -----------------------------------------------------------

  void find_levels() {
    level_.assign(loop_.slots.size(), 0);
    for (const LoweredInstruction& i : loop_.instructions) {
      int level = 0;
      for (const std::size_t s : i.in) level = std::max(level, level_[s]);
      if (i.step == Step::reduce) ++level;
      if (i.step != Step::store && i.step != Step::across) level_[i.slot] = level;
      levels_ = std::max(levels_, level);
    }
  }
  int level_of(const LoweredInstruction& i) const {
    int level = i.step == Step::store ? level_[i.slot] : 0;
    for (const std::size_t s : i.in) level = std::max(level, level_[s]);
    return level;
  }
  bool is_of_rows(const LoweredInstruction& i) const { return loop_.slots[i.slot].of_rows; }
  /// Finds slots that a loop of a later level reads; they are kept for the whole row, unless they are loads.
  void find_spills() {
    for (const LoweredInstruction& i : loop_.instructions) {
      if (i.step == Step::load) loads_[i.slot] = &i;
      if (i.step == Step::spread) spreads_[i.slot] = &i;
    }
    for (const LoweredInstruction& i : loop_.instructions) {
      const auto reads = [&](std::size_t s) {
        const LoweredSlot& slot = loop_.slots[s];
        if (slot.of_rows || slot.literal || loads_.contains(s) || spreads_.contains(s)) return;
        if (i.step == Step::reduce || level_of(i) > level_[s]) spill(s);
      };
      for (const std::size_t s : i.in) reads(s);
      if (i.step == Step::store) reads(i.slot);
      if (i.step == Step::reduce && !loop_.slots[i.in[0]].of_rows) spill(i.in[0]);
    }
  }
  void spill(std::size_t s) {
    if (!spilled_.contains(s)) spilled_[s] = row_of(s, loop_.reduced);
  }

  // ---- points ---------------------------------------------------------------------------------------------------

  /// Returns the instructions on points that run at a level, and what they read again.
  std::vector<const LoweredInstruction*> points_at(int level) const {
    std::vector<const LoweredInstruction*> list;
    std::set<std::size_t> have;
    for (const LoweredInstruction& i : loop_.instructions) {
      if (is_of_rows(i) || i.step == Step::reduce || i.step == Step::across) continue;
      if (i.step == Step::load || i.step == Step::spread) continue;
      if (level_of(i) != level) continue;
      for (const std::size_t s : i.in) again(s, list, have);
      if (i.step == Step::store) again(i.slot, list, have);
      list.push_back(&i);
      if (i.step != Step::store) have.insert(i.slot);
    }
    for (const auto& [s, memory] : spilled_)
      if (loads_.contains(s) && level_[s] == level) again(s, list, have);
    return list;
  }
  /// Adds the load or spread that makes a slot, unless the slot is there.
  void again(std::size_t s, std::vector<const LoweredInstruction*>& list, std::set<std::size_t>& have) const {
    if (!have.insert(s).second) return;
    if (const auto at = all_loads_.find(s); at != all_loads_.end()) list.push_back(at->second);
  }

  void write_points(int from, int rank, int level) {
    if (all_loads_.empty())
      for (const LoweredInstruction& i : loop_.instructions)
        if ((i.step == Step::load || i.step == Step::spread) && !is_of_rows(i)) all_loads_[i.slot] = &i;
    const std::vector<const LoweredInstruction*> list = points_at(level);
    if (list.empty()) return;
    present_ = level;
    open_axes(from, rank - 1);
    const std::vector<std::int64_t> ends = pieces(list);
    for (std::size_t p = 0; p + 1 < ends.size(); ++p) write_piece(list, from, ends[p], ends[p + 1]);
    close_axes(from, rank - 1);
  }
  /// Returns where the last axis is cut, so that boxes begin and end with pieces.
  std::vector<std::int64_t> pieces(const std::vector<const LoweredInstruction*>& list) const {
    std::set<std::int64_t> ends{0, loop_.extents[-1]};
    for (const LoweredInstruction* i : list) {
      if (i->step != Step::load && i->step != Step::fill) continue;
      const LoweredAccess& a = loop_.accesses[i->access];
      if (a.whole || a.of_rows) continue;
      for (const std::int64_t e : {a.box.begin[-1], a.box.end[-1]})
        ends.insert(std::clamp<std::int64_t>(e, 0, loop_.extents[-1]));
    }
    return {ends.begin(), ends.end()};
  }
  void write_piece(const std::vector<const LoweredInstruction*>& list, int from, std::int64_t begin, std::int64_t end) {
    begin_piece(begin, end, from);
    to_.open("for (ptrdiff_t j = " + text(begin) + "; j < " + text(end) + "; " + (vector_ ? "j += " + lanes() : "++j") +
             ")");
    write_left();
    for (const LoweredInstruction* i : list) write_point(*i);
    if (partial_) to_.line("(void)left;");
    to_.close();
  }

  // ---- rows -----------------------------------------------------------------------------------------------------

  /// Writes the instructions on single numbers of rows: with vectors, all lanes hold the same number.
  void write_rows(int level) {
    present_ = level;
    for (const LoweredInstruction& i : loop_.instructions) {
      if (!is_of_rows(i) || i.step == Step::reduce || level_of(i) != level) continue;
      const Dtype dtype = loop_.slots[i.slot].dtype;
      const std::string to = type(dtype) + " " + name(i.slot), s = suffix(dtype);
      const LoweredAccess* a = i.access < loop_.accesses.size() ? &loop_.accesses[i.access] : nullptr;
      if (i.step == Step::load) {
        const std::string here = inside(*a, loop_.outer, true);
        const std::string one = here == "0" ? "" : "(" + address(*a, loop_.outer) + ")[0]";
        define(to, i.slot, here, vector_ ? "nf_set_" + s + "(" + one + ")" : one, number(a->number, dtype));
      } else if (i.step == Step::fill) {
        define(to, i.slot, inside(*a, loop_.outer, true), read(i.in[0]), number(a->number, dtype));
      } else if (i.step == Step::apply) {
        to_.line("const " + to + " = " + applied(i, operands(i)) + ";");
      } else if (i.step == Step::store) {
        const std::string at = address(*a, loop_.outer);
        to_.line(vector_ ? "nf_put_" + s + "(" + at + ", " + name(i.slot) + ", 1);"
                         : "(" + at + ")[0] = " + name(i.slot) + ";");
      }
    }
  }
  void write_reductions(int level) {
    for (const LoweredInstruction& i : loop_.instructions) {
      if (i.step != Step::reduce || level_of(i) != level) continue;
      const Dtype dtype = loop_.slots[i.slot].dtype;
      const std::string s = suffix(dtype);
      std::string call;
      if (loop_.slots[i.in[0]].of_rows) {  // all numbers of a row are equal: not written by the compiler
        body_.refuse(*i.node, "it reduces a number of its own row");
      }
      call = body_.module().kernel(i.node->op->name, dtype) + "(" + spilled_.at(i.in[0]) + ", 1, " +
             text(loop_.reduced) + ")";
      to_.line("const " + type(dtype) + " " + name(i.slot) + " = " +
               (vector_ ? "nf_set_" + s + "(" + call + ")" : call) + ";");
    }
  }

  // ---- reductions over whole axes ---------------------------------------------------------------------------------

  void write_across() {
    for (const LoweredInstruction& i : loop_.instructions)
      if (i.step == Step::across && !spilled_.contains(i.in[0]))
        spilled_[i.in[0]] = row_of(i.in[0], loop_.extents.numel());
    for (const LoweredInstruction& i : loop_.instructions)
      if (i.step == Step::load) loads_[i.slot] = &i;
    write_points(0, loop_.extents.rank(), 0);
    std::int64_t first = 1;
    for (int k = 0; k < loop_.outer; ++k) first *= loop_.extents[k];
    const std::int64_t rest = loop_.extents.numel() / first;
    for (const LoweredInstruction& i : loop_.instructions) {
      if (i.step != Step::across) continue;
      const Dtype dtype = loop_.slots[i.in[0]].dtype;
      const std::string f = body_.module().kernel(i.node->op->name, dtype), memory = spilled_.at(i.in[0]);
      const std::string y = at(loop_.accesses[i.access].value, 0);
      const bool columns = loop_.across == Across::columns;
      to_.line(loop_over("i", columns ? rest : first) + " (" + y + ")[i] = " + f + "(" + memory + " + " +
               (columns ? "i, " + text(rest) + ", " + text(first) : text(rest) + " * i, 1, " + text(rest)) + ");");
    }
  }

  int levels_ = 0;
  std::map<std::size_t, const LoweredInstruction*> loads_, spreads_;
};

LoopParameters write_statements(CBody& body, const LoweredLoop& loop, CText& to) {
  if (has_columns(body, loop)) return write_columns(body, loop, to);
  LoopWriter writer(body, loop, to);
  writer.write();
  return writer.parameters();
}

}  // namespace

void write_loop(CBody& body, const LoweredLoop& loop, CText& to) {
  CText statements(1);
  const LoopParameters p = write_statements(body, loop, statements);
  const std::string function = "static void $name(" + p.parameters() + ") {\n" + statements.str() + "}\n";
  to.line(body.module().define("loop", function) + "(" + p.arguments() + ");");
}

}  // namespace ferrite::exchange::detail
