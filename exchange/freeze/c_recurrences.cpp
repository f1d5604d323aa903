/// Writes recurrences: linear and selective scans, running sums.
#include <algorithm>
#include <functional>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::exchange::detail {
namespace {

/// Writes, inside loops over rows b and steps t, a loop over the channels in vectors; `statements` has $(x) for a
/// vector of operand x.
void each_channel(const CCall& c, std::int64_t n, const std::function<void()>& statements) {
  const std::string lanes = lanes_of(c.dtype());
  c.to.open("for (ptrdiff_t j = 0; j < " + text(n) + "; j += " + lanes + ")");
  c.to.line("const int left = " + text(n) + " - j < " + lanes + " ? (int)(" + text(n) + " - j) : " + lanes + ";");
  statements();
  c.to.close();
}

/// h[t] = a[t] h[t-1] + b[t], real or complex.
void write_linear_scan(const CCall& c) {
  const Shape& shape = c.in(1).spec.shape;
  if (c.step.in.size() > 3 || (c.step.in.size() == 3 && c.in(2).spec.shape.rank() + 1 != shape.rank()))
    c.body.refuse(c.node(), "it has lengths or resets");
  const bool complex = shape.rank() == 4, same = c.in(0).spec.shape.rank() < shape.rank(), h0 = c.step.in.size() == 3;
  const bool reverse = std::get<bool>(*c.node().attrs.at(0));
  const std::int64_t T = shape[1], W = shape.numel() / std::max<std::int64_t>(shape[0] * T, 1);
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype()));
  const std::string of_a = c.dense(c.in(0)), of_b = c.dense(c.in(1)), of_h0 = h0 ? c.dense(c.in(2)) : "";
  c.to.open(loop_over("b", shape[0]));
  c.to.open(loop_over("s", T));
  c.to.line("const ptrdiff_t at = (b * " + text(T) + " + " + (reverse ? text(T - 1) + " - s" : "s") + ") * " + text(W) +
            ";");
  c.to.line("const " + t + " *const a = " + of_a + (same ? ";" : " + at;"));
  c.to.line("const " + t + " *const from = " + of_b + " + at;");
  c.to.line(t + " *const h = " + c.at(c.out()) + " + at;");
  const std::string back = "h " + std::string(reverse ? "+ " : "- ") + text(W);
  c.to.line("const " + t + " *const before = s > 0 ? " + back + " : " +
            (h0 ? of_h0 + " + b * " + text(W) : "(const " + t + " *)0") + ";");
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
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(nf_get_" + s + "(a + j, left), old, nf_get_" + s +
                "(from + j, left)), left);");
    });
  }
  c.to.close();
  c.to.close();
}

/// The recurrence of a minimal GRU or LSTM.
void write_minimal_scan(const CCall& c) {
  if (c.step.in.size() != 2) c.body.refuse(c.node(), "it has lengths or resets");
  const bool lstm = c.node().op->name == "min_lstm_scan";
  const Shape& shape = c.out().spec.shape;
  const std::int64_t B = shape[0], T = shape[1], H = shape[2], G = lstm ? 3 : 2;
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype())), v = "const nf_" + s + " ";
  const std::string gates = c.dense(c.in(0)), begin = c.dense(c.in(1));
  const std::string sigmoid = c.function("sigmoid"), where = "nf_select_" + s, ge = "nf_is_less_equal_" + s;
  c.to.open(loop_over("b", B));
  c.to.open(loop_over("s", T));
  c.to.line("const " + t + " *const g = " + gates + " + (b * " + text(T) + " + s) * " + text(G * H) + ";");
  c.to.line(t + " *const h = " + c.at(c.out()) + " + (b * " + text(T) + " + s) * " + text(H) + ";");
  c.to.line("const " + t + " *const before = s > 0 ? h - " + text(H) + " : " + begin + " + b * " + text(H) + ";");
  const auto get = [&](std::int64_t gate) { return "nf_get_" + s + "(g + " + text(gate * H) + " + j, left)"; };
  each_channel(c, H, [&] {
    c.to.line(v + "c = " + get(0) + ", old = nf_get_" + s + "(before + j, left), zero = nf_set_" + s + "(0);");
    c.to.line(v + "candidate = " + where + "(" + ge + "(zero, c), c + nf_set_" + s + "((" + t + ")0.5), " + sigmoid +
              "(c));");
    if (lstm) {
      const std::string exp = c.function("exp"), min = c.function("minimum");
      c.to.line(v + "f = " + get(1) + ", i = " + get(2) + ";");
      c.to.line(v + "m = " + min + "(" + min + "(f, i), zero), top = " + exp + "(m);");
      c.to.line(v + "of_f = top + " + exp + "(m - f), of_i = top + " + exp + "(m - i), keeps = of_i / (of_f + of_i);");
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(keeps, old - candidate, candidate), left);");
    } else {
      c.to.line("nf_put_" + s + "(h + j, nf_fma_" + s + "(" + sigmoid + "(" + get(1) +
                "), candidate - old, old), left);");
    }
  });
  c.to.close();
  c.to.close();
}

