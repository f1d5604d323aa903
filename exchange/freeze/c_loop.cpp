/// Writes fused loops as C: vectors along the last axis where all numbers are floats of one type, else element by
/// element.
#include <algorithm>
#include <cstring>
#include <set>

#include "ferrite/exchange/freeze/c_body.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {
namespace {

using Step = LoweredInstruction::Step;
using Across = LoweredLoop::Across;

std::string text(std::int64_t n) { return std::to_string(n); }

/// Returns "a + 3 * i0", or "a" for nothing.
std::string plus(const std::string& a, std::int64_t factor, const std::string& index) {
  if (factor == 0) return a;
  return a + (factor < 0 ? " - " : " + ") + (factor == 1 || factor == -1 ? index : text(std::abs(factor)) + " * " + index);
}

/// The addresses that a loop reads and writes, as parameters of its function.
class Parameters {
 public:
  /// Returns the name of the parameter that stands for an address.
  std::string name(const std::string& address, Dtype dtype, bool written) {
    const auto [at, is_new] = names_.emplace(std::pair(address, written), "");
    if (!is_new) return at->second;
    at->second = (written ? "y" : "a") + text(written ? written_++ : read_++);
    parameters_ += std::string(parameters_.empty() ? "" : ", ") + (written ? "" : "const ") +
                   std::string(c_type(dtype)) + " *" + at->second;
    arguments_ += (arguments_.empty() ? "" : ", ") + address;
    return at->second;
  }
  const std::string& parameters() const { return parameters_; }
  const std::string& arguments() const { return arguments_; }

 private:
  std::map<std::pair<std::string, bool>, std::string> names_;
  std::string parameters_, arguments_;
  std::int64_t read_ = 0, written_ = 0;
};

class LoopWriter {
 public:
  LoopWriter(CBody& body, const LoweredLoop& loop, CText& to) : body_(body), loop_(loop), to_(to) {
    for (const LoweredInstruction& i : loop.instructions)
      if (i.step == Step::store || i.step == Step::across) written_.insert(loop.accesses[i.access].value);
    choose_type();
    find_levels();
  }

