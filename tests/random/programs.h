#pragma once
/// Random programs of everything that a program may hold: in addition to what compile/programs.h draws, gradients up to
/// second order, scans, recurrent sequences, lengths, indices that may be out of range, empty and special inputs.
#include <limits>

#include "compile/programs.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/derivative.h"

namespace programs {

/// A random program that depends on the seed alone.
class WideProgram final : public Program {
 public:
  explicit WideProgram(std::uint64_t seed) : Program(seed, {.most_steps = 14}) {
    Random r(seed ^ 0x9E3779B97F4A7C15U);
    order_ = pick(r, 0, 5) < 3 ? 0 : pick(r, 1, 4) / 2;  // 0, 1 or 2
    special_ = pick(r, 0, 3) == 0;
    if (pick(r, 0, 5) == 0) empty_axis_ = pick(r, 0, 2);
  }

  Specs inputs_specs() const {
    Specs s = specs();
    for (Spec& one : s)
      if (empty_axis_ >= 0 && empty_axis_ < one.shape.rank()) one.shape[empty_axis_] = 0;
    return s;
  }

  Tensors values() const {
    Tensors in;
    std::uint64_t stream = 0;
    for (const Spec& s : inputs_specs()) {
      const Tensor x = uniform(s.shape, {seed(), ++stream, 0}, -2, 2);
      in.push_back(special_ ? with_special_values(x, stream) : x);
    }
    return in;
  }

  /// Returns values or, for order 1 and 2, gradients with respect to all inputs.
  Tensors run(const Tensors& in) const { return support::derivative(*this, in, {}, order_); }

 private:
  static Tensor with_special_values(const Tensor& x, std::uint64_t stream) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kValues[] = {0.F, -0.F, 1.F, -1.F, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 1e-40F};
    std::vector<float> v = x.to_vector<float>();
    Random r(stream);
    for (float& e : v)
      if (pick(r, 0, 5) == 0) e = kValues[pick(r, 0, 7)];
    return Tensor::from(std::span<const float>(v), x.shape());
  }

  Tensor next(Random& r, const std::vector<Tensor>& live) const override {
    switch (pick(r, 0, 7)) {
      case 0: return scanned(r, real(any(r, live)), live);
      case 1: return sequence(r, real(any(r, live)));
      case 2: return picked(r, any(r, live));
      default: return Program::next(r, live);
    }
  }

  /// Returns integers from low to high, rarely with one beyond.
  Tensor integers(Random& r, const Shape& shape, std::int64_t low, std::int64_t high) const {
    const int beyond = pick(r, 0, 19) == 0 ? 1 : 0;
    const auto n = static_cast<double>(high - low + 1 + beyond);
    const Tensor share = uniform(shape, {seed(), r(), 0}, 0, 1, Dtype::f64);
    return cast(share * n, Dtype::i64) + low;
  }

  Tensor scanned(Random& r, const Tensor& x, const std::vector<Tensor>& live) const {
    if (x.rank() == 0 || x.rank() > 4) return x;
    Shape step = x.shape();
    step.erase(0);
    const Tensor& other = any(r, live);
    const bool captures = is_float(other.dtype()) && (other.shape() == step || other.rank() == 0);
    const int kind = pick(r, 0, 3), reads = pick(r, 0, 2);
    const bool product = step.rank() == 2 && step[1] > 0 && step[1] < 8 && pick(r, 0, 1) != 0;
    const Tensor w = product ? uniform({step[1], step[1]}, {seed(), r(), 0}, -1, 1) : Tensor();
    const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
      Tensor h = c[0] * 0.5 + (kind == 0 ? sigmoid(s[0]) : kind == 1 ? s[0] * c[0] : tanh(s[0] - c[0]));
      if (product) h = tanh(matmul(h, w));
      if (captures) h = h + other;
      return {{h, c[1] + 1}, {reads == 0 ? h * c[0] : h}};
    };
    ScanOptions o{.reverse = pick(r, 0, 1) != 0, .checkpoint_every = std::max(0, pick(r, -2, 3))};
    Tensor count = zeros({});
    if (step.rank() > 0 && pick(r, 0, 2) == 0) {
      o.lengths = integers(r, {step[0]}, 0, x.shape()[0]);
      count = zeros({step[0]});
    }
    const ScanResult result = scan(body, {full(step, 0.25), count}, {x}, o);
    return reads == 1 ? result.carry[0] : reads == 2 ? result.carry[1] : result.y[0];
  }

  Tensor sequence(Random& r, const Tensor& any_rank) const {
    Tensor x = any_rank;
    while (x.rank() < 3) x = unsqueeze(x, 0);
    if (x.rank() > 3 || x.shape()[1] == 0 || x.shape()[2] == 0 || x.shape()[0] == 0) return any_rank;
    const SequenceOptions base{.reverse = pick(r, 0, 1) != 0,
                               .batch_first = pick(r, 0, 1) != 0,
                               .lengths = {},
                               .resets = {},
                               .recompute = pick(r, 0, 2) == 0};
    SequenceOptions o = base;
    const std::int64_t B = x.shape()[base.batch_first ? 0 : 1], T = x.shape()[base.batch_first ? 1 : 0];
    const std::int64_t D = x.shape()[2], H = pick(r, 1, 6);
    if (pick(r, 0, 1)) o.lengths = integers(r, {B}, 0, T);
    if (pick(r, 0, 2) == 0) o.resets = lt(uniform({B, T}, {seed(), r(), 0}, 0, 1), 0.3);
    const int cell = pick(r, 0, 4);
    const std::int64_t columns = (cell <= 1 ? 3 : cell == 2 ? 4 : 1) * H;
    const auto weights = [&](const Shape& s) { return uniform(s, {seed(), r(), 0}, -1, 1) + mean(x) * 0.125; };
    RecurrentWeights<Tensor> w{weights({D, columns}), weights({H, columns})};
    if (pick(r, 0, 1)) w.bias_ih = weights({columns}), w.bias_hh = weights({columns});
    const Tensor h = full({B, H}, 0.5);
    const Tensors out = cell <= 1   ? gru_sequence(x, w, h, o, cell == 0)
                        : cell == 2 ? lstm_sequence(x, w, {h, h}, o)
                                    : rnn_sequence(x, w, h, cell == 3, o);
    return out[static_cast<std::size_t>(pick(r, 0, static_cast<int>(out.size()) - 1))];
  }

  Tensor picked(Random& r, const Tensor& x) const {
    if (x.rank() == 0 || x.numel() == 0 || x.dtype() == Dtype::boolean) return x;
    const int axis = pick(r, 0, x.rank() - 1);
    const std::int64_t n = x.shape()[axis];
    switch (pick(r, 0, 3)) {
      case 0: return index_select(x, axis, integers(r, {pick(r, 0, 5)}, -n, n - 1));
      case 1: {
        Shape s = x.shape();
        s[axis] = pick(r, 1, 3);
        return gather(x, axis, integers(r, s, 0, n - 1), {"program: index"});
      }
      case 2: return scatter_add(x, axis, integers(r, x.shape(), 0, n - 1), x);
      default: return x.rank() < 4 ? checked(real(x), -1e30, 1e30, "program: value") : x;
    }
  }

  int order_ = 0;
  bool special_ = false;
  int empty_axis_ = -1;
};

}  // namespace programs
