/// Writes operations that run alone.
#include <algorithm>
#include <functional>
#include <utility>

#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::exchange::detail {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }
std::string suffix_of(Dtype dtype) { return dtype == Dtype::f64 ? "d" : "f"; }

/// One operation that runs alone, with what it writes to.
struct Call {
  CBody& body;
  const LoweredStep& step;
  CText& to;

  const Graph::Node& node() const { return *step.node; }
  const LoweredWindow& in(std::size_t i) const { return step.in[i]; }
  const LoweredWindow& out(std::size_t i = 0) const { return step.out[i]; }
  Dtype dtype() const { return out().spec.dtype; }
  std::string at(const LoweredWindow& w) const { return body.at(w.value, w.offset); }
  std::string kernel(std::string_view name) const { return body.module().kernel(name, dtype()); }
  std::string function(std::string_view name) const {
    return body.module().function(*ferrite::detail::elementwise_operation(name), dtype());
  }
  void wants_floats() const {
    if (!is_float(dtype())) body.refuse(node(), "it takes floats in C, got " + in(0).spec.str());
  }
  /// Writes the beginnings of loops over the axes of a shape, i0, i1, ...
  void open(const Shape& shape) const {
    for (int k = 0; k < shape.rank(); ++k)
      to.open("for (ptrdiff_t i" + text(k) + " = 0; i" + text(k) + " < " + text(shape[k]) + "; ++i" + text(k) + ")");
  }
  void close(const Shape& shape) const {
    for (int k = 0; k < shape.rank(); ++k) to.close();
  }
};

/// Returns the strides of a window as row-major, or false.
bool is_dense(const LoweredWindow& w) {
  const Shape wanted = w.spec.shape.strides();
  for (int k = 0; k < wanted.rank(); ++k)
    if (w.spec.shape[k] != 1 && w.strides[k] != wanted[k]) return false;
  return true;
}
/// Returns the sum of strides times loop variables, " + 3 * i0 + i1".
std::string steps_along(const Shape& shape, const Shape& strides) {
  std::string all;
  for (int k = 0; k < shape.rank(); ++k)
    if (strides[k] != 0 && shape[k] != 1) all += " + " + text(strides[k]) + " * i" + text(k);
  return all;
}

// ---- products -------------------------------------------------------------------------------------------------

/// The strides of one operand of a product in the axes of the result's batch; 0 where it is repeated.
Shape batch_strides(const LoweredWindow& w, const Shape& batch) {
  Shape strides = Shape::filled(batch.rank(), 0);
  const int lead = w.spec.shape.rank() - 2;
  for (int k = 0; k < lead; ++k)
    if (w.spec.shape[k] != 1) strides[batch.rank() - lead + k] = w.strides[k];
  return strides;
}

struct Product {
  std::int64_t M, K, N, am, ak, bk, bn;
};

void write_product(const Call& c, const Product& p, const std::string& a, const std::string& b, const std::string& y) {
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype()));
  const bool vectors = p.ak == 1 && p.bn == 1 && p.N >= 4;
  const std::string kernel = c.kernel(vectors ? "rows" : "dots");
  const std::string head = "static void $name(const " + t + " *a, const " + t + " *b, " + t + " *y) {\n  " + kernel;
  const std::string body =
      vectors ? "(a, " + text(p.am) + ", b, " + text(p.bk) + ", y, " + text(p.N) + ", " + text(p.M) + ", " +
                    text(p.K) + ", " + text(p.N) + ");\n}\n"
              : "(a, " + text(p.am) + ", " + text(p.ak) + ", b, " + text(p.bk) + ", " + text(p.bn) + ", y, " +
                    text(p.N) + ", " + text(p.M) + ", " + text(p.K) + ", " + text(p.N) + ");\n}\n";
  const std::string name = "product_" + text(p.M) + "_" + text(p.K) + "_" + text(p.N);
  c.to.line(c.body.module().define(name, head + body) + "(" + a + ", " + b + ", " + y + ");");
}

