/// Writes recurrences over time that are linear in their states.
#include <algorithm>
#include <functional>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::exchange::detail {
namespace {

/// Writes, inside loops over rows b and steps t, a loop over the channels in vectors; `statements` has $(x) for a
/// vector of operand x.
void each_channel(const CCall& c, std::int64_t n, const std::function<void()>& statements) {
  const std::string lanes = c.dtype() == Dtype::f64 ? "NF_LANES_D" : "NF_LANES_F";
  c.to.open("for (ptrdiff_t j = 0; j < " + text(n) + "; j += " + lanes + ")");
  c.to.line("const int left = " + text(n) + " - j < " + lanes + " ? (int)(" + text(n) + " - j) : " + lanes + ";");
  statements();
  c.to.close();
}

void check_dense(const CCall& c) {
  for (const LoweredWindow& w : c.step.in)
    if (!is_dense(w)) c.body.refuse(c.node(), "an operand is not row-major");
}

/// h[t] = a[t] h[t-1] + b[t], real or complex.
void write_linear_scan(const CCall& c) {
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
void write_minimal_scan(const CCall& c) {
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

constexpr CWriter kWriters[] = {
    {"linear_scan", write_linear_scan}, {"min_gru_scan", write_minimal_scan}, {"min_lstm_scan", write_minimal_scan}};

}  // namespace

std::span<const CWriter> recurrence_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
