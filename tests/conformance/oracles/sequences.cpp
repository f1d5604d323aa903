// Sequences of recurrent cells and their gradients in plain loops over doubles, and their samples.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/recurrent.h"

namespace oracles {
namespace sequences {
namespace {
using namespace ferrite::nn::detail;
using ferrite::nn::SequenceParts;

/// Returns a row times column j of w.
double product_of(const Row& row, const Dense& w, std::int64_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) sum += row[k] * w.at({static_cast<std::int64_t>(k), j});
  return sum;
}
Row projected(const Row& whole, const Dense& w_hr) {
  Row p;
  for (std::int64_t j = 0; j < w_hr.shape[1]; ++j) p.push_back(product_of(whole, w_hr, j));
  return p;
}

/// One row's pass through a sequence of dense operands.
class DenseSequence {
 public:
  DenseSequence(const GatedCell& cell, std::span<const Dense> in, const SequenceOrder& order, std::size_t begin = 0)
      : cell_(cell),
        in_(in),
        o_(parts_of(
            cell, in.size(),
            [in](std::size_t k) {
              return OperandType{in[k].dtype, in[k].shape.rank()};
            },
            begin)),
        axes_(order),
        reverse_(order.reverse) {
    T = at(o_.x).shape[axes_.time], B = at(o_.h0).shape[0], D = at(o_.x).shape[2], P = at(o_.h0).shape[1];
    H = at(o_.w.weight_hh).shape[1] / cell.gates;
  }
  std::int64_t T, B, D, P, H;

  const Dense& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  const SequenceParts& operands() const { return o_; }
  Shape index(std::int64_t t, std::int64_t b, std::int64_t j) const {
    return axes_.time == 1 ? Shape{b, t, j} : Shape{t, b, j};
  }
  std::int64_t time(std::int64_t n) const { return reverse_ ? T - 1 - n : n; }
  std::int64_t length(std::int64_t b) const {
    return o_.lengths < 0 ? T : static_cast<std::int64_t>(at(o_.lengths).at({b}));
  }
  bool resets_at(std::int64_t t, std::int64_t b) const {
    const std::int64_t border = reverse_ ? t + 1 : t;
    return o_.resets >= 0 && border < length(b) && at(o_.resets).at({b, border}) != 0;
  }
  Row row(int k, std::int64_t b, std::int64_t n) const {
    Row r;
    for (std::int64_t j = 0; k >= 0 && j < n; ++j) r.push_back(at(k).at({b, j}));
    return r;
  }
  double bias(int k, std::int64_t column) const { return k < 0 ? 0 : at(k).at({column}); }

  /// Runs a step and returns what it saves, gates first; h and c become those of the next step.
  Row step(std::int64_t t, std::int64_t b, Row& h, Row& c) const {
    StepOracle s{.H = H,
                 .input =
                     [&](std::int64_t gate, std::int64_t j) {
                       double sum = bias(o_.w.bias_ih, gate * H + j);
                       for (std::int64_t k = 0; k < D; ++k)
                         sum += at(o_.x).at(index(t, b, k)) * at(o_.w.weight_ih).at({k, gate * H + j});
                       return sum;
                     },
                 .product =
                     [&](const Row& operand, std::int64_t gate, std::int64_t j) {
                       return product_of(operand, at(o_.w.weight_hh), gate * H + j) + bias(o_.w.bias_hh, gate * H + j);
                     },
                 .vector = [&](std::int64_t v, std::int64_t j) { return bias(o_.w.weight_ch, v * H + j); },
                 .h = h,
                 .c = c,
                 .next = Row(static_cast<std::size_t>(H)),
                 .saved = Row(static_cast<std::size_t>(cell_.saved * H))};
    oracle_of(cell_).step(s);
    c = s.c;
    h = o_.w.weight_hr < 0 ? s.next : projected(s.next, at(o_.w.weight_hr));
    return s.saved;
  }

 private:
  const GatedCell& cell_;
  std::span<const Dense> in_;
  SequenceParts o_;
  SequenceAxes axes_;
  bool reverse_;
};

/// One row of the backward pass, from the values that the forward pass saved.
class DenseBackward {
 public:
  DenseBackward(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out, const SequenceOrder& order)
      : cell_(cell), in_(in), out_(out), s_(cell, in, order, cell.has_memory ? 5 : 4) {}