// ---- the selective scan ---------------------------------------------------------------------------------------

/// The optional operands of a selective scan, by their types; -1: absent.
struct ScanOperands {
  explicit ScanOperands(const CCall& c) {
    for (std::size_t k = 5; k < c.step.in.size(); ++k) {
      const Spec& s = c.in(k).spec;
      if (!is_float(s.dtype)) {
        masked = true;
      } else {
        (s.shape.rank() == 1 ? D : state) = static_cast<int>(k);
      }
    }
  }
  int D = -1, state = -1;
  bool masked = false;  ///< whether there are lengths or resets
};

/// h = e^(delta A) h + (delta x) B and y = D x + the sum of h C over states, step by step; lanes are channels.
void write_selective_scan(const CCall& c) {
  const ScanOperands o(c);
  if (o.masked) c.body.refuse(c.node(), "it has lengths or resets");
  const Shape& x = c.in(0).spec.shape;
  const std::int64_t rows = x[0], T = x[1], D = x[2], N = c.in(2).spec.shape[1];
  const std::string s = suffix_of(c.dtype()), t(c_type(c.dtype())), v = "const nf_" + s + " ";
  const auto at = [&](int k) { return c.dense(c.in(static_cast<std::size_t>(k))); };
  const std::string of_x = at(0), delta = at(1), A = at(2), B = at(3), C = at(4);
  const std::string skip = o.D < 0 ? "" : at(o.D), begin = o.state < 0 ? "" : at(o.state), state = c.at(c.out(1));
  const std::string all = text(rows * D * N), decay = c.kernel("decay");
  c.to.line("for (ptrdiff_t i = 0; i < " + all + "; ++i) (" + state +
            ")[i] = " + (begin.empty() ? "0" : "(" + begin + ")[i]") + ";");
  c.to.open(loop_over("r", rows * T));
  each_channel(c, D, [&] {
    const auto get = [&](const std::string& from) { return "nf_get_" + s + "(" + from + ", left)"; };
    c.to.line(v + "in = " + get(of_x + " + r * " + text(D) + " + j") +
              ", d = " + get(delta + " + r * " + text(D) + " + j") + ", u = d * in;");
    c.to.line("nf_" + s + " y = " + (skip.empty() ? "nf_set_" + s + "(0)" : get(skip + " + j") + " * in") + ";");
    c.to.open(loop_over("k", N));
    c.to.line(t + " *const h = " + state + " + (r / " + text(T) + " * " + text(D) + " + j) * " + text(N) + " + k;");
    const std::string stride = text(N);
    c.to.line(v + "keeps = " + decay + "(d * nf_gather_" + s + "(" + A + " + j * " + stride + " + k, " + stride +
              ", left));");
    c.to.line(v + "next = nf_fma_" + s + "(keeps, nf_gather_" + s + "(h, " + stride + ", left), u * nf_set_" + s +
              "((" + B + ")[r * " + stride + " + k]));");
    c.to.line("nf_scatter_" + s + "(h, " + stride + ", next, left);");
    c.to.line("y = nf_fma_" + s + "(next, nf_set_" + s + "((" + C + ")[r * " + stride + " + k]), y);");
    c.to.close();
    c.to.line("nf_put_" + s + "(" + c.at(c.out()) + " + r * " + text(D) + " + j, y, left);");
  });
  c.to.close();
}

