/// Losses over all alignments of a sequence, with their gradients: connectionist temporal classification and the
/// transducer.
#include "ferrite/nn/losses/sequence.h"

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/losses/detail/alignments.h"
#include "ferrite/nn/losses/detail/ctc_kernel.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

// ---- checks and compositions ---------------------------------------------------------------------------

namespace ferrite::nn {
namespace detail {
namespace {

void check_lengths(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B) {
  if (lengths.dtype() != Dtype::i64)
    throw_dtype(where, std::string(what) + " must be i64, got " + lengths.spec().str());
  if (lengths.shape() != Shape{B})
    throw_shape(where, std::string(what) + " must be " + Shape{B}.str() + ", got " + lengths.shape().str());
}

[[noreturn]] void throw_length(std::string_view where, std::string_view what, std::int64_t value, std::int64_t low,
                               std::int64_t high) {
  throw_shape(where, std::string(what) + " " + std::to_string(value) + " lies outside " + std::to_string(low) + ".." +
                         std::to_string(high));
}

}  // namespace

void check_alignment(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                     const Tensor& target_lengths, const AlignmentShape& shape) {
  if (targets.dtype() != Dtype::i64) throw_dtype(where, "targets must be i64, got " + targets.spec().str());
  if (targets.rank() != 2 || targets.shape()[0] != shape.B || targets.shape()[1] != shape.S)
    throw_shape(where, "targets must be " + Shape{shape.B, shape.S}.str() + ", got " + targets.shape().str());
  check_lengths(where, "input_lengths", input_lengths, shape.B);
  check_lengths(where, "target_lengths", target_lengths, shape.B);
}

AlignmentRow alignment_row(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, std::int64_t b, const AlignmentShape& shape,
                           std::int64_t blank, std::int64_t least) {
  const AlignmentRow row{targets.data<std::int64_t>() + b * shape.S, input_lengths.data<std::int64_t>()[b],
                         target_lengths.data<std::int64_t>()[b]};
  if (row.T < least || row.T > shape.T) throw_length(where, "input length", row.T, least, shape.T);
  if (row.S < 0 || row.S > shape.S) throw_length(where, "target length", row.S, 0, shape.S);
  for (std::int64_t s = 0; s < row.S; ++s) {
    const std::int64_t y = row.targets[s];
    if (y < 0 || y >= shape.C || y == blank)
      throw ValueError(std::string(where) + ": target " + std::to_string(y) +
                       (y == blank ? " is the blank" : " lies outside 0.." + std::to_string(shape.C - 1)));
  }
  return row;
}

Tensor lengths_or(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B,
                  std::int64_t all) {
  if (!lengths.defined()) return full({B}, all, Dtype::i64);
  const Tensor all_of = lengths.dtype() == Dtype::i32 ? cast(lengths, Dtype::i64) : lengths;
  check_lengths(where, what, all_of, B);
  return all_of;
}

Tensor as_targets(std::string_view where, const Tensor& targets) {
  if (!is_integer(targets.dtype())) throw_dtype(where, "targets must be i64 or i32, got " + targets.spec().str());
  if (targets.rank() != 2)
    throw_shape(where, "targets must be [B, S], got " + targets.shape().str() + "; pad sequences to one length");
  return cast(targets, Dtype::i64);
}

Tensor of_rows(const Counted& rows, const Tensor& lengths, std::int64_t instead) {
  return rows.valid.defined() ? where(rows.valid, lengths, instead) : lengths;
}

Tensor reference_gradient(const Tensor& cotangent, const Tensor& scores, Tensor (*loss)(Inputs, const Attrs&),
                          Inputs in, const Attrs& attrs) {
  Tape tape;
  const Tensor x = tape.watch(scores);
  const Tensor all[] = {x, in[2], in[3], in[4]};
  const Tensor losses = loss(OperandList(all), attrs);
  const GradOf of{losses, cotangent};
  return lenient_grad(tape, of, {&x, 1})[0];
}

Tensor with_impossible(const Tensor& losses, bool zero_infinity) {
  const double instead = zero_infinity ? 0.0 : std::numeric_limits<double>::infinity();
  return where(gt(losses, -0.5 * kNearlyImpossible), instead, losses);
}

// ---- connectionist temporal classification -------------------------------------------------------------

using namespace ferrite::detail;

FERRITE_FLOAT_TABLES(CtcKernels, ctc_kernels, ctc_in_use)

namespace {

struct CtcAttrs {
  std::int64_t blank = 0;
  bool zero_infinity = false;
  static constexpr auto fields =
      attr_list(attr("blank", &CtcAttrs::blank), attr("zero_infinity", &CtcAttrs::zero_infinity));
};

AlignmentShape shape_of(const Tensor& scores, const Tensor& targets) {
  return {scores.shape()[1], scores.shape()[0], targets.rank() == 2 ? targets.shape()[1] : 0, scores.shape()[2]};
}

/// Checks scores [T, B, C], targets [B, S] and lengths [B], from operand `first` on.
AlignmentShape check_ctc(std::string_view where, Inputs in, std::size_t first, const CtcAttrs& a) {
  const Tensor& scores = in[first];
  if (!is_float(scores.dtype())) throw_dtype(where, "log_probs must be f32 or f64, got " + scores.spec().str());
  if (scores.rank() != 3) throw_shape(where, "log_probs must be [T, B, C], got " + scores.shape().str());
  const AlignmentShape shape = shape_of(scores, in[first + 1]);
  check_alignment(where, in[first + 1], in[first + 2], in[first + 3], shape);
  if (a.blank < 0 || a.blank >= shape.C)
    throw ValueError(std::string(where) + ": the blank " + std::to_string(a.blank) + " lies outside 0.." +
                     std::to_string(shape.C - 1));
  return shape;
}

/// Calls f(b, sequence) for every sequence, after all have been checked.
template <class T, class F>
void each_sequence(std::string_view where, Inputs in, std::size_t first, const CtcAttrs& a, F&& f) {
  const AlignmentShape shape = shape_of(in[first], in[first + 1]);
  const RowMajor scores(in[first]), targets(in[first + 1]), inputs(in[first + 2]), labels(in[first + 3]);
  const auto row = [&](std::int64_t b) {
    return alignment_row(where, *targets, *inputs, *labels, b, shape, a.blank, 0);
  };
  for (std::int64_t b = 0; b < shape.B; ++b) (void)row(b);
  parallel_for(shape.B, [&](std::int64_t b) {
    const AlignmentRow r = row(b);
    f(b, CtcSequence<T>{scores->data<T>() + b * shape.C, shape.B * shape.C, r.T, r.S, a.blank, r.targets});
  });
}

struct CtcLoss {
  using Attributes = CtcAttrs;
  static constexpr auto name = "ctc_loss", onnx = "", stablehlo = "";
  static constexpr auto summary = "minus ln of the probability of a target over all alignments, blanks between labels";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) { return {{{check_ctc(name, in, 0, a).B}, in[0].dtype()}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    visit_float(in[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = Writer::data<T>(out[0]);
      each_sequence<T>(name, in, 0, a, [&](std::int64_t b, const CtcSequence<T>& sequence) {
        PooledVector<T> room(static_cast<std::size_t>(sequence.loss_room()));
        const T loss = ctc_in_use.of<T>().loss(sequence, room.data());
        to[b] = a.zero_infinity && std::isinf(loss) ? T(0) : loss;
      });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a);
  static Tensor compose(Inputs in, const Attributes& a);
  static Tensors reference(Inputs in, const Attributes& a) { return {compose(in, a)}; }
};

/// The gradient of ctc_loss with respect to its scores, as an operation.
struct CtcLossGrad {
  using Attributes = CtcAttrs;
  static constexpr auto name = "ctc_loss_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradient of ctc_loss: minus the probability of a class in a frame, times g";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr Effects effects{.throws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    const AlignmentShape shape = check_ctc(name, in, 1, a);
    if (in[0].spec() != Spec{{shape.B}, in[1].dtype()})
      throw_shape(name,
                  "the cotangent must be " + Spec{{shape.B}, in[1].dtype()}.str() + ", got " + in[0].spec().str());
    return {in[1].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    visit_float(in[1].dtype(), [&](auto zero) { run<decltype(zero)>(in, out[0], a); });
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    const auto loss = [](Inputs x, const Attrs& attrs) { return CtcLoss::compose(x, attrs.as<CtcAttrs>(name)); };
    return {reference_gradient(in[0], in[1], loss, in, a)};
  }

 private:
  template <class T>
  static void run(Inputs in, Tensor& out, const Attributes& a) {
    const RowMajor cotangent(in[0]);
    T* const to = Writer::data<T>(out);
    std::fill_n(to, out.numel(), T(0));
    each_sequence<T>(name, in, 1, a, [&](std::int64_t b, const CtcSequence<T>& sequence) {
      const auto room = std::unique_ptr<T, void (*)(void*)>(
          static_cast<T*>(take_pooled(static_cast<std::size_t>(sequence.gradient_room()) * sizeof(T))), give_pooled);
      ctc_in_use.of<T>().gradient(sequence, cotangent->data<T>()[b], a.zero_infinity, to + b * in[1].shape()[2],
                                  room.get());
    });
  }
};

Tensors CtcLoss::vjp(const Vjp& v, const Attributes& a) {
  return {call(structured<CtcLossGrad>, {{&v.grad(), &v.in(0), &v.in(1), &v.in(2), &v.in(3)}}, a), Tensor(), Tensor(),
          Tensor()};
}

/// Returns x shifted by n states; the states that enter are impossible.
Tensor shifted(const Tensor& x, std::int64_t n) { return pad(slice(x, 1, 0, -n), {0, n}, {0, 0}, kNearlyImpossible); }

/// Defines the loss in operations: one step for each frame, on all states of all sequences [B, 2 S + 1].
Tensor CtcLoss::compose(Inputs in, const Attributes& a) {
  const Tensor &scores = in[0], &inputs = in[2], &labels = in[3];
  const std::int64_t T = scores.shape()[0], B = scores.shape()[1], S = in[1].shape()[1], n = 2 * S + 1;
  const Dtype dtype = scores.dtype();
  const Tensor targets = where(lt(arange(0, S, 1, Dtype::i64), unsqueeze(labels, 1)), in[1], a.blank);
  const Tensor blanks = full({B, S}, a.blank, Dtype::i64);
  const Tensor states =
      concat({reshape(stack({blanks, targets}, 2), {B, 2 * S}), full({B, 1}, a.blank, Dtype::i64)}, 1);
  const Tensor places = arange(0, n, 1, Dtype::i64);
  const Tensor skips = n < 3 ? Tensor() : ne(states, pad(slice(states, 1, 0, -2), {0, 2}, {0, 0}, a.blank));
  // Before the first frame only the first state is possible.
  Tensor alpha = expand(cast(where(eq(places, 0), 0.0, full({n}, kNearlyImpossible, Dtype::f64)), dtype), {B, n});
  for (std::int64_t t = 0; t < T; ++t) {
    Tensor total = alpha;
    if (n > 1) {
      const Tensor ways[] = {alpha, shifted(alpha, 1), where(skips, shifted(alpha, 2), kNearlyImpossible)};
      total = logsumexp(stack(std::span<const Tensor>(ways), 0), {0});
    }
    total = total + gather(select(scores, 0, t), 1, states);
    alpha = where(lt(t, unsqueeze(inputs, 1)), total, alpha);
  }
  // Paths end in the last label or the blank after it; without labels, in the blank alone.
  const Tensor last = unsqueeze(2 * labels, 1);
  const Tensor ends = eq(places, last) || eq(places, last - 1);
  return with_impossible(-logsumexp(where(ends, alpha, kNearlyImpossible), {1}), a.zero_infinity);
}

}  // namespace

}  // namespace detail

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& options) {
  constexpr std::string_view where = detail::CtcLoss::name;
  if (log_probs.rank() != 3)
    detail::throw_shape(where, std::string("log_probs must be ") + (options.batch_first ? "[B, T, C]" : "[T, B, C]") +
                                   ", got " + log_probs.shape().str());
  detail::check_float(where, "log_probs", log_probs);
  const Tensor by_frame = options.batch_first ? transpose(log_probs, 0, 1) : log_probs;
  const Tensor y = detail::as_targets(where, targets);
  const std::int64_t B = by_frame.shape()[1];
  const LossOptions reduction{options.reduction, options.element_weight, options.mask};
  const detail::Counted rows = detail::counted(where, {{B}, by_frame.dtype()}, reduction);
  const Tensor inputs =
      detail::of_rows(rows, detail::lengths_or(where, "input_lengths", input_lengths, B, by_frame.shape()[0]), 0);
  const Tensor labels =
      detail::of_rows(rows, detail::lengths_or(where, "target_lengths", target_lengths, B, y.shape()[1]), 0);
  const Tensor scores = detail::without(rows.with_axis(1).with_axis(0), by_frame);
  Tensor losses = detail::call(detail::structured<detail::CtcLoss>, {{&scores, &y, &inputs, &labels}},
                               detail::CtcAttrs{options.blank, options.zero_infinity});
  if (options.reduction == Reduction::mean) losses = losses / cast(maximum(labels, 1), losses.dtype());
  return detail::reduced(losses, rows, reduction);
}

// ---- the transducer ------------------------------------------------------------------------------------

namespace detail {
namespace {

struct RnntAttrs {
  std::int64_t blank = 0;
  static constexpr auto fields = attr_list(attr("blank", &RnntAttrs::blank));
};

/// The grid of one sequence: at (t, u) frame t is being read and u labels have been emitted. A blank moves to the next
/// frame, a label to the next prefix; the last blank ends the grid.
template <class T>
class RnntGrid {
 public:
  RnntGrid(const AlignmentRow& row, const T* scores, std::int64_t U1, std::int64_t C, std::int64_t blank)
      : row_(row), scores_(scores), U1_(U1), C_(C), blank_(blank) {}
  std::int64_t width() const { return row_.S + 1; }
  std::int64_t blank_at(std::int64_t t, std::int64_t u) const { return (t * U1_ + u) * C_ + blank_; }
  std::int64_t label_at(std::int64_t t, std::int64_t u) const { return (t * U1_ + u) * C_ + row_.targets[u]; }

