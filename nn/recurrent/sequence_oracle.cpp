/// Sequences and their gradients in plain loops over doubles, and the samples that tests try.
#include <cmath>
#include <vector>

#include "ferrite/nn/recurrent/detail/sequence_operands.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

namespace {

using Row = std::vector<double>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One row through a sequence of dense operands.
class DenseSequence {
 public:
  DenseSequence(CellType cell, std::span<const Dense> in, const SequenceOrder& order, std::size_t begin = 0)
      : cell_(cell),
        in_(in),
        o_(
            cell, in.size(),
            [in](std::size_t k) {
              return SequenceOperands::Item{in[k].dtype, in[k].shape.rank()};
            },
            begin),
        axes_(order),
        reverse_(order.reverse) {
    T = at(o_.x).shape[axes_.time], B = at(o_.h0).shape[0], D = at(o_.x).shape[2], P = at(o_.h0).shape[1];
    H = at(o_.w_hh).shape[1] / gates_of(cell);
  }
  std::int64_t T, B, D, P, H;

  const Dense& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  const SequenceOperands& operands() const { return o_; }
  Shape index(std::int64_t t, std::int64_t b, std::int64_t j) const {
    return axes_.time == 1 ? Shape{b, t, j} : Shape{t, b, j};
  }
  std::int64_t time(std::int64_t n) const { return reverse_ ? T - 1 - n : n; }
  std::int64_t length(std::int64_t b) const {
    return o_.lengths < 0 ? T : static_cast<std::int64_t>(at(o_.lengths).at({b}));
  }
  bool anew(std::int64_t t, std::int64_t b) const {
    const std::int64_t border = reverse_ ? t + 1 : t;
    return o_.resets >= 0 && border < length(b) && at(o_.resets).at({b, border}) != 0;
  }
  Row row(int k, std::int64_t b, std::int64_t n) const {
    Row r;
    for (std::int64_t j = 0; k >= 0 && j < n; ++j) r.push_back(at(k).at({b, j}));
    return r;
  }
  double bias(int k, std::int64_t column) const { return k < 0 ? 0 : at(k).at({column}); }

  /// What a step saves, gates first; h and c go on to the next step.
  Row step(std::int64_t t, std::int64_t b, Row& h, Row& c) const {
    const auto x_part = [&](std::int64_t column) {
      double s = bias(o_.b_ih, column);
      for (std::int64_t k = 0; k < D; ++k) s += at(o_.x).at(index(t, b, k)) * at(o_.w_ih).at({k, column});
      return s;
    };
    const auto h_part = [&](const Row& state, std::int64_t column) {
      double s = bias(o_.b_hh, column);
      for (std::int64_t k = 0; k < P; ++k) s += state[static_cast<std::size_t>(k)] * at(o_.w_hh).at({k, column});
      return s;
    };
    const auto sum = [&](std::int64_t gate, std::int64_t j) { return x_part(gate * H + j) + h_part(h, gate * H + j); };
    Row saved(static_cast<std::size_t>(saved_of(cell_) * H)), next(static_cast<std::size_t>(H)), reset = h;
    const auto place = [&](std::int64_t k, std::int64_t j) -> double& {
      return saved[static_cast<std::size_t>(k * H + j)];
    };
    for (std::int64_t j = 0; is_gru(cell_) && j < H; ++j) {
      place(0, j) = logistic(sum(0, j));
      place(1, j) = logistic(sum(1, j));
      reset[static_cast<std::size_t>(j)] *= place(0, j);
    }
    for (std::int64_t j = 0; j < H; ++j) {
      const auto u = static_cast<std::size_t>(j);
      if (is_gru(cell_)) {
        const bool after = cell_ == CellType::gru;
        const double q = h_part(after ? h : reset, 2 * H + j), z = place(1, j);
        place(2, j) = std::tanh(x_part(2 * H + j) + (after ? place(0, j) * q : q));
        if (after) place(3, j) = q;
        next[u] = (1 - z) * place(2, j) + z * h[u];
      } else if (cell_ == CellType::lstm) {
        for (const std::int64_t gate : {0, 1, 3}) place(gate, j) = logistic(sum(gate, j));
        place(2, j) = std::tanh(sum(2, j));
        c[u] = place(4, j) = place(1, j) * c[u] + place(0, j) * place(2, j);
        next[u] = place(3, j) * std::tanh(c[u]);
      } else {
        next[u] = cell_ == CellType::rnn_relu ? std::max(0.0, sum(0, j)) : std::tanh(sum(0, j));
      }
    }
    h = o_.w_hr < 0 ? next : projected(next);
    return saved;
  }