// ---- running sums ---------------------------------------------------------------------------------------------

/// Sums, products and linear recurrences along an axis, in doubles; those of integers wrap.
void write_running(const CCall& c) {
  const auto a = c.node().attrs.as<ferrite::detail::RunningAttrs>();
  const std::string_view op = c.node().op->name;
  const ferrite::detail::AlongAxis axis(c.in(0).spec.shape, a.axis);
  const std::string x = c.dense(c.in(0)), b = op == "linear_recurrence" ? c.dense(c.in(1)) : "", y = c.at(c.out());
  const std::string t(c_type(c.dtype())), n = text(axis.n), inner = text(axis.inner);
  if (axis.n == 0) return;
  c.to.open(loop_over("line", axis.lines()));
  c.to.line("const ptrdiff_t first = line / " + inner + " * " + text(axis.n * axis.inner) + " + line % " + inner + ";");
  if (op == "cumsum" && is_float(c.dtype()) && axis.inner == 1) {
    c.to.line(c.kernel("running_sum") + "(" + x + " + first, " + y + " + first, " + n + ", " + (a.reverse ? "1" : "0") +
              ");");
    return c.to.close();
  }
  const bool real = is_float(c.dtype());
  const std::string wide = real ? "double" : "uint64_t";
  const std::string element = "(" + wide + ")(" + (b.empty() ? x : b) + ")[at]";
  c.to.line(wide + " total = 0;");
  c.to.open("for (ptrdiff_t k = 0; k < " + n + "; ++k)");
  c.to.line("const ptrdiff_t at = first + " + (a.reverse ? "(" + text(axis.n - 1) + " - k)" : "k") + " * " + inner +
            ";");
  const bool truth = c.in(0).spec.dtype == Dtype::boolean;
  c.to.line("const " + wide + " element = " + (truth ? "(" + x + ")[at] != 0" : element) + ";");
  c.to.line("total = k == 0 ? element : " +
            (op == "cumsum"    ? std::string("total + element")
             : op == "cumprod" ? std::string("total * element")
                               : "(double)(" + x + ")[at] * total + element") +
            ";");
  c.to.line("(" + y + ")[at] = (" + t + ")total;");
  c.to.close();
  c.to.close();
}

/// The largest or smallest element up to each along an axis, and its number, the last of equal ones.
void write_running_extreme(const CCall& c) {
  const int axis = static_cast<int>(std::get<std::int64_t>(*c.node().attrs.at(0)));
  const ferrite::detail::AlongAxis a(c.in(0).spec.shape, axis);
  const std::string x = c.dense(c.in(0)), t(c_type(c.dtype())), inner = text(a.inner);
  const std::string better = c.node().op->name == "cummax" ? ">=" : "<=";
  if (a.n == 0) return;
  c.to.open(loop_over("line", a.lines()));
  c.to.line("const ptrdiff_t first = line / " + inner + " * " + text(a.n * a.inner) + " + line % " + inner + ";");
  c.to.line(t + " best = (" + x + ")[first];");
  c.to.line("ptrdiff_t place = 0;");
  c.to.open(loop_over("k", a.n));
  c.to.line("const ptrdiff_t at = first + k * " + inner + ";");
  c.to.line("const " + t + " v = (" + x + ")[at];");
  c.to.line("if (v " + better + " best || v != v) best = v, place = k;");
  c.to.line("(" + c.at(c.out()) + ")[at] = best;");
  c.to.line("(" + c.at(c.out(1)) + ")[at] = place;");
  c.to.close();
  c.to.close();
}

constexpr CWriter kWriters[] = {
    {"cummax", write_running_extreme},
    {"cummin", write_running_extreme},
    {"cumprod", write_running},
    {"cumsum", write_running},
    {"linear_recurrence", write_running},
    {"linear_scan", write_linear_scan},
    {"min_gru_scan", write_minimal_scan},
    {"min_lstm_scan", write_minimal_scan},
    {"selective_scan", write_selective_scan},
};

}  // namespace

std::span<const CWriter> recurrence_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
