/// The loss of a transducer over all alignments, and its gradient.
#include "ferrite/nn/losses/detail/alignments.h"
#include "ferrite/nn/losses/sequence.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::nn {
namespace detail {
namespace {

struct RnntAttrs {
  std::int64_t blank = 0;
  static constexpr auto fields = attr_list(attr("blank", &RnntAttrs::blank));
};

/// The grid of one sequence: at (t, u) frame t is being read and u labels have been given. A blank goes on to the next
/// frame, a label to the next prefix; the last blank ends it.
template <class T>
class RnntGrid {
 public:
  RnntGrid(const AlignmentRow& row, const T* scores, std::int64_t U1, std::int64_t C, std::int64_t blank)
      : row_(row), scores_(scores), U1_(U1), C_(C), blank_(blank) {}
  std::int64_t width() const { return row_.S + 1; }
  std::int64_t blank_at(std::int64_t t, std::int64_t u) const { return (t * U1_ + u) * C_ + blank_; }
  std::int64_t label_at(std::int64_t t, std::int64_t u) const { return (t * U1_ + u) * C_ + row_.targets[u]; }

  /// ln of the probability of all ways to (t, u).
  std::vector<T> forward() const {
    const std::int64_t n = width();
    std::vector<T> alpha(static_cast<std::size_t>(row_.T * n));
    const auto at = [&](std::int64_t t, std::int64_t u) -> T& { return alpha[static_cast<std::size_t>(t * n + u)]; };
    for (std::int64_t t = 0; t < row_.T; ++t)
      for (std::int64_t u = 0; u < n; ++u) {
        T total = t == 0 && u == 0 ? T(0) : kImpossible<T>;
        if (t > 0) total = at(t - 1, u) + scores_[blank_at(t - 1, u)];
        if (u > 0) total = log_add(total, at(t, u - 1) + scores_[label_at(t, u - 1)]);
        at(t, u) = total;
      }
    return alpha;
  }
  T loss(const std::vector<T>& alpha) const { return -(alpha.back() + scores_[blank_at(row_.T - 1, row_.S)]); }

  /// Subtracts g times the probability of every step from `to`.
  void backward(T g, T* to) const {
    const std::vector<T> alpha = forward();
    const T all = loss(alpha);
    const std::int64_t n = width();
    std::vector<T> after(static_cast<std::size_t>(n), kImpossible<T>);  // ln of all ways from (t + 1, u) on
    for (std::int64_t t = row_.T; t-- > 0;)
      for (std::int64_t u = n; u-- > 0;) {
        const auto place = static_cast<std::size_t>(u);
        const T before = alpha[static_cast<std::size_t>(t * n + u)] + all;
        const T next = t + 1 == row_.T && u + 1 == n ? T(0) : after[place];
        T rest = next + scores_[blank_at(t, u)];
        to[blank_at(t, u)] -= g * std::exp(before + rest);
        if (u + 1 < n) {
          const T other = after[place + 1] + scores_[label_at(t, u)];
          to[label_at(t, u)] -= g * std::exp(before + other);
          rest = log_add(rest, other);
        }
        after[place] = rest;
      }
  }

