/// Writes operations that run alone: finds the writer of each, and has those of copies and reductions.
#include "ferrite/exchange/freeze/c_calls.h"

#include <algorithm>

#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {

std::string CCall::function(std::string_view name) const {
  return body.module().function(*ferrite::detail::elementwise_operation(name), dtype());
}
void CCall::wants_floats() const {
  if (!is_float(dtype())) body.refuse(node(), "it takes floats in C, got " + in(0).spec.str());
}
void CCall::open(const Shape& shape, int without) const {
  for (int k = 0; k < shape.rank(); ++k)
    if (k != without) to.open(loop_over("i" + text(k), shape[k]));
}
void CCall::close(const Shape& shape, int without) const {
  for (int k = 0; k < shape.rank(); ++k)
    if (k != without) to.close();
}
std::string CCall::dense(const LoweredWindow& w) const {
  if (is_dense(w)) return at(w);
  const std::string copy = body.scratch(w.spec.dtype, w.spec.shape.numel());
  write_copy_of(*this, w, copy);
  return copy;
}

bool is_dense(const LoweredWindow& w) {
  const Shape wanted = w.spec.shape.strides();
  for (int k = 0; k < wanted.rank(); ++k)
    if (w.spec.shape[k] != 1 && w.strides[k] != wanted[k]) return false;
  return true;
}
std::string steps_along(const Shape& shape, const Shape& strides) {
  std::string all;
  for (int k = 0; k < shape.rank(); ++k)
    if (strides[k] != 0 && shape[k] != 1) all += " + " + text(strides[k]) + " * i" + text(k);
  return all;
}

namespace {

/// Elements to copy: their strides where they go and where they come from.
struct Moved {
  Shape shape, to, from;
};
/// Returns the same elements with as few axes as possible.
Moved with_few_axes(const Moved& m) {
  Moved few;
  for (int k = 0; k < m.shape.rank(); ++k) {
    if (m.shape[k] == 1) continue;
    if (few.shape.rank() > 0 && few.to[-1] == m.shape[k] * m.to[k] && few.from[-1] == m.shape[k] * m.from[k]) {
      few.shape[-1] *= m.shape[k], few.to[-1] = m.to[k], few.from[-1] = m.from[k];
      continue;
    }
    few.shape.push_back(m.shape[k]), few.to.push_back(m.to[k]), few.from.push_back(m.from[k]);
  }
  return few;
}
/// Copies of contiguous rows in blocks are written as functions from this number of elements on.
constexpr std::int64_t kManyElements = 64;

/// Writes copies of elements, as loops or as a call.
void write_moves(const CCall& c, const std::string& to, const std::string& from, const Moved& all) {
  const Moved m = with_few_axes(all);
  if (!c.body.lanes() || m.shape.rank() != 2 || m.shape.numel() < kManyElements || m.to[1] != 1 || m.from[1] != 1) {
    c.open(m.shape);
    c.to.line("(" + to + steps_along(m.shape, m.to) + ")[0] = (" + from + steps_along(m.shape, m.from) + ")[0];");
    return c.close(m.shape);
  }
  const std::string t(c_type(c.dtype())), rows = text(m.shape[0]), columns = text(m.shape[1]);
  const std::string f = c.body.module().define(
      "move_" + rows + "_" + columns, "NF_APART void $name(" + t + " *y, ptrdiff_t to, const " + t +
                                          " *x, ptrdiff_t from) {\n  " + loop_over("r", m.shape[0]) + "\n    " +
                                          loop_over("t", m.shape[1]) + " y[to * r + t] = x[from * r + t];\n}\n");
  c.to.line(f + "(" + to + ", " + text(m.to[0]) + ", " + from + ", " + text(m.from[0]) + ");");
}

}  // namespace

void write_copy_of(const CCall& c, const LoweredWindow& x, const std::string& to) {
  write_moves(c, to, c.at(x), {x.spec.shape, x.spec.shape.strides(), x.strides});
}

const Tensor* constant_of(const CCall& c, const LoweredWindow& w) {
  for (const Graph::Constant& constant : c.body.program().graph.constants)
    if (constant.value == w.value)
      return w.offset == 0 && constant.tensor.numel() == w.spec.shape.numel() ? &constant.tensor : nullptr;
  return nullptr;
}