  void run(std::int64_t b) {
    Row dh = given(3, b, s_.P), dc = cell_.has_memory ? given(4, b, s_.H) : Row();
    for (std::int64_t n = s_.T - 1; n >= 0; --n) {
      const std::int64_t t = s_.time(n);
      if (t >= s_.length(b)) continue;
      for (std::int64_t j = 0; in_[2].values.size() && j < s_.P; ++j)
        dh[static_cast<std::size_t>(j)] += in_[2].at(s_.index(t, b, j));
      step(n, t, b, dh, dc);
      if (!s_.resets_at(t, b)) continue;
      std::fill(dh.begin(), dh.end(), 0);
      std::fill(dc.begin(), dc.end(), 0);
    }
    for (std::int64_t j = 0; j < s_.P; ++j) add(s_.operands().h0, {b, j}, dh[static_cast<std::size_t>(j)]);
    for (std::int64_t j = 0; cell_.has_memory && j < s_.H; ++j)
      add(s_.operands().c0, {b, j}, dc[static_cast<std::size_t>(j)]);
  }

 private:
  Row given(std::size_t k, std::int64_t b, std::int64_t n) const {
    Row r(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; in_[k].values.size() && j < n; ++j) r[static_cast<std::size_t>(j)] = in_[k].at({b, j});
    return r;
  }
  double saved(std::int64_t t, std::int64_t b, std::int64_t place, std::int64_t j) const {
    return in_[1].at({t, b, place * s_.H + j});
  }
  /// Returns a state before the n-th step.
  double before(std::int64_t n, std::int64_t b, std::int64_t j, bool memory) const {
    const std::int64_t t = s_.time(n);
    if (s_.resets_at(t, b)) return 0;
    const std::int64_t earlier = n > 0 ? s_.time(n - 1) : -1;
    if (n == 0 || earlier >= s_.length(b)) return s_.at(memory ? s_.operands().c0 : s_.operands().h0).at({b, j});
    return memory ? saved(earlier, b, cell_.saved_c, j) : in_[0].at(s_.index(earlier, b, j));
  }
  void add(int k, const Shape& at, double v) {
    if (k < 0) return;
    Dense& d = out_[static_cast<std::size_t>(k - s_.operands().first)];
    if (!d.values.empty()) d.at(at) += v;
  }

  /// Adds a cotangent of x W_ih + b_ih or of h W_hh + b_hh for one column.
  void of_input(std::int64_t t, std::int64_t b, std::int64_t column, double d) {
    const SequenceParts& o = s_.operands();
    add(o.w.bias_ih, {column}, d);
    for (std::int64_t k = 0; k < s_.D; ++k) {
      add(o.w.weight_ih, {k, column}, d * s_.at(o.x).at(s_.index(t, b, k)));
      add(o.x, s_.index(t, b, k), d * s_.at(o.w.weight_ih).at({k, column}));
    }
  }
  void of_product(const Row& operand, std::int64_t column, double d, Row& to) {
    const SequenceParts& o = s_.operands();
    add(o.w.bias_hh, {column}, d);
    for (std::int64_t k = 0; k < s_.P; ++k) {
      add(o.w.weight_hh, {k, column}, d * operand[static_cast<std::size_t>(k)]);
      to[static_cast<std::size_t>(k)] += d * s_.at(o.w.weight_hh).at({k, column});
    }
  }

  void step(std::int64_t n, std::int64_t t, std::int64_t b, Row& dh, Row& dc) {
    const SequenceParts& o = s_.operands();
    BackOracle s{
        .H = s_.H,
        .saved = [&](std::int64_t place, std::int64_t j) { return saved(t, b, place, j); },
        .vector = [&](std::int64_t v, std::int64_t j) { return s_.at(o.w.weight_ch).at({v * s_.H + j}); },
        .y = {},
        .h = {},
        .c = {},
        .d = through_projection(t, b, dh),
        .dh = Row(dh.size()),
        .dc = dc,
        .add_input = [&](std::int64_t gate, std::int64_t j, double d) { of_input(t, b, gate * s_.H + j, d); },
        .add_product = [&](const Row& operand, std::int64_t gate, std::int64_t j, double d,
                           Row& to) { of_product(operand, gate * s_.H + j, d, to); },
        .add_vector = [&](std::int64_t v, std::int64_t j, double d) { add(o.w.weight_ch, {v * s_.H + j}, d); }};
    for (std::int64_t j = 0; j < s_.P; ++j) {
      s.y.push_back(in_[0].at(s_.index(t, b, j)));
      s.h.push_back(before(n, b, j, false));
    }
    for (std::int64_t j = 0; cell_.has_memory && j < s_.H; ++j) s.c.push_back(before(n, b, j, true));
    oracle_of(cell_).back(s);
    dh = s.dh, dc = s.dc;
  }
  Row through_projection(std::int64_t t, std::int64_t b, const Row& dp) {
    if (s_.operands().w.weight_hr < 0) return dp;
    Row d(static_cast<std::size_t>(s_.H));
    for (std::int64_t k = 0; k < s_.H; ++k)
      for (std::int64_t j = 0; j < s_.P; ++j) {
        const double v = dp[static_cast<std::size_t>(j)];
        add(s_.operands().w.weight_hr, {k, j}, v * saved(t, b, 3, k) * std::tanh(saved(t, b, 4, k)));
        d[static_cast<std::size_t>(k)] += v * s_.at(s_.operands().w.weight_hr).at({k, j});
      }
    return d;
  }

