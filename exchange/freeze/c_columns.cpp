/// Writes loops that compute products of one row, column by column.
#include <algorithm>

#include "ferrite/exchange/freeze/c_points.h"

namespace ferrite::exchange::detail {
namespace {

using Step = LoweredInstruction::Step;

class ColumnsWriter : public PointsWriter {
 public:
  using PointsWriter::PointsWriter;

  /// Writes groups of vectors: first their sums of products, all chains in one loop over the terms, then the points.
  void write() {
    std::vector<const LoweredInstruction*> list;
    std::map<std::int64_t, std::vector<std::size_t>> by_terms;  // loads of products
    std::int64_t chains = 0;
    for (const LoweredInstruction& i : loop_.instructions) {
      list.push_back(&i);
      if (i.step != Step::load) continue;
      const ColumnProduct* const p = body_.column_product(loop_.accesses[i.access].value);
      if (p && p->terms > ColumnProduct::kFewTerms) by_terms[p->terms].push_back(list.size() - 1), ++chains;
    }
    const std::string s = suffix(type_), lanes = this->lanes();
    const std::string n = text(loop_.extents[0]);
    begin_piece(0, loop_.extents[0], 0);
    write_groups(loop_.extents[0], std::max<std::int64_t>(chains, 1));
    to_.open("for (ptrdiff_t g = 0; g < vectors; g += group)");
    for (const auto& [terms, loads] : by_terms) write_sums(terms, loads, list, s, lanes);
    to_.line("NF_UNROLL");
    to_.open("for (int v = 0; v < group; ++v)");
    to_.line("const ptrdiff_t j = (g + v) * " + lanes + ";");
    to_.line("if (vectors % group != 0 && j >= " + n + ") break;");
    write_left();
    for (const LoweredInstruction* i : list) {
      if (i->step == Step::load && body_.column_product(loop_.accesses[i->access].value)) {
        to_.line("const " + type(loop_.slots[i->slot].dtype) + " " + name(i->slot) + " = " + product_at(*i) + ";");
      } else {
        write_point(*i);
      }
    }
    if (partial_) to_.line("(void)left;");
    to_.close();
    to_.close();
  }

 private:
  /// Writes the numbers of vectors and of the groups of vectors whose sums are computed together: as few as registers
  /// allow, and so that the last group reaches no more than kBehind numbers beyond the last column. Only plain numbers,
  /// of which there are many, need more groups for that.
  void write_groups(std::int64_t n, std::int64_t chains) {
    const std::int64_t most = std::max<std::int64_t>(kPlainSums / chains, 1);
    const std::int64_t fewest = (n + most - 1) / most;
    std::int64_t groups = fewest;
    while ((n + groups - 1) / groups * groups - n > kBehind) ++groups;
    const std::string c = text(chains), lanes = this->lanes();
    to_.line("enum { vectors = (" + text(n) + " + " + lanes + " - 1) / " + lanes + ", most = NF_SUMS > " + c +
             " ? NF_SUMS / " + c + " : 1 };");
    to_.line("enum { groups = " + (groups > fewest ? lanes + " == 1 ? " + text(groups) + " : " : "") +
             "(vectors + most - 1) / most, group = (vectors + groups - 1) / groups };");
  }
  static constexpr std::int64_t kPlainSums = 24;  ///< NF_SUMS of plain numbers
  static constexpr std::int64_t kBehind = 4;      ///< NF_BEHIND of plain numbers

