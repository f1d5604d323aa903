/// Tangents carried forward over what a tape recorded.
#include <algorithm>

#include "ferrite/autograd/detail/tape_record.h"
#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/anomaly.h"

namespace ferrite::detail {
namespace {

Tensor added(const Tensor& total, const Tensor& more) {
  if (!total.defined()) return more;
  return more.defined() ? total + more : total;
}

/// Of an operation on elements: its Jacobian is diagonal, so that the product with a vector is that with a covector.
Tensors along_elements(const Primitive& op, const Jvp& j) {
  Tensor total;
  for (std::size_t i = 0; i < j.inputs(); ++i) {
    if (!j.tangent(i).defined()) continue;
    const Tensor along = expand(j.tangent(i), j.out_spec().shape);
    total = added(total, op.vjp(Vjp(j, {&along, 1}, std::uint64_t{1} << i))[i]);
  }
  return {total};
}

/// Of an operation that is linear in its floats together: itself, applied to the tangents.
Tensors of_tangents(const Primitive& op, const Jvp& j) {
  Tensors in;
  for (std::size_t i = 0; i < j.inputs(); ++i)
    in.push_back(has_gradient(j.in_spec(i).dtype) ? j.tangent_or_zeros(i) : j.in(i));
  return op.apply(OperandList(in), j.attrs);
}

/// Of an operation that is linear in each of its operands: the sum over them, one replaced by its tangent each time.
Tensors of_each_tangent(const Primitive& op, const Jvp& j) {
  Tensors total(j.outputs());
  for (std::size_t i = 0; i < j.inputs(); ++i) {
    if (!j.tangent(i).defined()) continue;
    Tensors in;
    for (std::size_t k = 0; k < j.inputs(); ++k) in.push_back(k == i ? j.tangent(k) : j.in(k));
    const Tensors part = op.apply(OperandList(in), j.attrs);
    for (std::size_t k = 0; k < total.size(); ++k) total[k] = added(total[k], part[k]);
  }
  return total;
}

/// Of any operation with a gradient: u -> J'u is linear, and the gradient of <J'u, t> by u is J t.
Tensors by_transposing(const Primitive& op, const Jvp& j) {
  Tape tape;
  Tensors cotangents, variables;
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < j.inputs(); ++i)
    if (j.tangent(i).defined() && i < 64) wanted |= std::uint64_t{1} << i;
  InlineVector<std::size_t, 8> floats;
  for (std::size_t k = 0; k < j.outputs(); ++k) {
    cotangents.emplace_back();
    if (!has_gradient(j.out_spec(k).dtype)) continue;
    floats.push_back(k);
    cotangents[k] = tape.watch(zeros(j.out_spec(k).shape, gradient_dtype(j.out_spec(k).dtype)));
    variables.push_back(cotangents[k]);
  }
  const Tensors gradients = gradient_of(op, Vjp(j, {cotangents.data(), cotangents.size()}, wanted));
  InlineVector<GradOf, 8> of;
  for (std::size_t i = 0; i < j.inputs(); ++i)
    if (j.tangent(i).defined() && gradients[i].defined())
      of.push_back({sum_to(gradients[i], j.in_spec(i).shape), j.tangent(i)});
  Tensors total(j.outputs());
  if (of.empty()) return total;
  const Tensors found = lenient_grad(tape, {of.data(), of.size()}, {variables.data(), variables.size()});
  for (std::size_t n = 0; n < floats.size(); ++n) total[floats[n]] = found[n];
  return total;
}

Tensors tangents_of(const Entry& e, std::span<const Tensor> tangents) {
  const Primitive& op = *e.op;
  const Jvp j(e.applied(), tangents);
  const GradientOf context(op, e.in_specs);
  if (op.jvp) return op.jvp(j);
  if (op.linearity == Linearity::together) return of_tangents(op, j);
  if (op.linearity == Linearity::in_each) return of_each_tangent(op, j);
  if (op.is_pointwise() && op.vjp) return along_elements(op, j);
  return by_transposing(op, j);
}

}  // namespace

Tensors TapeRecord::push(std::span<const Tensor> of, std::span<const std::uint32_t> slots,
                         std::span<const Tensor> tangents) {
  PooledVector<Tensor> at(next_slot_);
  PooledVector<char> needed(next_slot_);
  std::uint32_t oldest = next_slot_;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    at[slots[i]] = tangents[i];
    oldest = std::min(oldest, slots[i]);
  }
  for (const Tensor& y : of) needed[slot_of(y)] = 1;
  // Entries are linked from the last one on: those that the results need, in that order.
  PooledVector<const Entry*> path;
  for (const Entry* e = last_; e && e->first_out > oldest; e = e->before) {
    bool some = false;
    for (std::size_t k = 0; k < e->out_specs.size(); ++k) some |= needed[e->first_out + k] != 0;
    if (!some) continue;
    if (e->freed) throw TapeError("jvp: the entries of this tape were freed by an earlier call");
    for (const std::uint32_t s : e->in_slots) needed[s] = 1;
    path.push_back(e);
  }
  Scoped scope(frame().scope);
  for (std::size_t i = path.size(); i-- > 0;) {
    const Entry& e = *path[i];
    Tensors in;
    bool some = false;
    for (const std::uint32_t s : e.in_slots) {
      in.push_back(s ? at[s] : Tensor());
      some |= in.back().defined();
    }
    if (!some) continue;
    scope.enter(e.scope);
    Tensors out = e.op ? tangents_of(e, {in.data(), in.size()}) : in;
    for (std::size_t k = 0; k < out.size(); ++k) at[e.first_out + k] = std::move(out[k]);
  }
  Tensors found;
  for (const Tensor& y : of) found.push_back(slot_of(y) ? at[slot_of(y)] : Tensor());
  return found;
}

}  // namespace ferrite::detail