void write_matmul(const Call& c) {
  c.wants_floats();
  const LoweredWindow &a = c.in(0), &b = c.in(1), &y = c.out();
  const int ra = a.spec.shape.rank(), rb = b.spec.shape.rank(), r = y.spec.shape.rank();
  if (ra < 2 || rb < 2) c.body.refuse(c.node(), "it multiplies a vector; reshape it to a matrix");
  Product p{a.spec.shape[-2], a.spec.shape[-1], b.spec.shape[-1], a.strides[-2], a.strides[-1], b.strides[-2],
            b.strides[-1]};
  Shape batch;
  for (int k = 0; k + 2 < r; ++k) batch.push_back(y.spec.shape[k]);
  const Shape sa = batch_strides(a, batch), sb = batch_strides(b, batch);
  const bool shared = std::ranges::all_of(sb, [](std::int64_t s) { return s == 0; });
  if (p.M == 1) p.am = p.K;
  if (shared && is_dense(a)) {  // all rows of a by one matrix
    p.M *= batch.numel(), p.am = p.K, p.ak = 1;
    return write_product(c, p, c.at(a), c.at(b), c.at(y));
  }
  c.open(batch);
  write_product(c, p, c.at(a) + steps_along(batch, sa), c.at(b) + steps_along(batch, sb),
                c.at(y) + steps_along(batch, y.strides));
  c.close(batch);
}

// ---- reductions that no loop takes -----------------------------------------------------------------------------

void write_reduction(const Call& c) {
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
      c.to.open("for (ptrdiff_t " + j + " = 0; " + j + " < " + text(rows[k]) + "; ++" + j + ")");
      inner += " + " + text(row_strides[k]) + " * " + j;
    }
    c.to.line("(" + row + ")[r++] = (" + inner + ")[0];");
    for (int k = 0; k < rows.rank(); ++k) c.to.close();
    c.to.line(to + " = " + c.kernel(c.node().op->name) + "(" + row + ", 1, " + text(rows.numel()) + ");");
  } else {
    c.body.refuse(c.node(), "it reduces " + x.spec.str() + "; in C only floats are reduced");
  }
  c.close(kept);
}

// ---- choices --------------------------------------------------------------------------------------------------

/// Slices of x chosen by a list of numbers; one outside the axis is an error.
void write_index_select(const Call& c) {
  const LoweredWindow &x = c.in(0), &index = c.in(1), &y = c.out();
  const int axis = static_cast<int>(std::get<std::int64_t>(*c.node().attrs.at(0)));
  const std::int64_t n = x.spec.shape[axis];
  Shape around = y.spec.shape, from = x.strides;
  const std::string i = "i" + text(axis);
  around[axis] = 1, from[axis] = 0;
  const std::string number = "(" + c.at(index) + " + " + text(index.strides[0]) + " * " + i + ")[0]";
  c.to.open("for (ptrdiff_t " + i + " = 0; " + i + " < " + text(y.spec.shape[axis]) + "; ++" + i + ")");
  c.to.line("ptrdiff_t chosen = (ptrdiff_t)" + number + ";");
  c.to.line("if (chosen < 0) chosen += " + text(n) + ";");
  c.to.line("if (chosen < 0 || chosen >= " + text(n) + ") return NF_BAD_INDEX;");
  c.body.fails();
  for (int k = 0; k < around.rank(); ++k)
    if (k != axis)
      c.to.open("for (ptrdiff_t i" + text(k) + " = 0; i" + text(k) + " < " + text(around[k]) + "; ++i" + text(k) + ")");
  std::string to = c.at(y), at = c.at(x) + " + " + text(x.strides[axis]) + " * chosen";
  for (int k = 0; k < around.rank(); ++k) to += " + " + text(y.strides[k]) + " * i" + text(k);
  at += steps_along(around, from);
  c.to.line("(" + to + ")[0] = (" + at + ")[0];");
  for (int k = 0; k < around.rank(); ++k) c.to.close();
}