 private:
  AlignmentRow row_;
  const T* scores_;
  std::int64_t U1_, C_, blank_;
};

/// Scores [B, T, U + 1, C], targets [B, U] and lengths [B] from operand `first` on.
AlignmentShape shape_of(const Tensor& scores) {
  const Shape& s = scores.shape();
  return {s[0], s[1], s[2] - 1, s[3]};
}
AlignmentShape check_rnnt(std::string_view where, Inputs in, std::size_t first, const RnntAttrs& a) {
  const Tensor& scores = in[first];
  if (!is_float(scores.dtype())) throw_dtype(where, "logits must be f32 or f64, got " + scores.spec().str());
  if (scores.rank() != 4 || scores.shape()[2] < 1)
    throw_shape(where, "logits must be [B, T, U + 1, C], got " + scores.shape().str());
  const AlignmentShape shape = shape_of(scores);
  check_alignment(where, in[first + 1], in[first + 2], in[first + 3], shape);
  if (a.blank < 0 || a.blank >= shape.C)
    throw ValueError(std::string(where) + ": the blank " + std::to_string(a.blank) + " lies outside 0.." +
                     std::to_string(shape.C - 1));
  return shape;
}

/// Calls f(b, first element of row b, its grid) for every sequence, after all rows have been checked.
template <class T, class F>
void each_grid(std::string_view where, Inputs in, std::size_t first, const RnntAttrs& a, F&& f) {
  const AlignmentShape shape = shape_of(in[first]);
  const RowMajor scores(in[first]), targets(in[first + 1]), inputs(in[first + 2]), labels(in[first + 3]);
  const auto row = [&](std::int64_t b) {
    return alignment_row(where, *targets, *inputs, *labels, b, shape, a.blank, 1);
  };
  for (std::int64_t b = 0; b < shape.B; ++b) (void)row(b);
  const std::int64_t step = shape.T * (shape.S + 1) * shape.C;
  parallel_for(shape.B, [&](std::int64_t b) {
    f(b, b * step, RnntGrid<T>(row(b), scores->data<T>() + b * step, shape.S + 1, shape.C, a.blank));
  });
}

struct RnntLoss {
  using Attributes = RnntAttrs;
  static constexpr auto name = "rnnt_loss", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "minus ln of the probability of a target over all alignments of a transducer, from log-probabilities";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) { return {{{check_rnnt(name, in, 0, a).B}, in[0].dtype()}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    visit_float(in[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = Writer::data<T>(out[0]);
      each_grid<T>(name, in, 0, a,
                   [&](std::int64_t b, std::int64_t, const RnntGrid<T>& grid) { to[b] = grid.loss(grid.forward()); });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a);
  static Tensor compose(Inputs in, const Attributes& a);
  static Tensors reference(Inputs in, const Attributes& a) { return {compose(in, a)}; }
};

struct RnntLossGrad {
  using Attributes = RnntAttrs;
  static constexpr auto name = "rnnt_loss_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradient of rnnt_loss: minus the probability of every step, times g";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    const AlignmentShape shape = check_rnnt(name, in, 1, a);
    if (in[0].spec() != Spec{{shape.B}, in[1].dtype()})
      throw_shape(name,
                  "the cotangent must be " + Spec{{shape.B}, in[1].dtype()}.str() + ", got " + in[0].spec().str());
    return {in[1].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    visit_float(in[1].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const RowMajor cotangent(in[0]);
      T* const to = Writer::data<T>(out[0]);
      std::fill_n(to, out[0].numel(), T(0));
      each_grid<T>(name, in, 1, a, [&](std::int64_t b, std::int64_t begin, const RnntGrid<T>& grid) {
        grid.backward(cotangent->data<T>()[b], to + begin);
      });
    });
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    const auto loss = [](Inputs x, const Attrs& attrs) { return RnntLoss::compose(x, attrs.as<RnntAttrs>(name)); };
    return {reference_gradient(in[0], in[1], loss, in, a)};
  }
};

Tensors RnntLoss::vjp(const Vjp& v, const Attributes& a) {
  return {call(structured<RnntLossGrad>, {{&v.grad(), &v.in(0), &v.in(1), &v.in(2), &v.in(3)}}, a), Tensor(), Tensor(),
          Tensor()};
}

/// x [B, T, U + 1] along its diagonals t + u = d -> [D, B, U + 1]; impossible outside.
Tensor diagonals(const Tensor& x, std::int64_t D) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1], n = x.shape()[2];
  const Tensor frames = unsqueeze(arange(0, D, 1, Dtype::i64), 1) - arange(0, n, 1, Dtype::i64);  // [D, U + 1]
  const Tensor inside = le(0, frames) && lt(frames, T);
  const Tensor picked = gather(x, 1, expand(where(inside, frames, 0), {B, D, n}));
  return permute(where(inside, picked, kNearlyImpossible), {1, 0, 2});
}

/// The definition: one step for each diagonal, on all prefixes of all sequences [B, U + 1].
Tensor RnntLoss::compose(Inputs in, const Attributes& a) {
  const Tensor &scores = in[0], &inputs = in[2], &labels = in[3];
  const AlignmentShape shape = shape_of(scores);
  const std::int64_t B = shape.B, T = shape.T, U = shape.S, n = U + 1, D = T + U;
  const Tensor prefixes = arange(0, n, 1, Dtype::i64);
  const Tensor targets = where(lt(arange(0, U, 1, Dtype::i64), unsqueeze(labels, 1)), in[1], a.blank);
  const Tensor classes = expand(reshape(targets, {B, 1, U, 1}), {B, T, U, 1});
  const Tensor blanks = diagonals(select(scores, 3, a.blank), D);
  // What a label brings to the next prefix: nothing comes to the first one.
  const Tensor gained = squeeze(gather(slice(scores, 2, 0, U), 3, classes), 3);
  const Tensor given = diagonals(pad(gained, {0, 0, 0}, {0, 0, 1}, kNearlyImpossible), D);
  Tensor alpha =
      expand(cast(where(eq(prefixes, 0), 0.0, full({n}, kNearlyImpossible, Dtype::f64)), scores.dtype()), {B, n});
  const Tensor last = eq(prefixes, unsqueeze(labels, 1));  // [B, U + 1]
  Tensor losses = zeros({B}, scores.dtype());
  for (std::int64_t d = 0; d < D; ++d) {
    const Tensor on = alpha + select(blanks, 0, d);
    const Tensor ended = where(last, on, 0.0);
    losses = losses - where(eq(inputs + labels - 1, d), sum(ended, {1}), 0.0);
    const Tensor label = alpha + select(given, 0, d);
    const Tensor moved = U == 0 ? full({B, 1}, kNearlyImpossible, scores.dtype())
                                : pad(slice(label, 1, 0, -1), {0, 1}, {0, 0}, kNearlyImpossible);
    // What is impossible stays at one number: sums of it would lose the rest.
    alpha = maximum(logsumexp(stack({on, moved}, 0), {0}), kNearlyImpossible);
  }
  return losses;
}

}  // namespace