  const GatedCell& cell_;
  std::span<const Dense> in_;
  std::span<Dense> out_;
  DenseSequence s_;
};

/// The extents of one sample: T, B, H and the width of the state.
struct Extents {
  std::int64_t T, B, D, H, P;
};
struct Given {
  bool reverse = false, batch_first = false, bias = false, lengths = false, resets = false;
};

SequenceOrder order_of(const Given& g) { return {g.reverse, g.batch_first}; }

void push_operands(const GatedCell& cell, const Extents& e, const Given& g, Sample& s) {
  const std::int64_t columns = cell.gates * e.H;
  s.range = {-1, 1};
  s.inputs.push_back({g.batch_first ? Shape{e.B, e.T, e.D} : Shape{e.T, e.B, e.D}});
  s.inputs.push_back({{e.B, e.P}});
  if (cell.has_memory) s.inputs.push_back({{e.B, e.H}});
  s.inputs.push_back({{e.D, columns}});
  s.inputs.push_back({{e.P, columns}});
  if (cell.vectors) s.inputs.push_back({{cell.vectors * e.H}});
  for (int k = 0; g.bias && k < 2; ++k) s.inputs.push_back({{columns}});
  if (e.P != e.H) s.inputs.push_back({{e.H, e.P}});
  if (g.lengths) s.inputs.push_back({{e.B}, Dtype::i64});
  if (g.resets) s.inputs.push_back({{e.B, e.T}, Dtype::boolean});
  if (g.lengths)
    s.indices = e.B == 2 && e.T == 3 ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{2, 4, 1};
  if (g.resets) s.indices.insert(s.indices.end(), {0, 1, 0, 0, 1});
  if (g.lengths && g.resets) s.indices = {3, 1, 0, 1, 1, 0, 0, 1};
}

template <class F>
void each_sample(const GatedCell& cell, F&& f) {
  f(Extents{1, 1, 1, 1, 1}, Given{.batch_first = true, .bias = true});
  f(Extents{3, 2, 3, 2, 2}, Given{.bias = true});
  f(Extents{2, 2, 1, 3, 3}, Given{.reverse = true, .batch_first = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.batch_first = true, .bias = true, .lengths = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.reverse = true, .bias = true, .lengths = true});
  f(Extents{4, 2, 2, 2, 2}, Given{.batch_first = true, .bias = true, .resets = true});
  f(Extents{4, 2, 2, 2, 2}, Given{.reverse = true, .resets = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.reverse = true, .lengths = true, .resets = true});
  if (cell.projects) f(Extents{3, 2, 2, 3, 2}, Given{.bias = true});
  if (cell.projects) f(Extents{3, 2, 2, 3, 2}, Given{.batch_first = true, .lengths = true});
}

}  // namespace
}  // namespace sequences

using namespace sequences;
using namespace ferrite::nn::detail;

void sequence_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out,
                     const SequenceOrder& order) {
  const DenseSequence s(cell, in, order);
  for (std::int64_t b = 0; b < s.B; ++b) {
    Row h = s.row(s.operands().h0, b, s.P), c = s.row(s.operands().c0, b, s.H);
    for (std::int64_t n = 0; n < s.T; ++n) {
      const std::int64_t t = s.time(n);
      if (t >= s.length(b)) continue;  // the outputs are zeros
      if (s.resets_at(t, b)) std::fill(h.begin(), h.end(), 0), std::fill(c.begin(), c.end(), 0);
      const Row saved = s.step(t, b, h, c);
      for (std::int64_t j = 0; j < s.P; ++j) out[0].at(s.index(t, b, j)) = h[static_cast<std::size_t>(j)];
      for (std::size_t k = 0; !out.back().values.empty() && k < saved.size(); ++k)
        out.back().at({t, b, static_cast<std::int64_t>(k)}) = saved[k];
    }
    for (std::int64_t j = 0; j < s.P; ++j) out[1].at({b, j}) = h[static_cast<std::size_t>(j)];
    for (std::int64_t j = 0; cell.has_memory && j < s.H; ++j) out[2].at({b, j}) = c[static_cast<std::size_t>(j)];
  }
}

