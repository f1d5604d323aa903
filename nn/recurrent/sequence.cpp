/// One direction of a recurrent layer as one operation, and its gradient as another: the parts that all cells share.
/// The cells define the steps. Tracers see the gradient; its own gradient is that of the reference.
#include <algorithm>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/pack_weights.h"
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/nn/recurrent/sequence_parts.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::nn::detail {
namespace {

using namespace ferrite::detail;

template <class T>
Rows<const T*> rows_of(const Tensor& x, const SequenceAxes& axes) {
  return {x.data<T>(), x.strides()[axes.time], x.strides()[axes.batch()]};
}
template <class T>
Rows<T*> writable_rows(Tensor& x, const SequenceAxes& axes) {
  return {Writer::data<T>(x), x.strides()[axes.time], x.strides()[axes.batch()]};
}

/// Holds the operands of one application, row-major, while its kernel runs. Each pass brings the weights into the form
/// that its kernel reads.
template <class T>
class SequenceCall {
 public:
  SequenceCall(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order);
  const RecurrentWeights<RowMajor>& weights() const { return weights_; }
  const Recurrence<T>* operator->() const { return &r_; }
  /// Sets the weights of the recurrence and returns it.
  const Recurrence<T>& with(const KernelWeights<T>& w) {
    r_.w = w;
    return r_;
  }

 private:
  RecurrentWeights<RowMajor> weights_;
  RowMajor h0_, c0_, lengths_, resets_;
  Tensor x_;  ///< a copy of x if its features are not contiguous
  Recurrence<T> r_;
};

}  // namespace

// ---- forward -------------------------------------------------------------------------------------------

namespace {

/// Returns whether a packed copy of w pays in this number of passes; if not, they read w itself.
bool is_worth_packing(const Tensor& w, std::int64_t passes) {
  const bool used_before = count_use(w) > 0;
  return !w.impl()->storage->rewritten && (used_before || packing_pays(passes));
}

/// Number of rows that the general product takes in one pass over an unpacked matrix.
constexpr std::int64_t kRowsOfAPass = 64;

/// Returns the weights in the form that the forward pass reads; packed copies stay with the weights for later calls.
template <class T>
KernelWeights<T> forward_weights(const SequenceCall<T>& call) {
  const RecurrentWeights<RowMajor>& w = call.weights();
  const std::int64_t passes = call->T_ * ((call->B + 7) / 8);
  RecurrentWeights<bool> packs{};
  packs.weight_hh = is_worth_packing(*w.weight_hh, passes);
  packs.weight_ih = is_worth_packing(*w.weight_ih, (call->T_ * call->B) / kRowsOfAPass);
  packs.weight_hr = w.weight_hr->defined() && is_worth_packing(*w.weight_hr, passes);
  return pack_weights<T>(*call->cell, w, packs,
                         [](const Tensor& m, const PackedColumns& c, std::int64_t elements, const auto& fill) {
                           PackKey key = pack_key(m, c.gates);
                           key.offset += c.begin;
                           key.columns = c.gates * c.units;
                           return pack_of<T>(m, key, elements, fill);
                         });
}

/// Returns the k-th operand, or an undefined one for k below 0.
const Tensor& operand(Inputs in, int k) {
  static const Tensor none;
  return k < 0 ? none : in[static_cast<std::size_t>(k)];
}

}  // namespace

SequenceParts parts_of(const GatedCell& cell, Inputs in, std::size_t begin) {
  const auto type_at = [&](std::size_t k) -> OperandType { return {in[k].dtype(), in[k].rank()}; };
  return parts_of(cell, in.size(), type_at, begin);
}

namespace {

template <class T>
SequenceCall<T>::SequenceCall(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order)
    : weights_(o.w.map([in](int k) { return RowMajor(operand(in, k)); })),
      h0_(operand(in, o.h0)),
      c0_(operand(in, o.c0)),
      lengths_(operand(in, o.lengths)),
      resets_(operand(in, o.resets)) {
  const Tensor& given = operand(in, o.x);
  const bool adjacent = given.strides()[2] == 1 || given.shape()[2] == 1;
  if (!adjacent) x_ = dense(given);
  const Tensor& x = adjacent ? given : x_;
  const SequenceAxes axes(order);
  r_ = {.cell = &cell,
        .T_ = x.shape()[axes.time],
        .B = x.shape()[axes.batch()],
        .D = x.shape()[2],
        .H = weights_.weight_hh->shape()[1] / cell.gates,
        .P = h0_->shape()[1],
        .reverse = order.reverse,
        .x = rows_of<T>(x, axes),
        .w = {},
        .h0 = h0_->template data<T>(),
        .c0 = c0_->defined() ? c0_->template data<T>() : nullptr,
        .lengths = lengths_->defined() ? lengths_->template data<std::int64_t>() : nullptr,
        .resets = resets_->defined() ? Rows<const bool*>{resets_->template data<bool>(), 1, resets_->strides()[0]}
                                     : Rows<const bool*>{}};
}

/// Computes y, the last states and, if `saved` is not null, what the gradient reads.
template <class T>
void run_forward(SequenceCall<T>& call, const SequenceOrder& order, Tensor& y, Tensor& h, Tensor* c, Tensor* saved) {
  run_recurrence<T>(call.with(forward_weights(call)),
                    {.y = writable_rows<T>(y, SequenceAxes(order)),
                     .h = Writer::data<T>(h),
                     .c = c ? Writer::data<T>(*c) : nullptr,
                     .saved = saved && call->cell->saved > 0 ? Writer::data<T>(*saved) : nullptr});
}

}  // namespace

void check_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceParts& o,
                    const SequenceOrder& order) {
  const auto at = [in](int k) -> const Tensor& { return in[static_cast<std::size_t>(k)]; };
  if (!o.complete)
    throw_shape(name, "needs x, h0, " + std::string(cell.has_memory ? "c0, " : "") + "weight_ih, weight_hh" +
                          (cell.vectors ? ", weight_ch" : "") +
                          " and, where there are any, two biases, lengths i64, resets bool");
  const Shape& x = at(o.x).shape();
  const Shape& h0 = at(o.h0).shape();
  const Shape& w_ih = at(o.w.weight_ih).shape();
  const Shape& w_hh = at(o.w.weight_hh).shape();
  const auto refuse = [&](const char* what) {
    throw_shape(name, std::string(what) + ": x " + x.str() + ", h0 " + h0.str() + ", weight_ih " + w_ih.str() +
                          ", weight_hh " + w_hh.str());
  };
  const Dtype dtype = at(o.x).dtype();
  for (int k = o.first; k < o.floats; ++k)
    if (!is_float(dtype) || at(k).dtype() != dtype)
      throw_dtype(name, "operands are " + at(o.x).spec().str() + " and " + at(k).spec().str());
  if (x.rank() != 3 || h0.rank() != 2 || w_ih.rank() != 2 || w_hh.rank() != 2)
    refuse("needs x of rank 3, h0 and weights of rank 2");
  const SequenceAxes axes(order);
  const std::int64_t T = x[axes.time], B = x[axes.batch()], columns = w_hh[1], gates = cell.gates;
  const std::int64_t H = columns / gates, P = h0[1];
  if (T == 0) refuse("the sequence has no steps");
  if (columns == 0 || columns % gates != 0 || w_ih != Shape{x[2], columns} || h0[0] != B || w_hh[0] != P)
    refuse("shapes do not fit each other");
  if (o.w.weight_hr < 0 ? P != H : !cell.projects || at(o.w.weight_hr).shape() != Shape{H, P})
    refuse("the state does not fit the gates");
  if (P == 0) refuse("the state has no units");
  if (o.c0 >= 0 && at(o.c0).shape() != Shape{B, H}) refuse("c0 does not fit");
  if (o.w.weight_ch >= 0 && at(o.w.weight_ch).shape() != Shape{cell.vectors * H})
    throw_shape(name,
                "weight_ch must be " + Shape{cell.vectors * H}.str() + ", got " + at(o.w.weight_ch).shape().str());
  if (o.w.bias_ih >= 0 && (at(o.w.bias_ih).shape() != Shape{columns} || at(o.w.bias_hh).shape() != Shape{columns}))
    refuse("the biases do not fit");
  if (o.lengths >= 0 && at(o.lengths).spec() != Spec{{B}, Dtype::i64}) refuse("lengths must be i64 [B]");
  if (o.resets >= 0 && at(o.resets).spec() != Spec{{B, T}, Dtype::boolean}) refuse("resets must be bool [B, T]");
}

