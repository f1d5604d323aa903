/// The gradient of a sequence as an operation, visible to tracers; its own gradient is that of the reference.
#include <algorithm>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/recurrent/detail/sequence_call.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

namespace {

/// Positions of the operands before those of the sequence.
struct GradOperands {
  explicit GradOperands(const GatedCell& cell) : dc(cell.has_memory ? 4 : -1), begin(cell.has_memory ? 5 : 4) {}
  static constexpr std::size_t y = 0, saved = 1, dy = 2, dh = 3;
  int dc;
  std::size_t begin;  ///< of the sequence's own
};

/// A transposed copy of some columns of w, made for one call.
template <class T>
class Transposed {
 public:
  Transposed(const Tensor& w, std::int64_t K)
      : room_(gate_pack_size<T>(K, 1, w.shape()[0])), K_(K), units_(w.shape()[0]) {}
  void columns(const Tensor& w, std::int64_t begin, std::int64_t n, std::int64_t at) {
    const std::int64_t lanes = products_in_use.of<T>().lanes;
    pack_transposed(w.data<T>() + begin, w.strides()[0], n, units_, room_.get() + at * lanes, K_);
  }
  GateMatrix<T> matrix() { return packed_gates<T>(room_.get(), K_, 1, units_); }

 private:
  Room<T> room_;
  std::int64_t K_, units_;
};

/// The weights as the backward pass reads them.
template <class T>
class BackwardWeights {
 public:
  /// `goes_back`: whether anything passes from a step to the one before.
  BackwardWeights(const SequenceCall<T>& call, bool goes_back) : given_(call.weights()), H_(call->H) {
    const Tensor &w_hh = *given_.weight_hh, &w_hr = *given_.weight_hr;
    const GatedCell& cell = *call->cell;
    if (goes_back) hh_.emplace(w_hh, cell.early_gates() * H_);
    if (cell.late_gates) late_.emplace(w_hh, cell.late_gates * H_);
    GateBlock blocks[4];
    for (const GateBlock& b : std::span(blocks, static_cast<std::size_t>(blocks_of(cell, blocks)))) {
      if (!b.late && !goes_back) continue;
      const int first = b.late ? cell.early_gates() : 0;
      (b.late ? late_ : hh_)->columns(w_hh, b.gate * H_, b.count * H_, (b.place - first) * H_);
    }
    if (w_hr.defined()) hr_.emplace(w_hr, call->P).columns(w_hr, 0, call->P, 0);
  }
  KernelWeights<T> weights() {
    const auto matrix = [](std::optional<Transposed<T>>& t) { return t ? t->matrix() : GateMatrix<T>{}; };
    const Tensor &w_ih = *given_.weight_ih, &w_ch = *given_.weight_ch;
    return {.weight_ih = plain_gates(w_ih.data<T>(), w_ih.strides()[0], w_ih.shape()[0], H_, H_),
            .weight_hh = {.early = matrix(hh_), .late = matrix(late_)},
            .weight_hr = matrix(hr_),
            .weight_ch = w_ch.defined() ? w_ch.data<T>() : nullptr};
  }

 private:
  const RecurrentWeights<RowMajor>& given_;
  std::int64_t H_;
  std::optional<Transposed<T>> hh_, late_, hr_;
};

/// Fills a state's gradient with what arrived, for the kernel to go on with.
template <class T>
T* begun(const Tensor& grad, T* to, std::int64_t n) {
  if (grad.numel() == 0) {
    std::fill_n(to, n, T(0));
  } else {
    const Tensor d = dense(grad);
    std::copy_n(d.data<T>(), n, to);
  }
  return to;
}

template <class T>
void backward(const GatedCell& cell, Inputs in, std::span<Tensor> out, const SequenceOrder& order) {
  const GradOperands at(cell);
  const SequenceParts o = parts_of(cell, in, at.begin);
  SequenceCall<T> r(cell, in, o, order);
  const SequenceAxes axes(order);
  const auto wanted = [&](int k) -> T* {
    const auto i = static_cast<std::size_t>(k - o.first);
    return k < 0 || out[i].numel() == 0 ? nullptr : Writer::data<T>(out[i]);
  };
  const Tensor y = dense(in[GradOperands::y]);
  Tensor saved = dense(in[GradOperands::saved]);
  if (cell.saved > 0 && saved.numel() == 0) {  // not saved: computed again
    saved = Tensor::empty(saved_spec(cell, in, o, order));
    Tensor again = Tensor::empty(y.spec()), h = Tensor::empty(in[static_cast<std::size_t>(o.h0)].spec());
    Tensor c = o.c0 >= 0 ? Tensor::empty(in[static_cast<std::size_t>(o.c0)].spec()) : Tensor();
    run_forward<T>(r, order, again, h, c.defined() ? &c : nullptr, &saved);
  }
  const Tensor& given = in[GradOperands::dy];
  const Tensor dy = given.numel() ? dense(given) : Tensor();
  Room<T> dh_room(r->B * r->P), dc_room(r->B * r->H);
  T* const dh = wanted(o.h0) ? wanted(o.h0) : dh_room.get();
  T* const dc = wanted(o.c0) ? wanted(o.c0) : dc_room.get();
  const bool wants_state = wanted(o.h0) || (o.c0 >= 0 && wanted(o.c0));
  BackwardWeights<T> weights(r, r->T_ > 1 || wants_state);
  Tensor* const dx = wanted(o.x) ? &out[0] : nullptr;
  run_recurrence_back<T>(r.with(weights.weights()),
                         {.y = rows_of<T>(y, axes),
                          .saved = cell.saved > 0 ? saved.data<T>() : nullptr,
                          .dy = dy.defined() ? rows_of<T>(dy, axes) : Rows<const T*>{},
                          .wants_state = wants_state,
                          .dh = begun(in[GradOperands::dh], dh, r->B * r->P),
                          .dc = at.dc < 0 ? nullptr : begun(in[static_cast<std::size_t>(at.dc)], dc, r->B * r->H),
                          .dx = dx ? writable_rows<T>(*dx, axes) : Rows<T*>{},
                          .dw = o.w.map(wanted)});
}

/// No rows: nothing arrives anywhere.
void fill_zero(std::span<Tensor> out) {
  for (Tensor& t : out) std::fill_n(Writer::raw(t), t.numel() * size_of(t.dtype()), std::byte{0});
}

}  // namespace