  /// Returns ln of the probability of all paths to each (t, u).
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
    std::vector<T> after(static_cast<std::size_t>(n), kImpossible<T>);  // ln of all paths onwards from (t + 1, u)
    for (std::int64_t t = row_.T; t-- > 0;)
      for (std::int64_t u = n; u-- > 0;) {
        const auto place = static_cast<std::size_t>(u);
        const T before = alpha[static_cast<std::size_t>(t * n + u)] + all;
        const T next = t + 1 == row_.T && u + 1 == n ? T(0) : after[place];
        T rest = next + scores_[blank_at(t, u)];
        to[blank_at(t, u)] -= g * exp_rounded(before + rest);
        if (u + 1 < n) {
          const T other = after[place + 1] + scores_[label_at(t, u)];
          to[label_at(t, u)] -= g * exp_rounded(before + other);
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

/// Returns the sizes of scores [B, T, U + 1, C]; check_rnnt also checks the operands from `first` on.
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

/// Returns x [B, T, U + 1] along its diagonals t + u = d, as [D, B, U + 1]; impossible outside.
Tensor diagonals(const Tensor& x, std::int64_t D) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1], n = x.shape()[2];
  const Tensor frames = unsqueeze(arange(0, D, 1, Dtype::i64), 1) - arange(0, n, 1, Dtype::i64);  // [D, U + 1]
  const Tensor inside = le(0, frames) && lt(frames, T);
  const Tensor picked = gather(x, 1, expand(where(inside, frames, 0), {B, D, n}));
  return permute(where(inside, picked, kNearlyImpossible), {1, 0, 2});
}

/// Defines the loss in operations: one step for each diagonal, on all prefixes of all sequences [B, U + 1].
Tensor RnntLoss::compose(Inputs in, const Attributes& a) {
  const Tensor &scores = in[0], &inputs = in[2], &labels = in[3];
  const AlignmentShape shape = shape_of(scores);
  const std::int64_t B = shape.B, T = shape.T, U = shape.S, n = U + 1, D = T + U;
  const Tensor prefixes = arange(0, n, 1, Dtype::i64);
  const Tensor targets = where(lt(arange(0, U, 1, Dtype::i64), unsqueeze(labels, 1)), in[1], a.blank);
  const Tensor classes = expand(reshape(targets, {B, 1, U, 1}), {B, T, U, 1});
  const Tensor blanks = diagonals(select(scores, 3, a.blank), D);
  // A label leads to the next prefix; nothing leads to the first one.
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
    // Impossible values stay at one number: sums of them would drown the others.
    alpha = maximum(logsumexp(stack({on, moved}, 0), {0}), kNearlyImpossible);
  }
  return losses;
}

}  // namespace

Records sequence_records() {
  static constexpr const Primitive* list[] = {&structured<CtcLoss>, &structured<CtcLossGrad>, &structured<RnntLoss>,
                                              &structured<RnntLossGrad>};
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
