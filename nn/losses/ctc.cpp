/// Connectionist temporal classification: the loss over all alignments, and its gradient.
#include "ferrite/nn/losses/detail/alignments.h"
#include "ferrite/nn/losses/detail/ctc_kernel.h"
#include "ferrite/nn/losses/sequence.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::nn {
namespace detail {
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

/// Scores [T, B, C], targets [B, S] and lengths [B] from operand `first` on.
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

/// What adds to the loss of a sequence through each class of each frame.
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

/// x shifted by n states, what comes in impossible.
Tensor shifted(const Tensor& x, std::int64_t n) { return pad(slice(x, 1, 0, -n), {0, n}, {0, 0}, kNearlyImpossible); }

/// The definition: one step for each frame, on all states of all sequences [B, 2 S + 1].
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
  // Before the first frame stands the first state alone.
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
  // The last label and the blank behind it; no label, and only the blank counts.
  const Tensor last = unsqueeze(2 * labels, 1);
  const Tensor ends = eq(places, last) || eq(places, last - 1);
  return with_impossible(-logsumexp(where(ends, alpha, kNearlyImpossible), {1}), a.zero_infinity);
}

}  // namespace

Records ctc_records() {
  static constexpr const Primitive* list[] = {&structured<CtcLoss>, &structured<CtcLossGrad>};
  return list;
}

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

}  // namespace ferrite::nn