Specs infer_sequence_grad(std::string_view name, const GatedCell& cell, Inputs in, const SequenceWants& attrs) {
  const GradOperands at(cell);
  const SequenceParts o = parts_of(cell, in, at.begin);
  check_sequence(name, cell, in, o, attrs);
  const int gradients = o.floats - o.first;
  for (int k = 0; k < attrs.wants.rank(); ++k)
    if (attrs.wants[k] < (k ? attrs.wants[k - 1] + 1 : 0) || attrs.wants[k] >= gradients)
      throw_shape(name, "`wants` must be ascending positions below " + std::to_string(gradients) + ", got " +
                            attrs.wants.str());
  Specs out;
  for (int k = 0; k < gradients; ++k) {
    const Spec& spec = in[at.begin + static_cast<std::size_t>(k)].spec();
    out.push_back(attrs.has(k) ? spec : Spec{{0}, spec.dtype});
  }
  return out;
}

void run_sequence_grad(const GatedCell& cell, Inputs in, std::span<Tensor> out, const SequenceOrder& order) {
  if (in[0].numel() == 0) return fill_zero(out);
  if (in[0].dtype() == Dtype::f32) {
    backward<float>(cell, in, out, order);
  } else {
    backward<double>(cell, in, out, order);
  }
}

Tensors reference_sequence_grad(const GatedCell& cell, Inputs in, const SequenceWants& attrs, const Specs& specs) {
  const GradOperands at(cell);
  const auto wanted = [&](std::size_t k) { return attrs.has(static_cast<std::int64_t>(k)); };
  Tape tape;
  Tensors operands, variables;
  for (std::size_t k = 0; at.begin + k < in.size(); ++k) {
    operands.push_back(in[at.begin + k]);
    if (k >= specs.size() || !wanted(k)) continue;
    operands.back() = tape.watch(operands.back());
    variables.push_back(operands.back());
  }
  const Tensors results = compose_sequence(cell, OperandList(operands), attrs);
  InlineVector<GradOf, 4> arrived;  // cotangents that nothing reached are empty
  for (std::size_t k = 0; GradOperands::dy + k < at.begin; ++k)
    if (const Tensor& g = in[GradOperands::dy + k]; g.numel() > 0) arrived.push_back({results[k], g});
  const Tensors found = lenient_grad(tape, {arrived.data(), arrived.size()}, {variables.data(), variables.size()});
  Tensors out;
  std::size_t next = 0;
  for (std::size_t k = 0; k < specs.size(); ++k)
    out.push_back(wanted(k) ? found[next++] : zeros(specs[k].shape, specs[k].dtype));
  return out;
}

std::int64_t sequence_grad_multiply_adds(const GatedCell& cell, std::span<const Spec> in, const SequenceWants& attrs) {
  const GradOperands grad(cell);
  const SequenceCost c(cell, in, grad.begin);
  const auto wanted = [&](int k) { return k >= 0 && attrs.has(k - c.at.first) ? 1 : 0; };
  return c.rows * (c.elements.weight_ih * (wanted(c.at.x) + wanted(c.at.w.weight_ih)) +
                   c.elements.weight_hh * (1 + wanted(c.at.w.weight_hh)) +
                   c.elements.weight_hr * (1 + wanted(c.at.w.weight_hr)));
}

}  // namespace ferrite::nn::detail