  void write() {
    const int rank = loop_.extents.rank();
    if (has_products()) return write_with_products();
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
  const Parameters& parameters() const { return parameters_; }

 private:
  /// Returns the address of an element of a value, a parameter.
  std::string at(ValueId v, std::int64_t offset) const {
    return parameters_.name(body_.at(v, offset), body_.spec(v).dtype, written_.contains(v));
  }

  // ---- types, and which instructions wait for which reductions ----------------------------------------------

  void choose_type() {
    std::set<Dtype> types;
    for (const LoweredSlot& s : loop_.slots)
      if (s.dtype != Dtype::boolean) types.insert(s.dtype);
    if (types.empty()) types.insert(body_.module().has_doubles() ? Dtype::f64 : Dtype::f32);
    vector_ = types.size() == 1 && is_float(*types.begin());
    type_ = vector_ ? *types.begin() : Dtype::f32;
    bool masks = false;
    for (const LoweredSlot& s : loop_.slots) masks = masks || s.dtype == Dtype::boolean;
    if (masks && type_ == Dtype::f32 && body_.module().has_doubles()) vector_ = false;  // masks in memory are wider
    if (vector_) body_.module().has(type_);
    if (!vector_) body_.module().kernel("first", Dtype::f32), body_.module().has(Dtype::f32);
  }
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

  /// Returns the address of memory for a slot, a parameter.
  std::string row_of(std::size_t slot, std::int64_t n) {
    const Dtype dtype = loop_.slots[slot].dtype;
    return parameters_.name(body_.scratch(dtype, n), dtype, true);
  }

  // ---- loops that compute products of one row, column by column -------------------------------------------------

  bool has_products() const {
    return std::ranges::any_of(loop_.accesses, [&](const LoweredAccess& a) { return body_.column_product(a.value); });
  }
  /// Writes groups of vectors: first their sums of products, all chains in one loop over the terms, then the points.
  void write_with_products() {
    std::vector<const LoweredInstruction*> list;
    std::map<std::int64_t, std::vector<std::size_t>> by_terms;  // loads of products
    std::size_t chains = 0;
    for (const LoweredInstruction& i : loop_.instructions) {
      list.push_back(&i);
      if (i.step != Step::load) continue;
      const ColumnProduct* const p = body_.column_product(loop_.accesses[i.access].value);
      if (p && p->terms > kFewTerms) by_terms[p->terms].push_back(list.size() - 1), ++chains;
    }
    const std::string s = suffix(type_), lanes = type_ == Dtype::f64 ? "NF_LANES_D" : "NF_LANES_F";
    const std::string n = text(loop_.extents[0]), c = text(std::max<std::int64_t>(static_cast<std::int64_t>(chains), 1));
    begin_ = 0, end_ = loop_.extents[0], row_axis_ = 0;
    partial_ = end_ % (type_ == Dtype::f64 ? 8 : 16) != 0;
    count_ = partial_ ? "left" : lanes;
    to_.line("enum { vectors = (" + n + " + " + lanes + " - 1) / " + lanes + ", most = NF_SUMS > " + c + " ? NF_SUMS / " +
             c + " : 1 };");
    to_.line("enum { groups = (vectors + most - 1) / most, group = (vectors + groups - 1) / groups };");
    to_.open("for (ptrdiff_t g = 0; g < vectors; g += group)");
    for (const auto& [terms, loads] : by_terms) write_sums(terms, loads, list, s, lanes);
    to_.line("NF_UNROLL");
    to_.open("for (int v = 0; v < group; ++v)");
    to_.line("const ptrdiff_t j = (g + v) * " + lanes + ";");
    to_.line("if (vectors % group != 0 && j >= " + n + ") break;");
    if (partial_) to_.line("const int left = " + n + " - j < " + lanes + " ? (int)(" + n + " - j) : " + lanes + ";");
    for (const LoweredInstruction* i : list) write_point(*i);
    if (partial_) to_.line("(void)left;");
    to_.close();
    to_.close();
  }
  /// Returns the product of a column: a sum that is there, or one of few terms.
  std::string product_at(const LoweredInstruction& i) const {
    const LoweredAccess& a = loop_.accesses[i.access];
    const ColumnProduct& p = *body_.column_product(a.value);
    const std::string s = suffix(type_);
    if (p.terms > kFewTerms) return "sum" + text(static_cast<std::int64_t>(i.slot)) + "[v]";
    std::string sum = start_of(p, s);
    for (std::int64_t k = 0; k < p.terms; ++k)
      sum = "nf_fma_" + s + "(nf_set_" + s + "((" + at(p.a.value, p.a.offset) + ")[" + text(k) + "]), nf_load_" + s +
            "(" + at(p.b.value, p.b.offset + a.offset) + " + " + text(k * p.columns) + " + j), " + sum + ")";
    return sum;
  }
  /// Returns the sum before the first term.
  std::string start_of(const ColumnProduct& p, const std::string& s) const {
    if (p.past.empty()) return "nf_set_" + s + "(0)";
    return "nf_load_" + s + "(" + parameters_.name(p.start, type_, false) + " + j)";
  }
  static constexpr std::int64_t kFewTerms = 4;  ///< up to this many, a sum is computed where it is read

  void write_sums(std::int64_t terms, const std::vector<std::size_t>& loads,
                  const std::vector<const LoweredInstruction*>& list, const std::string& s, const std::string& lanes) {
    const std::string v = "nf_" + s + " ";
    const auto sum = [&](std::size_t k) { return "sum" + text(static_cast<std::int64_t>(list[k]->slot)) + "[v]"; };
    for (const std::size_t k : loads) to_.line(v + "sum" + text(static_cast<std::int64_t>(list[k]->slot)) + "[group];");
    to_.line("NF_UNROLL");
    to_.open("for (int v = 0; v < group; ++v)");
    bool past = false;
    for (const std::size_t k : loads) past = past || !body_.column_product(loop_.accesses[list[k]->access].value)->past.empty();
    if (past) to_.line("const ptrdiff_t j = (g + v) * " + lanes + ";");
    for (const std::size_t k : loads)
      to_.line(sum(k) + " = " + start_of(*body_.column_product(loop_.accesses[list[k]->access].value), s) + ";");
    to_.close();
    to_.open("for (ptrdiff_t k = 0; k < " + text(terms) + "; ++k)");
    std::map<std::string, std::string> rows;  // the operand of one term, by its address
    for (const std::size_t k : loads) {
      const ColumnProduct& p = *body_.column_product(loop_.accesses[list[k]->access].value);
      const std::string from = at(p.a.value, p.a.offset);
      if (rows.contains(from)) continue;
      rows[from] = "x" + text(std::ssize(rows));
      to_.line("const " + v + rows[from] + " = nf_set_" + s + "((" + from + ")[k]);");
    }
    to_.line("NF_UNROLL");
    to_.open("for (int v = 0; v < group; ++v)");
    for (const std::size_t k : loads) {
      const LoweredAccess& a = loop_.accesses[list[k]->access];
      const ColumnProduct& p = *body_.column_product(a.value);
      const std::string column = plus(at(p.b.value, p.b.offset + a.offset), p.columns, "k") + " + (g + v) * " + lanes;
      to_.line(sum(k) + " = nf_fma_" + s + "(" + rows.at(at(p.a.value, p.a.offset)) + ", nf_load_" + s + "(" + column +
               "), " + sum(k) + ");");
    }
    to_.close();
    to_.close();
  }

  // ---- loops ------------------------------------------------------------------------------------------------

  void open_axes(int from, int to) {
    for (int k = from; k < to; ++k)
      to_.open("for (ptrdiff_t i" + text(k) + " = 0; i" + text(k) + " < " + text(loop_.extents[k]) + "; ++i" + text(k) +
               ")");
  }
  void close_axes(int from, int to) {
    for (int k = from; k < to; ++k) to_.close();
  }

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
      for (const std::int64_t e : {a.box.begin[-1], a.box.end[-1]}) ends.insert(std::clamp<std::int64_t>(e, 0, loop_.extents[-1]));
    }
    return {ends.begin(), ends.end()};
  }
  void write_piece(const std::vector<const LoweredInstruction*>& list, int from, std::int64_t begin, std::int64_t end) {
    begin_ = begin, end_ = end;
    row_axis_ = from;
    const std::string lanes = type_ == Dtype::f64 ? "NF_LANES_D" : "NF_LANES_F";
    partial_ = vector_ && (end - begin) % (type_ == Dtype::f64 ? 8 : 16) != 0;
    to_.open("for (ptrdiff_t j = " + text(begin) + "; j < " + text(end) + "; " + (vector_ ? "j += " + lanes : "++j") + ")");
    if (partial_) to_.line("const int left = " + text(end) + " - j < " + lanes + " ? (int)(" + text(end) + " - j) : " + lanes + ";");
    count_ = partial_ ? "left" : lanes;
    for (const LoweredInstruction* i : list) write_point(*i);
    if (partial_) to_.line("(void)left;");
    to_.close();
  }