namespace {

/// Reduces integers and truth values, whose order does not matter; sums and products wrap.
void write_integers(const CCall& c, const std::string& to, const std::string& from, const Shape& rows,
                    const Shape& strides) {
  const std::string_view op = c.node().op->name;
  const bool truth = c.in(0).spec.dtype == Dtype::boolean, total = op == "sum" || op == "prod";
  const std::string t(c_type(c.dtype())), wide = "uint64_t";
  if (rows.numel() == 0) c.body.refuse(c.node(), "it reduces nothing");
  c.to.line((total ? wide : t) + " all = " + (op == "sum" ? "0" : op == "prod" ? "1" : "(" + from + ")[0]") + ";");
  std::string inner = from;
  for (int k = 0; k < rows.rank(); ++k) {
    const std::string j = "j" + text(k);
    c.to.open(loop_over(j, rows[k]));
    inner += " + " + text(strides[k]) + " * " + j;
  }
  const std::string one = truth && total ? "(uint64_t)((" + inner + ")[0] != 0)" : "(" + inner + ")[0]";
  if (total) {
    c.to.line("all = all " + std::string(op == "sum" ? "+" : "*") + " (uint64_t)" + one + ";");
  } else if (truth) {  // true is -1
    c.to.line("all " + std::string(op == "amax" ? "|= " : "&= ") + one + ";");
  } else {
    c.to.line("if (" + one + (op == "amax" ? " > " : " < ") + "all) all = " + one + ";");
  }
  for (int k = 0; k < rows.rank(); ++k) c.to.close();
  c.to.line(to + " = (" + t + ")all;");
}

void write_reduction(const CCall& c) {
  const LoweredWindow &x = c.in(0), &y = c.out();
  const Shape& axes = c.node().attrs.as<ferrite::detail::ReductionAttrs>().axes;
  Shape kept, kept_strides, rows, row_strides;
  for (int k = 0; k < x.spec.shape.rank(); ++k) {
    const bool reduced = std::ranges::find(axes, k) != axes.end();
    (reduced ? rows : kept).push_back(x.spec.shape[k]);
    (reduced ? row_strides : kept_strides).push_back(x.strides[k]);
  }
  const std::string to = "(" + c.at(y) + steps_along(kept, kept.strides()) + ")[0]";
  const std::string from = c.at(x) + steps_along(kept, kept_strides);
  c.open(kept);
  if (is_float(c.dtype()) && rows.rank() <= 1) {
    const std::string step = rows.rank() ? text(row_strides[0]) : "1", n = rows.rank() ? text(rows[0]) : "1";
    c.to.line(to + " = " + c.kernel(c.node().op->name) + "(" + from + ", " + step + ", " + n + ");");
  } else if (is_float(c.dtype())) {
    const std::string row = c.body.scratch(c.dtype(), rows.numel());
    c.to.line("ptrdiff_t r = 0;");
    std::string inner = from;
    for (int k = 0; k < rows.rank(); ++k) {
      const std::string j = "j" + text(k);
      c.to.open(loop_over(j, rows[k]));
      inner += " + " + text(row_strides[k]) + " * " + j;
    }
    c.to.line("(" + row + ")[r++] = (" + inner + ")[0];");
    for (int k = 0; k < rows.rank(); ++k) c.to.close();
    c.to.line(to + " = " + c.kernel(c.node().op->name) + "(" + row + ", 1, " + text(rows.numel()) + ");");
  } else {
    write_integers(c, to, from, rows, row_strides);
  }
  c.close(kept);
}

/// Copies a window element by element.
void write_copy(const CCall& c) { write_copy_of(c, c.in(0), c.at(c.out())); }

/// Appends frames to a line, whose memory the result shares.
void write_append(const CCall& c) {
  const LoweredWindow &line = c.in(0), &frames = c.in(1), &all = c.out();
  Shape shape = frames.spec.shape, from = frames.strides, to = all.strides;
  if (all.strides[0] == 1)  // channel by channel
    for (int k = 0; k + 1 < shape.rank(); ++k)
      for (Shape* s : {&shape, &from, &to}) std::swap((*s)[k], (*s)[k + 1]);
  write_moves(c, c.at(all) + " + " + text(line.spec.shape[0] * all.strides[0]), c.at(frames), {shape, to, from});
}

constexpr CWriter kWriters[] = {
    {"amax", write_reduction}, {"amin", write_reduction}, {"append_frames", write_append}, {"contiguous", write_copy},
    {"prod", write_reduction}, {"reshape", write_copy},   {"sum", write_reduction},
};

const CWriter* writer_of(const Primitive& op) {
  for (const std::span<const CWriter> family :
       {std::span<const CWriter>(kWriters), product_writers(), choice_writers(), optimiser_writers(),
        recurrence_writers(), scan_writers(), transform_writers(), window_writers()})
    for (const CWriter& w : family)
      if (w.name == op.name) return &w;
  return nullptr;
}

}  // namespace

bool has_call(const Primitive& op) { return writer_of(op) != nullptr; }

void write_call(CBody& body, const LoweredStep& step, CText& to) {
  if (write_lanes_product(body, step, to)) return;
  const CWriter* writer = writer_of(*step.node->op);
  if (!writer) body.refuse(*step.node, "it has no form in C; compute it outside of the frozen net");
  to.open("");
  writer->write(CCall{body, step, to});
  to.close();
}

}  // namespace ferrite::exchange::detail