 private:
  Row projected(const Row& whole) const {
    Row p(static_cast<std::size_t>(P));
    for (std::int64_t j = 0; j < P; ++j)
      for (std::int64_t k = 0; k < H; ++k)
        p[static_cast<std::size_t>(j)] += whole[static_cast<std::size_t>(k)] * at(o_.w_hr).at({k, j});
    return p;
  }

  CellType cell_;
  std::span<const Dense> in_;
  SequenceOperands o_;
  SequenceAxes axes_;
  bool reverse_;
};

/// One row on the way back, from what the forward pass is said to have left.
class DenseWayBack {
 public:
  DenseWayBack(CellType cell, std::span<const Dense> in, std::span<Dense> out, const SequenceOrder& order)
      : cell_(cell), in_(in), out_(out), s_(cell, in, order, has_memory(cell) ? 5 : 4) {}

  void run(std::int64_t b) {
    Row dh = given(3, b, s_.P), dc = has_memory(cell_) ? given(4, b, s_.H) : Row();
    for (std::int64_t n = s_.T - 1; n >= 0; --n) {
      const std::int64_t t = s_.time(n);
      if (t >= s_.length(b)) continue;
      for (std::int64_t j = 0; in_[2].values.size() && j < s_.P; ++j)
        dh[static_cast<std::size_t>(j)] += in_[2].at(s_.index(t, b, j));
      step(n, t, b, dh, dc);
      if (!s_.anew(t, b)) continue;
      std::fill(dh.begin(), dh.end(), 0);
      std::fill(dc.begin(), dc.end(), 0);
    }
    for (std::int64_t j = 0; j < s_.P; ++j) add(s_.operands().h0, {b, j}, dh[static_cast<std::size_t>(j)]);
    for (std::int64_t j = 0; has_memory(cell_) && j < s_.H; ++j)
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
  /// A state before the n-th step.
  double before(std::int64_t n, std::int64_t b, std::int64_t j, bool memory) const {
    const std::int64_t t = s_.time(n);
    if (s_.anew(t, b)) return 0;
    const std::int64_t earlier = n > 0 ? s_.time(n - 1) : -1;
    if (n == 0 || earlier >= s_.length(b)) return s_.at(memory ? s_.operands().c0 : s_.operands().h0).at({b, j});
    return memory ? saved(earlier, b, 4, j) : in_[0].at(s_.index(earlier, b, j));
  }
  void add(int k, const Shape& at, double v) {
    if (k < 0) return;
    Dense& d = out_[static_cast<std::size_t>(k - s_.operands().first)];
    if (!d.values.empty()) d.at(at) += v;
  }

  /// A cotangent of x W_ih + b_ih or of h W_hh + b_hh, for one column.
  void of_input(std::int64_t t, std::int64_t b, std::int64_t column, double d) {
    const SequenceOperands& o = s_.operands();
    add(o.b_ih, {column}, d);
    for (std::int64_t k = 0; k < s_.D; ++k) {
      add(o.w_ih, {k, column}, d * s_.at(o.x).at(s_.index(t, b, k)));
      add(o.x, s_.index(t, b, k), d * s_.at(o.w_ih).at({k, column}));
    }
  }
  void of_state(const Row& h, std::int64_t column, double d, Row& dh) {
    const SequenceOperands& o = s_.operands();
    add(o.b_hh, {column}, d);
    for (std::int64_t k = 0; k < s_.P; ++k) {
      add(o.w_hh, {k, column}, d * h[static_cast<std::size_t>(k)]);
      dh[static_cast<std::size_t>(k)] += d * s_.at(o.w_hh).at({k, column});
    }
  }

  void step(std::int64_t n, std::int64_t t, std::int64_t b, Row& dh, Row& dc) {
    const std::int64_t H = s_.H;
    Row h, next(dh.size());
    for (std::int64_t j = 0; j < s_.P; ++j) h.push_back(before(n, b, j, false));
    const Row whole = cell_ == CellType::lstm ? through_projection(t, b, dh) : dh;
    Row reset = h;
    for (std::int64_t j = 0; j < H; ++j) {
      const auto u = static_cast<std::size_t>(j);
      const double d = whole[u];
      if (is_gru(cell_)) {
        const double r = saved(t, b, 0, j), z = saved(t, b, 1, j), c = saved(t, b, 2, j);
        const double dn = d * (1 - z) * (1 - c * c), dz = d * (h[u] - c) * z * (1 - z);
        next[u] += d * z;
        of_input(t, b, 2 * H + j, dn);
        of_input(t, b, H + j, dz);
        of_state(h, H + j, dz, next);
        reset[u] = r * h[u];
        if (cell_ == CellType::gru_reset_before) continue;
        const double dr = dn * saved(t, b, 3, j) * r * (1 - r);
        of_input(t, b, j, dr);
        of_state(h, j, dr, next);
        of_state(h, 2 * H + j, dn * r, next);
      } else if (cell_ == CellType::lstm) {
        const double i = saved(t, b, 0, j), f = saved(t, b, 1, j), g = saved(t, b, 2, j), o = saved(t, b, 3, j);
        const double tc = std::tanh(saved(t, b, 4, j)), m = dc[u] + d * o * (1 - tc * tc);
        const double sums[4] = {m * g * i * (1 - i), m * before(n, b, j, true) * f * (1 - f), m * i * (1 - g * g),
                                d * tc * o * (1 - o)};
        for (std::int64_t gate = 0; gate < 4; ++gate) of_both(t, b, h, gate * H + j, sums[gate], next);
        dc[u] = m * f;
      } else {
        const double y = in_[0].at(s_.index(t, b, j));
        of_both(t, b, h, j, cell_ == CellType::rnn_relu ? (y > 0 ? d : 0) : d * (1 - y * y), next);
      }
    }
    if (cell_ == CellType::gru_reset_before) through_reset(t, b, h, reset, whole, next);
    dh = next;
  }
  void of_both(std::int64_t t, std::int64_t b, const Row& h, std::int64_t column, double d, Row& dh) {
    of_input(t, b, column, d);
    of_state(h, column, d, dh);
  }
  Row through_projection(std::int64_t t, std::int64_t b, const Row& dp) {
    if (s_.operands().w_hr < 0) return dp;
    Row d(static_cast<std::size_t>(s_.H));
    for (std::int64_t k = 0; k < s_.H; ++k)
      for (std::int64_t j = 0; j < s_.P; ++j) {
        const double v = dp[static_cast<std::size_t>(j)];
        add(s_.operands().w_hr, {k, j}, v * saved(t, b, 3, k) * std::tanh(saved(t, b, 4, k)));
        d[static_cast<std::size_t>(k)] += v * s_.at(s_.operands().w_hr).at({k, j});
      }
    return d;
  }
  void through_reset(std::int64_t t, std::int64_t b, const Row& h, const Row& reset, const Row& dh, Row& next) {
    const std::int64_t H = s_.H;
    Row dreset(h.size());
    for (std::int64_t j = 0; j < H; ++j) {
      const double z = saved(t, b, 1, j), c = saved(t, b, 2, j);
      of_state(reset, 2 * H + j, dh[static_cast<std::size_t>(j)] * (1 - z) * (1 - c * c), dreset);
    }
    for (std::int64_t j = 0; j < H; ++j) {
      const auto u = static_cast<std::size_t>(j);
      const double r = saved(t, b, 0, j);
      of_both(t, b, h, j, dreset[u] * h[u] * r * (1 - r), next);
      next[u] += dreset[u] * r;
    }
  }

  CellType cell_;
  std::span<const Dense> in_;
  std::span<Dense> out_;
  DenseSequence s_;
};

/// One sample: T, B, H and the width of the state.
struct Extents {
  std::int64_t T, B, D, H, P;
};
struct Given {
  bool reverse = false, batch_first = false, bias = false, lengths = false, resets = false;
};

SequenceOrder order_of(const Given& g) { return {g.reverse, g.batch_first}; }

void push_operands(CellType cell, const Extents& e, const Given& g, Sample& s) {
  const std::int64_t columns = gates_of(cell) * e.H;
  s.range = {-1, 1};
  s.inputs.push_back({g.batch_first ? Shape{e.B, e.T, e.D} : Shape{e.T, e.B, e.D}});
  s.inputs.push_back({{e.B, e.P}});
  if (has_memory(cell)) s.inputs.push_back({{e.B, e.H}});
  s.inputs.push_back({{e.D, columns}});
  s.inputs.push_back({{e.P, columns}});
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
void each_sample(CellType cell, F&& f) {
  f(Extents{1, 1, 1, 1, 1}, Given{.batch_first = true, .bias = true});
  f(Extents{3, 2, 3, 2, 2}, Given{.bias = true});
  f(Extents{2, 2, 1, 3, 3}, Given{.reverse = true, .batch_first = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.batch_first = true, .bias = true, .lengths = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.reverse = true, .bias = true, .lengths = true});
  f(Extents{4, 2, 2, 2, 2}, Given{.batch_first = true, .bias = true, .resets = true});
  f(Extents{4, 2, 2, 2, 2}, Given{.reverse = true, .resets = true});
  f(Extents{3, 2, 2, 2, 2}, Given{.reverse = true, .lengths = true, .resets = true});
  if (cell == CellType::lstm) f(Extents{3, 2, 2, 3, 2}, Given{.bias = true});
  if (cell == CellType::lstm) f(Extents{3, 2, 2, 3, 2}, Given{.batch_first = true, .lengths = true});
}

}  // namespace

void sequence_oracle(CellType cell, std::span<const Dense> in, std::span<Dense> out, const SequenceOrder& order) {
  const DenseSequence s(cell, in, order);
  for (std::int64_t b = 0; b < s.B; ++b) {
    Row h = s.row(s.operands().h0, b, s.P), c = s.row(s.operands().c0, b, s.H);
    for (std::int64_t n = 0; n < s.T; ++n) {
      const std::int64_t t = s.time(n);
      if (t >= s.length(b)) continue;  // the outputs are zeros
      if (s.anew(t, b)) std::fill(h.begin(), h.end(), 0), std::fill(c.begin(), c.end(), 0);
      const Row saved = s.step(t, b, h, c);
      for (std::int64_t j = 0; j < s.P; ++j) out[0].at(s.index(t, b, j)) = h[static_cast<std::size_t>(j)];
      for (std::size_t k = 0; !out.back().values.empty() && k < saved.size(); ++k)
        out.back().at({t, b, static_cast<std::int64_t>(k)}) = saved[k];
    }
    for (std::int64_t j = 0; j < s.P; ++j) out[1].at({b, j}) = h[static_cast<std::size_t>(j)];
    for (std::int64_t j = 0; has_memory(cell) && j < s.H; ++j) out[2].at({b, j}) = c[static_cast<std::size_t>(j)];
  }
}

void sequence_grad_oracle(CellType cell, std::span<const Dense> in, std::span<Dense> out, const SequenceOrder& order) {
  const std::int64_t rows = in[has_memory(cell) ? 6 : 5].shape[0];
  for (std::int64_t b = 0; b < rows; ++b) DenseWayBack(cell, in, out, order).run(b);
}

std::vector<Sample> sequence_samples(CellType cell) {
  std::vector<Sample> list;
  each_sample(cell, [&](const Extents& e, const Given& g) {
    Sample s{.attrs = SequenceSaves{order_of(g), false}};
    s.smooth_at_ties = cell != CellType::rnn_relu;
    push_operands(cell, e, g, s);
    list.push_back(s);
  });
  Sample saving = list[1];
  saving.attrs = SequenceSaves{{}, true};
  saving.smooth = false;  // what is saved has no gradient
  list.push_back(saving);
  return list;
}

std::vector<Sample> sequence_grad_samples(CellType cell) {
  std::vector<Sample> list;
  each_sample(cell, [&](const Extents& e, const Given& g) {
    for (const bool all : {true, false}) {
      Sample s;
      const auto state = [&](std::int64_t width) { return Spec{all ? Shape{e.B, width} : Shape{0}}; };
      const Shape y = g.batch_first ? Shape{e.B, e.T, e.P} : Shape{e.T, e.B, e.P};
      s.inputs = {{y}, {{e.T, e.B, saved_of(cell) * e.H}}, {y}, state(e.P)};
      if (saved_of(cell) == 0) s.inputs[1] = {{0}};
      if (has_memory(cell)) s.inputs.push_back(state(e.H));
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

}  // namespace ferrite::nn::detail