  // ---- names ------------------------------------------------------------------------------------------------

  std::string suffix(Dtype dtype) const {
    const bool wide = type_ == Dtype::f64;
    return dtype == Dtype::boolean ? (wide ? "l" : "i") : (wide ? "d" : "f");
  }
  std::string type(Dtype dtype) const {
    return vector_ ? "nf_" + suffix(dtype) : std::string(c_type(dtype));
  }
  static std::string name(std::size_t slot) { return "t" + text(static_cast<std::int64_t>(slot)); }
  std::string number(const std::array<std::byte, 8>& n, Dtype dtype) const {
    const std::string c = c_number_at(n.data(), dtype);
    return vector_ ? "nf_set_" + suffix(dtype) + "(" + c + ")" : c;
  }
  /// Returns a slot as an operand.
  std::string read(std::size_t slot) const {
    const LoweredSlot& s = loop_.slots[slot];
    if (s.literal) return number(s.number, s.dtype);
    const auto at = spilled_.find(slot);
    if (at == spilled_.end() || level_[slot] == present_ || s.of_rows || all_loads_.contains(slot)) return name(slot);
    const std::string where = row_place(at->second);
    return vector_ ? "nf_load_" + suffix(s.dtype) + "(" + where + ")" : "(" + where + ")[0]";
  }
  /// Returns the address of the present point in a row that is kept.
  std::string row_place(std::string at) const {
    std::int64_t stride = 1;
    for (int k = loop_.extents.rank() - 2; k >= row_axis_; --k) {
      stride *= loop_.extents[k + 1];
      at = plus(at, stride, "i" + text(k));
    }
    return plus(at, 1, "j");
  }