/// Copies a window element by element.
void write_copy(const Call& c) {
  const LoweredWindow &x = c.in(0), &y = c.out();
  const Shape& shape = x.spec.shape;
  c.open(shape);
  c.to.line("(" + c.at(y) + steps_along(shape, shape.strides()) + ")[0] = (" + c.at(x) +
            steps_along(shape, x.strides) + ")[0];");
  c.close(shape);
}

// ---- recurrences ----------------------------------------------------------------------------------------------

/// Writes, inside loops over rows b and steps t, a loop over the channels in vectors; `statements` has $(x) for a
/// vector of operand x.
void each_channel(const Call& c, std::int64_t n, const std::function<void()>& statements) {
  const std::string lanes = c.dtype() == Dtype::f64 ? "NF_LANES_D" : "NF_LANES_F";
  c.to.open("for (ptrdiff_t j = 0; j < " + text(n) + "; j += " + lanes + ")");
  c.to.line("const int left = " + text(n) + " - j < " + lanes + " ? (int)(" + text(n) + " - j) : " + lanes + ";");
  statements();
  c.to.close();
}

void check_dense(const Call& c) {
  for (const LoweredWindow& w : c.step.in)
    if (!is_dense(w)) c.body.refuse(c.node(), "an operand is not row-major");
}

/// h[t] = a[t] h[t-1] + b[t], real or complex.
void write_linear_scan(const Call& c) {
  check_dense(c);
  const Shape& shape = c.in(1).spec.shape;
  if (c.step.in.size() > 3 || (c.step.in.size() == 3 && c.in(2).spec.shape.rank() + 1 != shape.rank()))
    c.body.refuse(c.node(), "it has lengths or resets");
  const bool complex = shape.rank() == 4, same = c.in(0).spec.shape.rank() < shape.rank(), h0 = c.step.in.size() == 3;
  const bool reverse = std::get<bool>(*c.node().attrs.at(0));
  const std::int64_t T = shape[1], W = shape.numel() / std::max<std::int64_t>(shape[0] * T, 1);
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype()));
  c.to.open("for (ptrdiff_t b = 0; b < " + text(shape[0]) + "; ++b)");
  c.to.open("for (ptrdiff_t s = 0; s < " + text(T) + "; ++s)");
  c.to.line("const ptrdiff_t at = (b * " + text(T) + " + " + (reverse ? text(T - 1) + " - s" : "s") + ") * " + text(W) + ";");
  c.to.line("const " + t + " *const a = " + c.at(c.in(0)) + (same ? ";" : " + at;"));
  c.to.line("const " + t + " *const from = " + c.at(c.in(1)) + " + at;");
  c.to.line(t + " *const h = " + c.at(c.out()) + " + at;");
  const std::string back = "h " + std::string(reverse ? "+ " : "- ") + text(W);
  c.to.line("const " + t + " *const before = s > 0 ? " + back + " : " +
            (h0 ? c.at(c.in(2)) + " + b * " + text(W) : "(const " + t + " *)0") + ";");
  if (complex) {
    c.to.open("for (ptrdiff_t j = 0; j < " + text(W) + "; j += 2)");
    c.to.line("const " + t + " re = before ? before[j] : 0, im = before ? before[j + 1] : 0;");
    c.to.line("const " + t + " r = nf_fma1_" + s + "(a[j], re, nf_fma1_" + s + "(a[j + 1], -im, from[j]));");
    c.to.line("h[j + 1] = nf_fma1_" + s + "(a[j], im, nf_fma1_" + s + "(a[j + 1], re, from[j + 1]));");
    c.to.line("h[j] = r;");
    c.to.close();
  } else {
    each_channel(c, W, [&] {
      c.to.line("const nf_" + s + " old = before ? nf_get_" + s + "(before + j, left) : nf_set_" + s + "(0);");
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(nf_get_" + s + "(a + j, left), old, nf_get_" + s + "(from + j, left)), left);");
    });
  }
  c.to.close();
  c.to.close();
}