void sequence_grad_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out,
                          const SequenceOrder& order) {
  const std::int64_t rows = in[cell.has_memory ? 6 : 5].shape[0];
  for (std::int64_t b = 0; b < rows; ++b) DenseBackward(cell, in, out, order).run(b);
}

std::vector<Sample> sequence_samples(const GatedCell& cell) {
  std::vector<Sample> list;
  each_sample(cell, [&](const Extents& e, const Given& g) {
    Sample s{.attrs = SequenceSaves{order_of(g), false}};
    s.smooth_at_ties = &cell != &kRnnRelu;
    push_operands(cell, e, g, s);
    list.push_back(s);
  });
  Sample saving = list[1];
  saving.attrs = SequenceSaves{{}, true};
  saving.smooth = false;  // saved values have no gradient
  list.push_back(saving);
  return list;
}

std::vector<Sample> sequence_grad_samples(const GatedCell& cell) {
  std::vector<Sample> list;
  each_sample(cell, [&](const Extents& e, const Given& g) {
    for (const bool all : {true, false}) {
      Sample s;
      const auto state = [&](std::int64_t width) { return Spec{all ? Shape{e.B, width} : Shape{0}}; };
      const Shape y = g.batch_first ? Shape{e.B, e.T, e.P} : Shape{e.T, e.B, e.P};
      s.inputs = {{y}, {{e.T, e.B, cell.saved * e.H}}, {y}, state(e.P)};
      if (cell.saved == 0) s.inputs[1] = {{0}};
      if (cell.has_memory) s.inputs.push_back(state(e.H));
      const std::size_t begin = s.inputs.size();
      push_operands(cell, e, g, s);
      Shape wants;
      for (std::size_t k = begin; k < s.inputs.size(); ++k) {
        const auto at = static_cast<std::int64_t>(k - begin);
        if (is_float(s.inputs[k].dtype) && (all || at == 2 || at == 3 || at == 5)) wants.push_back(at);
      }
      s.attrs = SequenceWants{order_of(g), wants};
      list.push_back(s);
    }
  });
  return list;
}

void step_oracle(const GatedCell& cell, std::span<const Dense> in, std::span<Dense> out, bool bias, bool projection) {
  const Dense& first = in[cell.has_memory ? 2 : 1];
  const std::size_t w_hh = cell.has_memory ? 3 : 2, w_ch = w_hh + 1, b_hh = w_ch + (cell.vectors ? 1 : 0);
  const std::int64_t B = first.shape[0], H = first.shape[1];
  for (std::int64_t b = 0; b < B; ++b) {
    const auto row = [&](const Dense& d) {
      Row r;
      for (std::int64_t j = 0; j < d.shape[1]; ++j) r.push_back(d.at({b, j}));
      return r;
    };
    StepOracle s{.H = H,
                 .input =
                     [&](std::int64_t gate, std::int64_t j) {
                       return in[0].at({b, gate * H + j});
                     },
                 .product =
                     [&](const Row& operand, std::int64_t gate, std::int64_t j) {
                       return product_of(operand, in[w_hh], gate * H + j) + (bias ? in[b_hh].at({gate * H + j}) : 0);
                     },
                 .vector = [&](std::int64_t v, std::int64_t j) { return in[w_ch].at({v * H + j}); },
                 .h = row(in[1]),
                 .c = cell.has_memory ? row(in[2]) : Row(),
                 .next = Row(static_cast<std::size_t>(H)),
                 .saved = Row(static_cast<std::size_t>(cell.saved * H))};
    oracle_of(cell).step(s);
    const Row h = projection ? projected(s.next, in.back()) : s.next;
    for (std::size_t j = 0; j < h.size(); ++j) out[0].at({b, static_cast<std::int64_t>(j)}) = h[j];
    for (std::size_t j = 0; j < s.c.size(); ++j) out[1].at({b, static_cast<std::int64_t>(j)}) = s.c[j];
  }
}

std::vector<Sample> step_samples(const GatedCell& cell) {
  const std::int64_t H = 3, columns = cell.gates * H;
  std::vector<Spec> in = {{{2, columns}}, {{2, H}}};
  if (cell.has_memory) in.push_back({{2, H}});
  in.push_back({{H, columns}});
  if (cell.vectors) in.push_back({{cell.vectors * H}});
  std::vector<Spec> with_bias = in;
  with_bias.push_back({{columns}});
  return {{.inputs = in}, {.inputs = with_bias}};
}

}  // namespace oracles