  // ---- loads, stores, operations -------------------------------------------------------------------------------

  std::string address(const LoweredAccess& a, int axes) const {
    std::string all = at(a.value, a.offset);
    for (int k = 0; k < axes; ++k) all = plus(all, a.strides[k], "i" + text(k));
    return all;
  }
  /// Returns the condition that the outer axes lie in a box; "" if they always do, "0" if never.
  std::string inside(const LoweredAccess& a, int axes, bool row) const {
    if (a.whole) return "";
    std::string all;
    for (int k = 0; k < axes; ++k) {
      const std::int64_t b = a.box.begin[k], e = a.box.end[k], n = row ? e : loop_.extents[k];
      if (b >= e) return "0";
      if (b > 0) all += (all.empty() ? "" : " && ") + ("i" + text(k) + " >= " + text(b));
      if (e < loop_.extents[k]) all += (all.empty() ? "" : " && ") + ("i" + text(k) + " < " + text(e));
      (void)n;
    }
    return all;
  }
  std::string inside_here(const LoweredAccess& a) const {
    if (a.whole) return "";
    const int rank = loop_.extents.rank();
    if (begin_ < a.box.begin[-1] || end_ > a.box.end[-1]) return "0";
    return inside(a, rank - 1, false);
  }

  void write_point(const LoweredInstruction& i) {
    const Dtype dtype = loop_.slots[i.slot].dtype;
    const std::string to = type(dtype) + " " + name(i.slot);
    switch (i.step) {
      case Step::load: {
        const LoweredAccess& a = loop_.accesses[i.access];
        if (body_.column_product(a.value)) {
          to_.line("const " + to + " = " + product_at(i) + ";");
          break;
        }
        define(to, i.slot, inside_here(a), loaded(a, dtype), number(a.number, dtype));
        break;
      }
      case Step::fill: {
        const LoweredAccess& a = loop_.accesses[i.access];
        define(to, i.slot, inside_here(a), read(i.in[0]), number(a.number, dtype));
        break;
      }
      case Step::spread: to_.line("const " + to + " = " + name(i.in[0]) + ";"); break;
      case Step::apply: to_.line("const " + to + " = " + applied(i) + ";"); break;
      case Step::store: write_store(i); return;
      default: return;
    }
    if (const auto at = spilled_.find(i.slot); at != spilled_.end() && level_[i.slot] == present_) keep(i.slot, at->second);
  }
  void define(const std::string& to, std::size_t slot, const std::string& condition, const std::string& value,
              const std::string& outside) {
    if (condition.empty()) return to_.line("const " + to + " = " + value + ";");
    if (condition == "0") return to_.line("const " + to + " = " + outside + ";");
    to_.line(to + " = " + outside + ";");
    to_.line("if (" + condition + ") " + name(slot) + " = " + value + ";");
  }
  void keep(std::size_t slot, const std::string& memory) {
    const std::string where = row_place(memory), s = suffix(loop_.slots[slot].dtype);
    if (!vector_) return to_.line("(" + where + ")[0] = " + name(slot) + ";");
    to_.line(partial_ ? "nf_put_" + s + "(" + where + ", " + name(slot) + ", left);"
                      : "nf_store_" + s + "(" + where + ", " + name(slot) + ");");
  }