  /// Returns the vector of b at column j, whose elements from `last` on are not read. Behind constants, vectors may
  /// read anything.
  std::string column(const ColumnProduct& p, const std::string& at, const std::string& s,
                     const std::string& last) const {
    if (body_.is_constant(p.b.value)) return "nf_load_" + s + "(" + at + ")";
    return "nf_get_" + s + "(" + at + ", " + last + ")";
  }
  /// Returns the address of the elements of b at term k that an access to the product reads.
  std::string term(const ColumnProduct& p, const LoweredAccess& a) const {
    if (p.row == 0) return plus(at(p.b.value, p.b.offset + a.offset), p.columns, "k");
    const std::string parts = text(p.columns / p.row), part = a.offset ? " + " + text(a.offset / p.row) : "";
    return at(p.b.value, 0) + " + " + wide_of(type_, p.row) + " * (" + parts + " * k" + part + ")";
  }
  /// Returns the product of a column: a sum that is there, or one of few terms.
  std::string product_at(const LoweredInstruction& i) const {
    const LoweredAccess& a = loop_.accesses[i.access];
    const ColumnProduct& p = *body_.column_product(a.value);
    const std::string s = suffix(type_);
    if (p.terms > ColumnProduct::kFewTerms) return "sum" + text(i.slot) + "[v]";
    std::string sum = start_of(p, s);
    for (std::int64_t k = 0; k < p.terms; ++k)
      sum = "nf_fma_" + s + "(nf_set_" + s + "((" + at(p.a.value, p.a.offset) + ")[" + text(k) + "]), " +
            column(p, at(p.b.value, p.b.offset + a.offset) + " + " + text(k * p.columns) + " + j", s, count_) + ", " +
            sum + ")";
    return sum;
  }
  /// Returns the sum before the first term.
  std::string start_of(const ColumnProduct& p, const std::string& s) const {
    if (p.past.empty()) return "nf_set_" + s + "(0)";
    return "nf_load_" + s + "(" + parameters_.name(p.start, type_, false) + " + j)";
  }

  void write_sums(std::int64_t terms, const std::vector<std::size_t>& loads,
                  const std::vector<const LoweredInstruction*>& list, const std::string& s, const std::string& lanes) {
    const std::string v = "nf_" + s + " ";
    const auto sum = [&](std::size_t k) { return "sum" + text(list[k]->slot) + "[v]"; };
    for (const std::size_t k : loads) to_.line(v + "sum" + text(list[k]->slot) + "[group];");
    to_.line("NF_UNROLL");
    to_.open("for (int v = 0; v < group; ++v)");
    bool past = false;
    for (const std::size_t k : loads)
      past = past || !body_.column_product(loop_.accesses[list[k]->access].value)->past.empty();
    if (past) to_.line("const ptrdiff_t j = (g + v) * " + lanes + ";");
    for (const std::size_t k : loads)
      to_.line(sum(k) + " = " + start_of(*body_.column_product(loop_.accesses[list[k]->access].value), s) + ";");
    to_.close();
    to_.open(loop_over("k", terms));
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
    const bool exact = std::ranges::any_of(loads, [&](std::size_t k) {
      return !body_.is_constant(body_.column_product(loop_.accesses[list[k]->access].value)->b.value);
    });
    if (exact) {
      const std::string left = text(loop_.extents[0]) + " - (int)(g + v) * " + lanes;
      to_.line("const int left = " + left + " < " + lanes + " ? " + left + " : " + lanes + ";");
    }
    for (const std::size_t k : loads) {
      const LoweredAccess& a = loop_.accesses[list[k]->access];
      const ColumnProduct& p = *body_.column_product(a.value);
      const std::string from = term(p, a) + " + (g + v) * " + lanes;
      to_.line(sum(k) + " = nf_fma_" + s + "(" + rows.at(at(p.a.value, p.a.offset)) + ", " +
               column(p, from, s, "left < 0 ? 0 : left") + ", " + sum(k) + ");");
    }
    to_.close();
    to_.close();
  }
};

}  // namespace

bool has_columns(const CBody& body, const LoweredLoop& loop) {
  return std::ranges::any_of(loop.accesses, [&](const LoweredAccess& a) { return body.column_product(a.value); });
}

LoopParameters write_columns(CBody& body, const LoweredLoop& loop, CText& to) {
  ColumnsWriter writer(body, loop, to);
  writer.write();
  return writer.parameters();
}

}  // namespace ferrite::exchange::detail
