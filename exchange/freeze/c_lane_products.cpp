/// Writes products whose rows are read in pieces: those of a block, and the sums over past frames of a step.
#include <algorithm>

#include "ferrite/exchange/freeze/c_lanes.h"

namespace ferrite::exchange::detail {
std::vector<Taps> taps_of(std::span<const LoweredWindow> windows) {
  std::vector<Taps> all;
  for (const LoweredWindow& w : windows) {
    const std::int64_t count = w.spec.shape[1];
    if (!all.empty()) {
      Taps& last = all.back();
      const std::int64_t apart = w.offset - (last.first.offset + (last.taps - 1) * last.apart);
      const bool alike = last.first.value == w.value && last.first.spec == w.spec && last.first.strides == w.strides;
      if (alike && (last.taps == 1 || apart == last.apart)) {
        if (last.taps++ == 1) last.apart = apart;
        continue;
      }
    }
    all.push_back({w, 1, 0, count});
  }
  return all;
}

namespace {

/// Writes the addresses of the rows of a product, each the numbers of one term in consecutive steps.
class RowsWriter {
 public:
  RowsWriter(CBody& body, std::int64_t steps, CText& to) : body_(body), steps_(steps), to_(to) {}

  void write(const Taps& taps) {
    std::string from = body_.at(taps.first.value, taps.first.offset);
    std::int64_t apart = taps.apart, column = taps.first.strides[1];
    if (taps.first.strides[0] != 1) {  // steps do not lie next to each other
      const std::string turned = body_.scratch(taps.first.spec.dtype, taps.taps * taps.count * steps_);
      open(taps);
      to_.line("  for (ptrdiff_t t = 0; t < " + text(steps_) + "; ++t) (" +
               plus(plus(turned, taps.taps > 1 ? steps_ * taps.count : 0, "k"), steps_, "c") + ")[t] = (" +
               plus(plus(from, apart, "k"), column, "c") + ")[" + text(taps.first.strides[0]) + " * t];");
      from = turned, apart = steps_ * taps.count, column = steps_;
    }
    const std::string t(c_type(taps.first.spec.dtype)), count = text(taps.count);
    const std::string f = body_.module().define(
        "rows_" + count, "NF_APART void $name(const " + t + " **rows, const " + t + " *x, ptrdiff_t step) {\n  " +
                             loop_over("c", taps.count) + " rows[c] = x + step * c;\n}\n");
    const std::string rows = first_ ? "rows + " + text(first_) : "rows";
    const bool one = taps.taps == 1;
    to_.line((one ? "" : loop_over("k", taps.taps) + " ") + f + "(" + plus(rows, one ? 0 : taps.count, "k") + ", " +
             plus(from, one ? 0 : apart, "k") + ", " + text(column) + ");");
    first_ += taps.taps * taps.count;
  }

 private:
  void open(const Taps& taps) {
    if (taps.taps > 1) to_.line(loop_over("k", taps.taps));
    to_.line(loop_over("c", taps.count));
  }