  std::string loaded(const LoweredAccess& a, Dtype dtype) const {
    const int last = loop_.extents.rank() - 1;
    const std::int64_t stride = a.strides[last];
    if (body_.column_product(a.value)) return "";
    const std::string at = plus(address(a, last), stride, "j"), s = suffix(dtype);
    if (!vector_) return "(" + at + ")[0]";
    if (stride == 0) return "nf_set_" + s + "((" + at + ")[0])";
    if (stride != 1) return "nf_gather_" + s + "(" + at + ", " + text(stride) + ", " + count_ + ")";
    if (partial_ && !body_.place_of(a.value).padded) return "nf_get_" + s + "(" + at + ", left)";
    return "nf_load_" + s + "(" + at + ")";
  }
  void write_store(const LoweredInstruction& i) {
    const LoweredAccess& a = loop_.accesses[i.access];
    const int last = loop_.extents.rank() - 1;
    const std::int64_t stride = a.strides[last];
    const std::string at = plus(address(a, last), stride, "j"), s = suffix(loop_.slots[i.slot].dtype);
    const std::string value = read(i.slot);
    if (!vector_) return to_.line("(" + at + ")[0] = " + value + ";");
    if (stride != 1) return to_.line("nf_scatter_" + s + "(" + at + ", " + text(stride) + ", " + value + ", " + count_ + ");");
    const bool alone = last == 0 && a.offset == 0 && end_ == loop_.extents[0] &&
                       loop_.extents[0] == body_.spec(a.value).shape.numel() && body_.place_of(a.value).padded;
    to_.line(partial_ && !alone ? "nf_put_" + s + "(" + at + ", " + value + ", left);"
                                : "nf_store_" + s + "(" + at + ", " + value + ");");
  }

  std::string applied(const LoweredInstruction& i) const {
    std::string in;
    for (const std::size_t s : i.in) in += (in.empty() ? "" : ", ") + read(s);
    if (!vector_) return applied_alone(i);
    const std::string f = body_.module().function(*i.node->op, type_);
    if (f.empty()) body_.refuse(*i.node, "it has no function in C");
    return f + "(" + in + ")";
  }

