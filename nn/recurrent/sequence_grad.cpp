/// The way back through a sequence as an operation, so that a tracer sees it. Where it is differentiated itself, that
/// is the gradient of its reference: the tape of the steps.
#include <algorithm>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"
#include "ferrite/nn/recurrent/sequence.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/room.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

namespace {

/// Positions of the operands before those of the sequence.
struct GradOperands {
  explicit GradOperands(CellType cell) : dc(has_memory(cell) ? 4 : -1), begin(has_memory(cell) ? 5 : 4) {}
  static constexpr std::size_t y = 0, saved = 1, dy = 2, dh = 3;
  int dc;
  std::size_t begin;  ///< of the sequence's own
};

/// A turned copy of some columns of w, made for one call.
template <class T>
class Turned {
 public:
  Turned(const Tensor& w, std::int64_t K) : room_(gate_pack_size<T>(K, 1, w.shape()[0])), K_(K), units_(w.shape()[0]) {}
  void columns(const Tensor& w, std::int64_t begin, std::int64_t n, std::int64_t at) {
    const std::int64_t lanes = kernels().floats<T>().lanes;
    pack_transposed(w.data<T>() + begin, w.strides()[0], n, units_, room_.get() + at * lanes, K_);
  }
  GateMatrix<T> matrix() { return packed_gates<T>(room_.get(), K_, 1, units_); }

 private:
  Room<T> room_;
  std::int64_t K_, units_;
};

/// The weights as the way back reads them.
template <class T>
class AllTurned {
 public:
  /// `goes_back`: whether anything passes from a step to the one before.
  AllTurned(const Prepared<T>& r, bool goes_back) : ih_(r.w_ih().template data<T>()) {
    const std::int64_t H = r->H;
    const bool before = r->cell == CellType::gru_reset_before;
    if (goes_back) hh_.emplace(r.w_hh(), before ? 2 * H : r->columns());
    if (hh_ && r->cell == CellType::gru) {
      hh_->columns(r.w_hh(), 2 * H, H, 0);
      hh_->columns(r.w_hh(), 0, 2 * H, H);
    } else if (hh_) {
      hh_->columns(r.w_hh(), 0, hh_->matrix().K, 0);
    }
    if (before) hh_n_.emplace(r.w_hh(), H).columns(r.w_hh(), 2 * H, H, 0);
    if (r.w_hr().defined()) hr_.emplace(r.w_hr(), r->P).columns(r.w_hr(), 0, r->P, 0);
  }
  TurnedWeights<T> weights() {
    const auto matrix = [](std::optional<Turned<T>>& t) { return t ? t->matrix() : GateMatrix<T>{}; };
    return {matrix(hh_), matrix(hh_n_), matrix(hr_), ih_};
  }