namespace {

void check_lengths(std::string_view name, const Tensor& lengths, std::int64_t steps) {
  const Tensor all = dense(lengths);
  for (const std::int64_t n : all.values<std::int64_t>())
    if (n < 0 || n > steps)
      throw_shape(name, "a length of " + std::to_string(n) + " lies outside 0.." + std::to_string(steps));
}

}  // namespace

Spec saved_spec(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order) {
  const Shape& x = in[static_cast<std::size_t>(o.x)].shape();
  const SequenceAxes axes(order);
  const std::int64_t H = in[static_cast<std::size_t>(o.w.weight_hh)].shape()[1] / cell.gates;
  return {{x[axes.time], x[axes.batch()], cell.saved * H}, in[static_cast<std::size_t>(o.x)].dtype()};
}

Tensors compose_sequence(const GatedCell& cell, Inputs in, const SequenceOrder& order) {
  const SequenceParts o = parts_of(cell, in);
  const auto value = [in](int k) { return k < 0 ? Tensor() : in[static_cast<std::size_t>(k)]; };
  const RecurrentWeights<Tensor> w = o.w.map(value);
  const auto step = [&](const Tensor& i, const RecurrentState& s) { return cell.functions->step(i, s, w); };
  const SequenceOptions options{.reverse = order.reverse,
                                .batch_first = order.batch_first,
                                .lengths = value(o.lengths),
                                .resets = value(o.resets)};
  const Tensor i = affine(ferrite::detail::padding_replaced(value(o.x), options.lengths, options.batch_first),
                          w.weight_ih, w.bias_ih);
  const RecurrentState before{value(o.h0), value(o.c0)};
  if (const ComposeAsScans::Compose compose = ComposeAsScans::compose()) return compose(step, i, before, options);
  return unroll(i, before, step, options);
}