  CBody& body_;
  std::int64_t steps_;
  CText& to_;
  std::int64_t first_ = 0;
};

}  // namespace

bool write_lanes_product(CBody& body, const LoweredStep& step, CText& to) {
  if (!body.lanes()) return false;
  const auto p = lanes_product(step);
  if (!p) return false;
  const LoweredWindow &a = step.in[0], &b = step.in[1], &y = step.out[0];
  const Dtype dtype = y.spec.dtype;
  const std::string t(c_type(dtype)), T = text(p->steps), K = text(p->terms), N = text(p->columns);
  to.open("");
  to.line("const " + t + " *rows[" + K + "];");
  RowsWriter rows(body, p->steps, to);
  if (const std::vector<LoweredWindow>* const joined = body.joined(a.value)) {
    for (const Taps& taps : taps_of(*joined)) rows.write(taps);
  } else {
    rows.write({{a.value, a.offset, {{p->steps, p->terms}, dtype}, {p->a_step, p->a_term}}, 1, 0, p->terms});
  }
  const bool turns = p->y_step != 1;
  const std::string result = turns ? body.scratch(dtype, p->steps * p->columns) : body.at(y.value, y.offset);
  const std::string kernel = body.module().kernel("steps", dtype);
  const std::string function = "static void $name(const " + t + " *const *rows, const " + t + " *b, " + t +
                               " *y) {\n  " + kernel + "(rows, b, " + text(p->b_term) + ", " + text(p->b_column) +
                               ", y, " + text(turns ? p->steps : p->y_column) + ", " + T + ", " + K + ", " + N +
                               ");\n}\n";
  to.line(body.module().define("steps_" + K + "_" + N, function) + "(rows, " + body.at(b.value, b.offset) + ", " +
          result + ");");
  if (turns) {
    to.line("for (ptrdiff_t t = 0; t < " + T + "; ++t)");
    to.line("  for (ptrdiff_t j = 0; j < " + N + "; ++j) (" + body.at(y.value, y.offset) + ")[" + text(p->y_step) +
            " * t + " + text(p->y_column) + " * j] = (" + result + ")[" + T + " * j + t];");
  }
  to.close();
  return true;
}

namespace {

/// Returns the function that adds up the terms of earlier frames.
std::string past_function(CBody& body, const ColumnProduct& p, const Taps& taps, Dtype dtype, bool first) {
  const std::string s = suffix_of(dtype), t(c_type(dtype)), v = "nf_" + s + " ";
  const std::string lanes = lanes_of(dtype), N = text(p.columns);
  CText f(1);
  f.line("enum { vectors = (" + N + " + " + lanes + " - 1) / " + lanes + ", most = vectors < 8 ? vectors : 8 };");
  f.open("for (ptrdiff_t g = 0; g < vectors; g += most)");
  f.line(v + "all[most];");
  f.line("NF_UNROLL");
  f.line("for (int v = 0; v < most; ++v) all[v] = " +
         (first ? "nf_set_" + s + "(0);" : "nf_load_" + s + "(sum + (g + v) * " + lanes + ");"));
  f.open(loop_over("k", taps.taps));
  if (taps.count <= 8) f.line("NF_UNROLL");
  f.open(loop_over("c", taps.count));
  f.line("const " + v + "a = nf_set_" + s + "(x[frame * k + channel * c]);");
  f.line("NF_UNROLL");
  f.line("for (int v = 0; v < most; ++v) all[v] = nf_fma_" + s + "(a, nf_load_" + s + "(b + " + N + " * (" +
         text(taps.count) + " * k + c) + (g + v) * " + lanes + "), all[v]);");
  f.close();
  f.close();
  f.line("NF_UNROLL");
  f.line("for (int v = 0; v < most; ++v)");
  f.line("  if (vectors % most == 0 || (g + v) * " + lanes + " < " + N + ") nf_store_" + s + "(sum + (g + v) * " +
         lanes + ", all[v]);");
  f.close();
  const std::string text_of = "/* The sums of products over " + text(taps.taps) + " earlier frames of " +
                              text(taps.count) + " channels. */\nstatic void $name(const " + t +
                              " *x, ptrdiff_t frame, ptrdiff_t channel, const " + t + " *b, " + t + " *sum) {\n" +
                              f.str() + "}\n";
  return body.module().define("past_" + text(taps.taps) + "_" + text(taps.count) + "_" + N, text_of);
}

}  // namespace

void write_past_sums(CBody& body, const ColumnProduct& p, CText& to) {
  const Dtype dtype = p.b.spec.dtype;
  std::int64_t term = 0;
  for (const Taps& taps : taps_of(p.past)) {
    const std::string f = past_function(body, p, taps, dtype, term == 0);
    to.line(f + "(" + body.at(taps.first.value, taps.first.offset) + ", " + text(taps.apart) + ", " +
            text(taps.first.strides[1]) + ", " + body.at(p.b.value, p.b.offset + term * p.columns) + ", " + p.start +
            ");");
    term += taps.taps * taps.count;
  }
}

}  // namespace ferrite::exchange::detail