Records rnnt_records() {
  static constexpr const Primitive* list[] = {&structured<RnntLoss>, &structured<RnntLossGrad>};
  return list;
}

}  // namespace detail

Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                 const RnntOptions& options) {
  constexpr std::string_view where = detail::RnntLoss::name;
  if (logits.rank() != 4) detail::throw_shape(where, "logits must be [B, T, U + 1, C], got " + logits.shape().str());
  detail::check_float(where, "logits", logits);
  const Tensor y = detail::as_targets(where, targets);
  const std::int64_t B = logits.shape()[0], C = logits.shape()[3];
  const LossOptions reduction{options.reduction, options.element_weight, options.mask};
  const detail::Counted rows = detail::counted(where, {{B}, logits.dtype()}, reduction);
  const Tensor inputs =
      detail::of_rows(rows, detail::lengths_or(where, "input_lengths", input_lengths, B, logits.shape()[1]), 1);
  const Tensor labels =
      detail::of_rows(rows, detail::lengths_or(where, "target_lengths", target_lengths, B, y.shape()[1]), 0);
  const Tensor x = detail::without(rows.with_rank(4), logits), scores = options.log_probs ? x : log_softmax(x, 3);
  const std::int64_t blank = options.blank < 0 ? options.blank + C : options.blank;
  return detail::reduced(
      detail::call(detail::structured<detail::RnntLoss>, {{&scores, &y, &inputs, &labels}}, detail::RnntAttrs{blank}),
      rows, reduction);
}

}  // namespace ferrite::nn
