/// The public face of a tape, and `grad(f)`: everything is done by its record.
#include "ferrite/autograd/tape.h"

#include <algorithm>

#include "ferrite/autograd/detail/parameter_hooks.h"
#include "ferrite/autograd/detail/tape_record.h"
#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/anomaly.h"

namespace ferrite {
namespace detail {

Tensors gradient_of_reference(const Primitive& op, const Vjp& v) {
  Tape tape;
  Tensors operands, variables;
  // Integers that a tape knows as results of an operation are asked for like others, and have no gradient.
  const auto is_variable = [&](std::size_t i) { return v.wants(i) && has_gradient(v.in_spec(i).dtype); };
  for (std::size_t i = 0; i < v.inputs(); ++i) {
    operands.push_back(is_variable(i) ? tape.watch(v.in(i)) : v.in(i));
    if (is_variable(i)) variables.push_back(operands[i]);
  }
  const Tensors out = op.reference(OperandList(operands), v.attrs);
  InlineVector<GradOf, 4> arrived;
  for (std::size_t k = 0; k < out.size(); ++k)
    if (v.grad(k).defined()) arrived.push_back({out[k], v.grad(k)});
  const Tensors g = lenient_grad(tape, {arrived.data(), arrived.size()}, {variables.data(), variables.size()},
                                 {.retain = true, .create_graph = true});
  Tensors all(v.inputs());
  for (std::size_t i = 0, next = 0; i < v.inputs(); ++i)
    if (is_variable(i)) all[i] = g[next++];
  return all;
}

Tensors gradient_of(const Primitive& op, const Vjp& v) { return op.vjp ? op.vjp(v) : gradient_of_reference(op, v); }

/// One backward walk over the entries of a record.
class Walker {
 public:
  Walker(TapeRecord& record, bool retain) : record_(record), retain_(retain), grads_(record.next_slot_) {
    keep_.resize(record.next_slot_);
  }

  Tensors run(std::span<const GradOf> of, std::span<const std::uint32_t> wrt) {
    Tensors out;
    out.reserve(wrt.size());
    std::uint32_t newest = 0;
    for (const GradOf& g : of) newest = std::max(newest, record_.slot_of(g.of));
    if (newest) {
      std::uint32_t oldest = newest;
      for (const std::uint32_t s : wrt) {
        keep_[s] = 1;
        if (s) oldest = std::min(oldest, s);
      }
      for (const GradOf& g : of)
        if (const std::uint32_t s = record_.slot_of(g.of)) give(s, Tensor(g.cotangent));
      // What was recorded before the oldest variable does not depend on any.
      Scoped scope(frame().scope);
      for (Entry* e = record_.last_; e && e->first_out > oldest; e = e->before) {
        scope.enter(e->scope);
        visit(*e);
      }
    }
    for (const std::uint32_t s : wrt) out.push_back(grads_[s]);
    return out;
  }

 private:
  /// Passes the cotangents of an entry's results on to its operands.
  void visit(Entry& e) {
    Tensors arrived;
    bool any = false;
    if (e.first_out >= grads_.size()) return;  // recorded during this walk
    for (std::uint32_t i = 0; i < e.out_specs.size(); ++i) {
      const std::uint32_t s = e.first_out + i;
      any |= grads_[s].defined();
      arrived.push_back(keep_[s] ? grads_[s] : std::move(grads_[s]));
    }
    if (!any) return;
    if (!e.op) return give(e.in_slots[0], std::move(arrived[0]));
    if (e.freed)
      throw TapeError(
          "grad: the entries of this tape were freed by an earlier call; pass retain or create_graph there");
    back(e, arrived);
    if (!retain_) free(e);
  }

  void back(const Entry& e, const Tensors& arrived) {
    std::uint64_t wanted = 0;
    for (std::size_t i = 0; i < e.in_slots.size() && i < 64; ++i)
      if (e.in_slots[i]) wanted |= std::uint64_t{1} << i;
    const Vjp v(e.applied(), {arrived.data(), arrived.size()}, wanted);
    const GradientOf context(*e.op, e.in_specs);
    Tensors g = gradient_of(*e.op, v);
    for (std::size_t i = 0; i < e.in_slots.size(); ++i) {
      if (!e.in_slots[i] || !g[i].defined()) continue;
      const Shape& shape = e.in_specs[i]->shape;
      give(e.in_slots[i],
           g[i].shape() == shape ? std::move(g[i]) : sum_to(g[i], shape));  // undo broadcasting: here only
    }
  }

