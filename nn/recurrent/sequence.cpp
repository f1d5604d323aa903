/// One direction of a recurrent layer as one operation: what is the same for all cells. The steps are defined by the
/// cells, the gradient is the operation of sequence_grad.cpp.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/pack_weights.h"
#include "ferrite/nn/recurrent/detail/sequence_call.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

namespace {

/// Whether to read a packed copy of w in so many passes, or w as it stands because the copy does not pay.
bool is_worth_packing(const Tensor& w, std::int64_t passes) {
  const bool used_before = count_use(w) > 0;
  return !w.impl()->storage->rewritten && (used_before || packing_pays(passes));
}

/// Rows that the general product takes in one pass over a matrix as it stands.
constexpr std::int64_t kRowsOfAPass = 64;

/// The weights as the forward pass reads them: their copies stay with them for other calls.
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

/// The k-th operand, or an undefined one.
const Tensor& operand(Inputs in, int k) {
  static const Tensor none;
  return k < 0 ? none : in[static_cast<std::size_t>(k)];
}

}  // namespace

SequenceParts parts_of(const GatedCell& cell, Inputs in, std::size_t begin) {
  const auto type_at = [&](std::size_t k) -> OperandType { return {in[k].dtype(), in[k].rank()}; };
  return parts_of(cell, in.size(), type_at, begin);
}

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
template class SequenceCall<float>;
template class SequenceCall<double>;

template <class T>
void run_forward(SequenceCall<T>& call, const SequenceOrder& order, Tensor& y, Tensor& h, Tensor* c, Tensor* saved) {
  run_recurrence<T>(call.with(forward_weights(call)),
                    {.y = writable_rows<T>(y, SequenceAxes(order)),
                     .h = Writer::data<T>(h),
                     .c = c ? Writer::data<T>(*c) : nullptr,
                     .saved = saved && call->cell->saved > 0 ? Writer::data<T>(*saved) : nullptr});
}
template void run_forward(SequenceCall<float>&, const SequenceOrder&, Tensor&, Tensor&, Tensor*, Tensor*);
template void run_forward(SequenceCall<double>&, const SequenceOrder&, Tensor&, Tensor&, Tensor*, Tensor*);

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
  while (found.size() < v.inputs()) found.push_back(Tensor());  // lengths and resets have none
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

}  // namespace ferrite::nn::detail