  /// Returns an operation on single numbers.
  std::string applied_alone(const LoweredInstruction& i) const {
    std::vector<std::string> in;
    Dtype of = loop_.slots[i.slot].dtype;
    for (const std::size_t s : i.in) in.push_back(read(s));
    const Primitive& op = *i.node->op;
    if (&op == ferrite::detail::ops::cast) return converted(in[0], loop_.slots[i.in[0]].dtype, of);
    if (op.name == "where") return "(" + in[0] + ") ? (" + in[1] + ") : (" + in[2] + ")";
    if (op.name == "logical_and") return in[0] + " & " + in[1];
    if (op.name == "logical_or") return in[0] + " | " + in[1];
    if (op.name == "logical_not") return "~" + in[0];
    for (const std::size_t s : i.in)
      if (loop_.slots[s].dtype != Dtype::boolean) of = loop_.slots[s].dtype;
    if (op.name == "equal") return "(" + in[0] + ") == (" + in[1] + ") ? -1 : 0";
    if (op.name == "less") return "(" + in[0] + ") < (" + in[1] + ") ? -1 : 0";
    if (op.name == "less_equal") return "(" + in[0] + ") <= (" + in[1] + ") ? -1 : 0";
    if (!is_float(of)) return integer(i, in, of);
    const std::string f = body_.module().function(op, of), s = of == Dtype::f64 ? "d" : "f";
    if (f.empty()) body_.refuse(*i.node, "it has no function in C");
    body_.module().kernel("first", of);
    std::string call = f + "(";
    for (std::size_t k = 0; k < in.size(); ++k) call += (k ? ", " : "") + ("nf_set_" + s + "(" + in[k] + ")");
    return "nf_first_" + s + "(" + call + "))";
  }
  std::string integer(const LoweredInstruction& i, const std::vector<std::string>& in, Dtype dtype) const {
    const std::string t(c_type(dtype)), u = "u" + t;
    const std::string_view op = i.node->op->name;
    for (const auto& [name, sign] : {std::pair{"add", " + "}, {"sub", " - "}, {"mul", " * "}})
      if (op == name) return "(" + t + ")((" + u + ")(" + in[0] + ")" + sign + "(" + u + ")(" + in[1] + "))";
    if (op == "neg") return "(" + t + ")(0 - (" + u + ")(" + in[0] + "))";
    if (op == "maximum") return "(" + in[0] + ") > (" + in[1] + ") ? (" + in[0] + ") : (" + in[1] + ")";
    if (op == "minimum") return "(" + in[0] + ") < (" + in[1] + ") ? (" + in[0] + ") : (" + in[1] + ")";
    body_.refuse(*i.node, "it has no form for integers in C");
  }
  std::string converted(const std::string& x, Dtype from, Dtype to) const {
    const std::string t(c_type(to));
    if (to == Dtype::boolean) return "(" + x + ") != 0 ? -1 : 0";
    if (from == Dtype::boolean) return "(" + x + ") != 0 ? 1 : 0";
    if (is_float(from) && !is_float(to)) {
      const bool wide = to == Dtype::i64;
      const std::string high = wide ? "INT64_MAX" : "INT32_MAX", low = wide ? "INT64_MIN" : "INT32_MIN";
      return "(" + x + ") != (" + x + ") ? 0 : (" + x + ") >= " + (wide ? "9223372036854775807.0" : "2147483647.0") +
             " ? " + high + " : (" + x + ") <= " + (wide ? "-9223372036854775808.0" : "-2147483648.0") + " ? " + low +
             " : (" + t + ")(" + x + ")";
    }
    return "(" + t + ")(" + x + ")";
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
        const std::string one = "(" + address(*a, loop_.outer) + ")[0]";
        define(to, i.slot, inside(*a, loop_.outer, true), vector_ ? "nf_set_" + s + "(" + one + ")" : one,
               number(a->number, dtype));
      } else if (i.step == Step::fill) {
        define(to, i.slot, inside(*a, loop_.outer, true), read(i.in[0]), number(a->number, dtype));
      } else if (i.step == Step::apply) {
        to_.line("const " + to + " = " + applied(i) + ";");
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
      to_.line("const " + type(dtype) + " " + name(i.slot) + " = " + (vector_ ? "nf_set_" + s + "(" + call + ")" : call) +
               ";");
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
      to_.line("for (ptrdiff_t i = 0; i < " + text(columns ? rest : first) + "; ++i) (" + y + ")[i] = " + f + "(" +
               memory + " + " + (columns ? "i, " + text(rest) + ", " + text(first) : text(rest) + " * i, 1, " + text(rest)) +
               ");");
    }
  }

  CBody& body_;
  const LoweredLoop& loop_;
  CText& to_;
  mutable Parameters parameters_;
  std::set<ValueId> written_;
  bool vector_ = true, partial_ = false;
  Dtype type_ = Dtype::f32;
  int levels_ = 0, present_ = 0, row_axis_ = 0;
  std::int64_t begin_ = 0, end_ = 0;
  std::string count_;
  std::vector<int> level_;  ///< by slot: the number of reductions that it waits for, one after the other
  std::map<std::size_t, std::string> spilled_;
  std::map<std::size_t, const LoweredInstruction*> loads_, spreads_, all_loads_;
};

}  // namespace

void write_loop(CBody& body, const LoweredLoop& loop, CText& to) {
  CText statements(1);
  LoopWriter writer(body, loop, statements);
  writer.write();
  const Parameters& p = writer.parameters();
  const std::string function = "static void $name(" + p.parameters() + ") {\n" + statements.str() + "}\n";
  to.line(body.module().define("loop", function) + "(" + p.arguments() + ");");
}

}  // namespace ferrite::exchange::detail