  void give(std::uint32_t slot, Tensor&& d) {
    Tensor& total = grads_[slot];
    if (!total.defined()) {
      total = std::move(d);
    } else {
      accumulate(total, d);
    }
  }

  static void free(Entry& e) {
    for (Tensor& x : e.in) x = Tensor();
    for (Tensor& x : e.out) x = Tensor();
    e.freed = true;
  }

  TapeRecord& record_;
  bool retain_;
  PooledVector<Tensor> grads_;  ///< by slot
  PooledVector<char> keep_;     ///< slots whose cotangent is asked for
};

Tensors TapeRecord::walk(std::span<const GradOf> of, std::span<const std::uint32_t> wrt, bool retain) {
  return Walker(*this, retain).run(of, wrt);
}

namespace {

TapeRecord* record_of_frame() {
  for (Recorder* r : frame().recorders)
    if (auto* t = dynamic_cast<TapeRecord*>(r); t && !t->stopped()) return t;
  return nullptr;
}

/// A gradient of what no tape saw would be zeros, and training with it nothing.
void check_on(const TapeRecord& record, const Tensor& of) {
  if (record.slot_of(of)) return;
  const std::string what = "grad: the differentiated tensor " + of.spec().str();
  if (record.stopped())
    throw TapeError(what +
                    " is not on this tape, which ended with an earlier gradient; make a new tape for every "
                    "gradient, or pass retain to the earlier one");
  throw TapeError(what +
                  " is not on this tape: it was computed before the tape was made, on another thread, from neither "
                  "parameters nor watched tensors, or was detached; compute it while the tape lives");
}

/// The cotangent of what is differentiated, checked.
Tensor cotangent_of(const GradOf& g) {
  const auto& [of, cotangent] = g;
  if (!cotangent.defined()) {
    if (of.numel() != 1)
      throw ShapeError("grad: the differentiated tensor must hold one element, got " + of.shape().str() +
                       "; pass a cotangent");
    return ones(of.shape(), gradient_dtype(of.dtype()));
  }
  if (cotangent.shape() != of.shape() || cotangent.dtype() != gradient_dtype(of.dtype()))
    throw ShapeError("grad: the cotangent " + cotangent.spec().str() + " does not fit the differentiated tensor " +
                     of.spec().str());
  return cotangent;
}

}  // namespace
}  // namespace detail

Tape::Tape() : nested_(false) {
  detail::departed()->take(false);
  if (detail::TapeRecord* outer = detail::record_of_frame()) {
    record_ = outer->shared_from_this();
    nested_ = true;
    return;
  }
  record_ = std::allocate_shared<detail::TapeRecord>(detail::PooledAllocator<detail::TapeRecord>());
  record_->start();
}

Tape::~Tape() {
  if (nested_) return;
  record_->stop();
  if (!record_->on_its_thread()) detail::TapeRecord::leave(std::move(record_));
}

Tensor Tape::watch(const Tensor& x) { return record_->watch(x); }
std::size_t Tape::size() const { return record_->size(); }

Tensors Tape::walk_back(std::span<const GradOf> of, std::span<const std::uint32_t> slots, GradOptions options) {
  InlineVector<GradOf, 4> seeds;
  for (const GradOf& g : of) seeds.push_back({g.of, detail::cotangent_of(g)});
  const std::span<const GradOf> from(seeds.data(), seeds.size());
  if (options.create_graph || nested_) return record_->walk(from, slots, true);
  Tensors g;
  {
    const Paused pause(*record_);
    g = record_->walk(from, slots, options.retain);
  }
  for (Tensor& x : g)
    if (x.defined()) x = x.unmarked();
  if (!options.retain) record_->stop();
  return g;
}

Tensors Tape::grad_of_tensors(std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options) {
  InlineVector<std::uint32_t, 16> slots;
  for (const Tensor& x : wrt) {
    const std::uint32_t s = record_->slot_of(x);
    if (!s)
      throw TapeError("grad: a tensor " + x.spec().str() +
                      " was never watched on this tape; use the handle that watch returned");
    slots.push_back(s);
  }
  Tensors g = walk_back(of, {slots.data(), slots.size()}, options);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    if (!g[i].defined()) g[i] = zeros(wrt[i].shape(), gradient_dtype(wrt[i].dtype()));
  return g;
}

void Tape::check_on_tape(std::span<const GradOf> of) const {
  if (of.empty()) throw ValueError("grad: the list of what is differentiated is empty");
  for (const GradOf& g : of) detail::check_on(*record_, g.of);
}

Tensors Tape::grad(std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options) {
  check_on_tape(of);
  return grad_of_tensors(of, wrt, options);
}

Tensors Tape::grad(std::span<const GradOf> of, std::span<const Parameter> wrt, GradOptions options) {
  check_on_tape(of);
  InlineVector<std::uint32_t, 16> slots;
  for (const Parameter& p : wrt) {
    if (!p.defined())
      throw TapeError("grad: parameter " + std::to_string(slots.size()) + " of the list is an empty handle");
    slots.push_back(record_->slot_of(p));
  }
  Tensors g = walk_back(of, {slots.data(), slots.size()}, options);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    if (slots[i] && !g[i].defined()) g[i] = zeros(wrt[i].shape(), gradient_dtype(wrt[i].dtype()));
  detail::run_parameter_hooks(wrt, g);
  return g;
}

Tensors Tape::grad(std::initializer_list<GradOf> of, std::initializer_list<Tensor> wrt, GradOptions options) {
  return grad(std::span<const GradOf>(of.begin(), of.size()), std::span<const Tensor>(wrt.begin(), wrt.size()),
              options);
}

Tensors Tape::grad(std::initializer_list<GradOf> of, const std::vector<Parameter>& wrt, GradOptions options) {
  return grad(std::span<const GradOf>(of.begin(), of.size()), std::span<const Parameter>(wrt), options);
}

Tensors Tape::grad(const Tensor& of, std::span<const Tensor> wrt, GradOptions options, const Tensor& cotangent) {
  const GradOf g{of, cotangent};
  return grad(std::span<const GradOf>(&g, 1), wrt, options);
}

Tensors Tape::grad(const Tensor& of, std::initializer_list<Tensor> wrt, GradOptions options, const Tensor& cotangent) {
  return grad(of, std::span<const Tensor>(wrt.begin(), wrt.size()), options, cotangent);
}

Tensors Tape::grad(const Tensor& of, std::span<const Parameter> wrt, GradOptions options, const Tensor& cotangent) {
  const GradOf g{of, cotangent};
  return grad(std::span<const GradOf>(&g, 1), wrt, options);
}

Tensors Tape::grad(const Tensor& of, const std::vector<Parameter>& wrt, GradOptions options, const Tensor& cotangent) {
  return grad(of, std::span<const Parameter>(wrt), options, cotangent);
}

Tensors detail::lenient_grad(Tape& tape, std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options) {
  return tape.grad_of_tensors(of, wrt, options);
}

Tensors detail::push_forward(Tape& tape, std::span<const Tensor> of, std::span<const Tensor> wrt,
                             std::span<const Tensor> tangents) {
  TapeRecord& record = *tape.record_;
  InlineVector<std::uint32_t, 16> slots;
  for (const Tensor& x : wrt) slots.push_back(record.slot_of(x));
  if (tape.nested_) return record.push(of, {slots.data(), slots.size()}, tangents);
  const Paused pause(record);
  Tensors found = record.push(of, {slots.data(), slots.size()}, tangents);
  for (Tensor& t : found)
    if (t.defined()) t = t.unmarked();
  return found;
}

std::function<Tensor(const Tensor&)> grad(std::function<Tensor(const Tensor&)> f) {
  if (!f) throw ValueError("grad: the function is null");
  return [f = std::move(f)](const Tensor& x) {
    Tape tape;
    const Tensor variable = tape.watch(x);
    return detail::lenient_grad(tape, {f(variable)}, {&variable, 1})[0];
  };
}

}  // namespace ferrite