 private:
  std::optional<Turned<T>> hh_, hh_n_, hr_;
  const T* ih_;
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
void way_back(CellType cell, Inputs in, std::span<Tensor> out, const SequenceOrder& order) {
  const GradOperands at(cell);
  const SequenceOperands o = operands_of(cell, in, at.begin);
  const Prepared<T> r(cell, in, o, order);
  const SequenceAxes axes(order);
  const auto wanted = [&](int k) -> T* {
    const auto i = static_cast<std::size_t>(k - o.first);
    return k < 0 || out[i].numel() == 0 ? nullptr : Writer::data<T>(out[i]);
  };
  const Tensor y = dense(in[GradOperands::y]);
  Tensor saved = dense(in[GradOperands::saved]);
  if (saved_of(cell) > 0 && saved.numel() == 0) {  // not kept: computed again
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
  AllTurned<T> turned(r, r->T_ > 1 || wants_state);
  Tensor* const dx = wanted(o.x) ? &out[0] : nullptr;
  run_recurrence_back<T>(*r, {.turned = turned.weights(),
                              .y = rows_of<T>(y, axes),
                              .saved = saved_of(cell) > 0 ? saved.data<T>() : nullptr,
                              .dy = dy.defined() ? rows_of<T>(dy, axes) : Rows<const T*>{},
                              .wants_state = wants_state,
                              .dh = begun(in[GradOperands::dh], dh, r->B * r->P),
                              .dc = at.dc < 0 ? nullptr : begun(in[static_cast<std::size_t>(at.dc)], dc, r->B * r->H),
                              .dx = dx ? writable_rows<T>(*dx, axes) : Rows<T*>{},
                              .dw_ih = wanted(o.w_ih),
                              .dw_hh = wanted(o.w_hh),
                              .db_ih = wanted(o.b_ih),
                              .db_hh = wanted(o.b_hh),
                              .dw_hr = wanted(o.w_hr)});
}

template <class Kind>
struct SequenceGrad {
  using Attributes = SequenceGradAttrs<Kind>;
  static constexpr auto name = Kind::grad_name, onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradient of the operation before: of every operand that `wants` names";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    const CellType cell = attrs.cell();
    const GradOperands at(cell);
    const SequenceOperands o = operands_of(cell, in, at.begin);
    check_sequence(name, cell, in, o, attrs);
    for (int k = 0; k < attrs.wants.rank(); ++k)
      if (attrs.wants[k] < (k ? attrs.wants[k - 1] + 1 : 0) || attrs.wants[k] >= o.gradients())
        throw_shape(name, "`wants` must be ascending positions below " + std::to_string(o.gradients()) + ", got " +
                              attrs.wants.str());
    Specs out;
    for (int k = 0; k < o.gradients(); ++k) {
      const Spec& spec = in[at.begin + static_cast<std::size_t>(k)].spec();
      out.push_back(attrs.has(k) ? spec : Spec{{0}, spec.dtype});
    }
    return out;
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const CellType cell = attrs.cell();
    if (in[0].numel() == 0) return fill_zero(out);
    if (in[0].dtype() == Dtype::f32) {
      way_back<float>(cell, in, out, attrs);
    } else {
      way_back<double>(cell, in, out, attrs);
    }
  }
  /// From the tape of the steps. What the sequence saved for the kernel is not read.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const GradOperands at(attrs.cell());
    const auto wanted = [&](std::size_t k) { return attrs.has(static_cast<std::int64_t>(k)); };
    const Specs specs = infer(in, attrs);
    Tape tape;
    Tensors operands, variables;
    for (std::size_t k = 0; at.begin + k < in.size(); ++k) {
      operands.push_back(in[at.begin + k]);
      if (k >= specs.size() || !wanted(k)) continue;
      operands.back() = tape.watch(operands.back());
      variables.push_back(operands.back());
    }
    const SequenceAttrs<Kind> sequence({attrs, false}, attrs.second.value_or(false));
    const Tensors results = sequence_operation(attrs.cell()).reference(OperandList(operands), sequence);
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    sequence_grad_oracle(attrs.cell(), in, out, attrs);
  }
  static std::vector<Sample> samples() { return samples_of_kinds<Kind, SequenceWants>(sequence_grad_samples); }
  /// One product a step for what goes on to the step before, and one for each gradient that is wanted.
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes& attrs) {
    const CellType cell = attrs.cell();
    const GradOperands grad(cell);
    const SequenceCost c(cell, in, grad.begin);
    const auto wanted = [&](int k) { return k >= 0 && attrs.has(k - c.at.first) ? 1 : 0; };
    return c.rows * (c.w_ih * (wanted(c.at.x) + wanted(c.at.w_ih)) + c.w_hh * (1 + wanted(c.at.w_hh)) +
                     c.w_hr * (1 + wanted(c.at.w_hr)));
  }

 private:
  /// No rows: nothing arrives anywhere.
  static void fill_zero(std::span<Tensor> out) {
    for (Tensor& t : out) std::fill_n(Writer::raw(t), t.numel() * size_of(t.dtype()), std::byte{0});
  }
};

}  // namespace

const Primitive& sequence_grad(CellType cell) {
  if (is_gru(cell)) return structured<SequenceGrad<GruSequence>>;
  if (cell == CellType::lstm) return structured<SequenceGrad<LstmSequence>>;
  return structured<SequenceGrad<RnnSequence>>;
}

std::span<const Primitive* const> sequence_grad_operations() {
  static constexpr const Primitive* list[] = {&structured<SequenceGrad<GruSequence>>,
                                              &structured<SequenceGrad<LstmSequence>>,
                                              &structured<SequenceGrad<RnnSequence>>};
  return list;
}

}  // namespace ferrite::nn::detail