Specs infer_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceSaves& attrs) {
  const SequenceParts o = parts_of(cell, in);
  check_sequence(name, cell, in, o, attrs);
  const Spec state = in[1].spec();
  Specs out;
  out.push_back({in[0].shape(), state.dtype});
  out[0].shape[2] = state.shape[1];
  out.push_back(state);
  if (o.c0 >= 0) out.push_back(in[2].spec());
  out.push_back(attrs.save && cell.saved > 0 ? saved_spec(cell, in, o, attrs) : Spec{{0}, state.dtype});
  return out;
}

namespace {

template <class T>
void run(std::string_view name, const GatedCell& cell, Inputs in, std::span<Tensor> out, const SequenceSaves& attrs) {
  const SequenceParts o = parts_of(cell, in);
  if (o.lengths >= 0)
    check_lengths(name, in[static_cast<std::size_t>(o.lengths)], in[0].shape()[SequenceAxes(attrs).time]);
  Tensor& saved = out.back();
  if (out[0].numel() == 0) return;
  SequenceCall<T> call(cell, in, o, attrs);
  run_forward<T>(call, attrs, out[0], out[1], cell.has_memory ? &out[2] : nullptr, saved.numel() ? &saved : nullptr);
}

}  // namespace

void run_sequence(std::string_view name, const GatedCell& cell, Inputs in, std::span<Tensor> out,
                  const SequenceSaves& attrs) {
  if (out[0].dtype() == Dtype::f32) {
    run<float>(name, cell, in, out, attrs);
  } else {
    run<double>(name, cell, in, out, attrs);
  }
}

SequenceGradOperands::SequenceGradOperands(const GatedCell& cell, const Vjp& v)
    : nothing(Tensor::empty({{0}, v.in_spec(0).dtype})) {
  const std::size_t states = cell.has_memory ? 2 : 1;
  in = {&v.out(0), &v.out(1 + states)};
  for (std::size_t k = 0; k <= states; ++k) in.push_back(v.grad(k).defined() ? &v.grad(k) : &nothing);
  for (std::size_t k = 0; k < v.inputs(); ++k) {
    in.push_back(&v.in(k));
    if (v.wants(k) && is_float(v.in_spec(k).dtype)) wants.push_back(static_cast<std::int64_t>(k));
  }
}

Tensors SequenceGradOperands::gradients(const Vjp& v, Tensors found) const {
  while (found.size() < v.inputs()) found.push_back(Tensor());  // lengths and resets have no gradient
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!v.wants(k)) found[k] = Tensor();
  return found;
}

std::span<const Primitive* const> recurrent_operations() {
  static const std::vector<const Primitive*> all = [] {
    std::vector<const Primitive*> list;
    for (const CellOperations* f : kCellOperations) list.push_back(f->sequence);
    for (const CellOperations* f : kCellOperations) list.push_back(f->gradient);
    return list;
  }();
  return all;
}

std::span<const Primitive* const> recurrent_composites() {
  static const std::vector<const Primitive*> all = [] {
    std::vector<const Primitive*> list;
    for (const CellOperations* f : kCellOperations) list.insert(list.end(), f->steps.begin(), f->steps.end());
    return list;
  }();
  return all;
}

// ---- the gradient ----------------------------------------------------------------------------------------

namespace {

/// The positions of the gradient's operands before those of the sequence.
struct GradOperands {
  explicit GradOperands(const GatedCell& cell) : dc(cell.has_memory ? 4 : -1), begin(cell.has_memory ? 5 : 4) {}
  static constexpr std::size_t y = 0, saved = 1, dy = 2, dh = 3;
  int dc;
  std::size_t begin;  ///< position of the first operand of the sequence
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

/// The weights in the form that the backward pass reads.
template <class T>
class BackwardWeights {
 public:
  /// Transposes the weights; `goes_back` says whether a cotangent passes from a step to the one before.
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

/// Fills a state's gradient with the cotangent of the last state, or zeros, from which the kernel starts.
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
  if (cell.saved > 0 && saved.numel() == 0) {  // recompute what was not saved
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

/// Sets all gradients to 0, because there are no rows.
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
  InlineVector<GradOf, 4> arrived;  // absent cotangents are empty
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

// ---- operands by their meaning -------------------------------------------------------------------------

namespace ferrite::nn {

SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands) {
  static constexpr std::pair<std::string_view, const detail::GatedCell*> cells[] = {
      {"gru_sequence", &detail::kGru},   {"gru_reset_before_sequence", &detail::kGruResetBefore},
      {"lstm_sequence", &detail::kLstm}, {"peephole_lstm_sequence", &detail::kPeepholeLstm},
      {"rnn_sequence", &detail::kRnn},   {"rnn_relu_sequence", &detail::kRnnRelu}};
  for (const auto& [name, cell] : cells)
    if (operation == name) return detail::parts_of(*cell, operands);
  throw ValueError("sequence_parts: no sequence of that name: '" + std::string(operation) + "'");
}

}  // namespace ferrite::nn