/// The recurrence of a minimal GRU or LSTM.
void write_minimal_scan(const Call& c) {
  check_dense(c);
  if (c.step.in.size() != 2) c.body.refuse(c.node(), "it has lengths or resets");
  const bool lstm = c.node().op->name == "min_lstm_scan";
  const Shape& shape = c.out().spec.shape;
  const std::int64_t B = shape[0], T = shape[1], H = shape[2], G = lstm ? 3 : 2;
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype())), v = "const nf_" + s + " ";
  const std::string sigmoid = c.function("sigmoid"), where = "nf_select_" + s, ge = "nf_is_less_equal_" + s;
  c.to.open("for (ptrdiff_t b = 0; b < " + text(B) + "; ++b)");
  c.to.open("for (ptrdiff_t s = 0; s < " + text(T) + "; ++s)");
  c.to.line("const " + t + " *const g = " + c.at(c.in(0)) + " + (b * " + text(T) + " + s) * " + text(G * H) + ";");
  c.to.line(t + " *const h = " + c.at(c.out()) + " + (b * " + text(T) + " + s) * " + text(H) + ";");
  c.to.line("const " + t + " *const before = s > 0 ? h - " + text(H) + " : " + c.at(c.in(1)) + " + b * " + text(H) + ";");
  const auto get = [&](std::int64_t gate) { return "nf_get_" + s + "(g + " + text(gate * H) + " + j, left)"; };
  each_channel(c, H, [&] {
    c.to.line(v + "c = " + get(0) + ", old = nf_get_" + s + "(before + j, left), zero = nf_set_" + s + "(0), one = nf_set_" + s + "(1);");
    c.to.line(v + "candidate = " + where + "(" + ge + "(zero, c), c + nf_set_" + s + "((" + t + ")0.5), " + sigmoid + "(c));");
    if (lstm) {
      const std::string exp = c.function("exp"), min = c.function("minimum");
      c.to.line(v + "f = " + get(1) + ", i = " + get(2) + ";");
      c.to.line(v + "m = " + min + "(" + min + "(f, i), zero), top = " + exp + "(m);");
      c.to.line(v + "of_f = top + " + exp + "(m - f), of_i = top + " + exp + "(m - i), keeps = of_i / (of_f + of_i);");
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(keeps, old - candidate, candidate), left);");
    } else {
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(" + sigmoid + "(" + get(1) + "), candidate - old, old), left);");
    }
    c.to.line("(void)one;");
  });
  c.to.close();
  c.to.close();
}

/// Appends frames to a line, whose memory the result shares.
void write_append(const Call& c) {
  const LoweredWindow &line = c.in(0), &frames = c.in(1), &all = c.out();
  Shape shape = frames.spec.shape, from = frames.strides, to = all.strides;
  if (all.strides[0] == 1)  // channel by channel
    for (int k = 0; k + 1 < shape.rank(); ++k)
      for (Shape* s : {&shape, &from, &to}) std::swap((*s)[k], (*s)[k + 1]);
  c.open(shape);
  c.to.line("(" + c.at(all) + " + " + text(line.spec.shape[0] * all.strides[0]) + steps_along(shape, to) + ")[0] = (" +
            c.at(frames) + steps_along(shape, from) + ")[0];");
  c.close(shape);
}

constexpr std::pair<std::string_view, void (*)(const Call&)> kCalls[] = {
    {"append_frames", write_append},
    {"amax", write_reduction},         {"amin", write_reduction},
    {"contiguous", write_copy},        {"index_select", write_index_select},
    {"linear_scan", write_linear_scan}, {"matmul", write_matmul},
    {"min_gru_scan", write_minimal_scan}, {"min_lstm_scan", write_minimal_scan},
    {"prod", write_reduction},         {"sum", write_reduction},
    {"reshape", write_copy},
};

}  // namespace

void write_call(CBody& body, const LoweredStep& step, CText& to) {
  if (write_lanes_product(body, step, to)) return;
  const Graph::Node& n = *step.node;
  for (const auto& [name, write] : kCalls) {
    if (n.op->name != name) continue;
    to.open("");
    write(Call{body, step, to});
    to.close();
    return;
  }
  body.refuse(n, "it has no loop in C");
}

}  // namespace ferrite::exchange::detail
