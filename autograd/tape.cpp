/// Tapes: recording of applications, the backward walk for gradients, the forward sweep for tangents, and `grad(f)`.
#include "ferrite/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>

#include "ferrite/autograd/detail/tape_record.h"
#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite {

// ---- chunks of memory for the entries of tapes, reused by each thread -------------------------------------

namespace detail {
namespace {

constexpr std::size_t kChunk = 1 << 16;
constexpr std::size_t kMostSpare = 256;

/// Outlives the spare memory: a tape may end after it when its thread ends.
FERRITE_PER_THREAD constinit PerThread<bool> spare_ended(false);

struct Spare {
  std::vector<std::byte*> chunks;
  ~Spare() {
    for (std::byte* c : chunks) ::operator delete(c);
    spare_ended() = true;
  }
};
Spare& spare() { return object_of_thread<Spare>(); }

}  // namespace

void* Arena::refill(std::size_t bytes) {
  if (bytes > kChunk / 4) {
    large_.push_back(static_cast<std::byte*>(::operator new(bytes)));
    return large_.back();
  }
  if (spare_ended() || spare().chunks.empty()) {
    chunks_.push_back(static_cast<std::byte*>(::operator new(kChunk)));
  } else {
    chunks_.push_back(spare().chunks.back());
    spare().chunks.pop_back();
  }
  at_ = chunks_.back() + bytes;
  left_ = kChunk - bytes;
  return chunks_.back();
}

Arena::~Arena() {
  for (std::byte* p : large_) ::operator delete(p);
  for (std::byte* c : chunks_) {
    if (!spare_ended() && spare().chunks.size() < kMostSpare) {
      spare().chunks.push_back(c);
    } else {
      ::operator delete(c);
    }
  }
}

// ---- recording, and the backward walk ---------------------------------------------------------------------

namespace {

std::uint64_t next_tape_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

constexpr std::size_t kFewLeaves = 16;

bool reads_value(std::uint8_t mask, std::size_t i) { return i >= 8 ? mask == 0xff : (mask >> i & 1) != 0; }

}  // namespace

const Attrs Entry::none_ = Attrs();

// ---- leaves --------------------------------------------------------------------------------------------

std::size_t Leaves::place(const void* variable) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = (std::bit_cast<std::size_t>(variable) >> 4) * 0x9E3779B97F4A7C15U >> 20 & mask;
  while (table_[at] != 0 && list_[table_[at] - 1].variable != variable) at = (at + 1) & mask;
  return at;
}

Leaves::Leaf* Leaves::find(const void* variable) {
  if (!table_.empty()) {
    const std::uint32_t i = table_[place(variable)];
    return i ? &list_[i - 1] : nullptr;
  }
  for (Leaf& leaf : list_)
    if (leaf.variable == variable) return &leaf;
  return nullptr;
}

void Leaves::add(Leaf leaf) {
  list_.push_back(std::move(leaf));
  if (list_.size() <= kFewLeaves) return;
  if (2 * list_.size() > table_.size()) return rebuild();
  table_[place(list_.back().variable)] = static_cast<std::uint32_t>(list_.size());
}

void Leaves::rebuild() {
  table_.assign(std::bit_ceil(4 * list_.size()), 0);
  for (std::size_t i = 0; i < list_.size(); ++i) table_[place(list_[i].variable)] = static_cast<std::uint32_t>(i + 1);
}

// ---- recording -----------------------------------------------------------------------------------------

TapeRecord::TapeRecord() : id_(next_tape_id()) {}

/// Destroys the entries in a loop, last first: a long chain of results never recurses.
TapeRecord::~TapeRecord() {
  for (Entry* e = last_; e; e = e->before) {
    std::destroy(e->in.begin(), e->in.end());
    std::destroy(e->out.begin(), e->out.end());
    if (e->attrs) std::destroy_at(e->attrs);
  }
}

void TapeRecord::start() {
  thread_ = std::this_thread::get_id();
  departed_ = departed();
  recording_.emplace(*this);
}

void TapeRecord::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  if (on_its_thread()) recording_.reset();
}

void TapeRecord::leave(std::shared_ptr<TapeRecord> record) {
  const std::shared_ptr<Departed> where = record->departed_;
  where->leave(std::move(record));
}

Entry* TapeRecord::new_entry() {
  Entry* e = arena_.make<Entry>(1).data();
  e->before = last_;
  last_ = e;
  ++size_;
  return e;
}

const Spec* TapeRecord::keep_spec(const Spec& spec) {
  for (const Spec* s : recent_)
    if (s && *s == spec) return s;
  Spec* kept = arena_.make<Spec>(1).data();
  *kept = spec;
  recent_[recent_at_++ % 4] = kept;
  return kept;
}

std::span<const Spec*> TapeRecord::keep_specs(std::size_t n, auto spec_at) {
  const std::span<const Spec*> kept = arena_.make<const Spec*>(n);
  for (std::size_t i = 0; i < n; ++i) kept[i] = keep_spec(spec_at(i));
  return kept;
}

std::uint32_t TapeRecord::new_slots(std::size_t n) {
  if (n > 0xffffffffU - next_slot_) throw TapeError("tape: more than 2^32 values were recorded");
  const std::uint32_t first = next_slot_;
  next_slot_ += static_cast<std::uint32_t>(n);
  return first;
}

void TapeRecord::record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) {
  if (stopped()) return;
  bool depends = false;
  for (const Tensor& x : in) depends |= slot_of(x) != 0;
  if (!depends || (!op.differentiable() && !op.second_order_by_reference)) return;

  Entry* e = new_entry();
  e->op = &op;
  e->scope = frame().scope;
  if (!attrs.empty() || attrs.body) e->attrs = ::new (arena_.take(sizeof(Attrs))) Attrs(attrs);
  e->in_slots = arena_.make<std::uint32_t>(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) e->in_slots[i] = slot_of(in[i]);
  e->in_specs = keep_specs(in.size(), [&](std::size_t i) { return in[i].spec(); });
  e->out_specs = keep_specs(out.size(), [&](std::size_t i) { return out[i].spec(); });
  if (op.reads.in) {
    e->in = arena_.make<Tensor>(in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
      if (reads_value(op.reads.in, i)) e->in[i] = in[i];
  }
  e->first_out = new_slots(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].mark(id_, e->first_out + static_cast<std::uint32_t>(i));
  if (op.reads.out) {
    e->out = arena_.make<Tensor>(out.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      if (reads_value(op.reads.out, i)) e->out[i] = out[i];
  }
}

void TapeRecord::read(const Variable& variable, Tensor& value) {
  if (stopped() || variable.kind() != VariableKind::parameter || !has_gradient(value.dtype())) return;
  if (const Leaves::Leaf* leaf = leaves_.find(variable.identity())) {
    if (!leaf->value.is(value))
      throw TapeError("tape: parameter '" + variable.name() +
                      "' was assigned after this tape read it; take the last gradient without retain or create_graph, "
                      "which ends the tape, or read it with peek() or in a NewFrame");
    value.mark(id_, leaf->slot);
    return;
  }
  const std::uint32_t slot = new_slots(1);
  leaves_.add({variable.identity(), slot, Seen(value)});
  value.mark(id_, slot);
}

std::uint32_t TapeRecord::slot_of(const Variable& variable) {
  const Leaves::Leaf* leaf = leaves_.find(variable.identity());
  return leaf ? leaf->slot : 0;
}

Tensor TapeRecord::watch(const Tensor& x) {
  if (stopped())
    throw TapeError("watch: this tape ended with its gradient; make a new one, or pass retain to that gradient");
  if (!has_gradient(x.dtype())) throw DtypeError("watch: only floats have gradients, got " + x.spec().str());
  // A tensor on a tape outside a traced program enters it by an operation: marked as this tape's, it would be a
  // constant in the program.
  if (frame().tracing && x.tape_id() != 0 && slot_of(x) == 0) {
    Shape order;
    for (int k = 0; k < x.rank(); ++k) order.push_back(k);
    return watch(permute(x, order).unmarked());
  }
  const std::uint32_t from = slot_of(x);
  Tensor variable = x.unmarked();
  const std::uint32_t slot = new_slots(1);
  variable.mark(id_, slot);
  if (!from) return variable;
  // A variable watched again gets its own slot, so that an inner gradient sees only what depends on it from here on.
  Entry* e = new_entry();
  e->scope = frame().scope;
  e->in_slots = arena_.make<std::uint32_t>(1);
  e->in_slots[0] = from;
  e->in_specs = keep_specs(1, [&](std::size_t) { return x.spec(); });
  e->out_specs = e->in_specs;
  e->first_out = slot;
  return variable;
}

// ---- forward sweep: tangents over what a tape recorded ----------------------------------------------------

namespace {

Tensor added(const Tensor& total, const Tensor& more) {
  if (!total.defined()) return more;
  return more.defined() ? total + more : total;
}

/// Returns the tangents of an elementwise operation: its Jacobian is diagonal, so J v can be computed like J'v.
Tensors along_elements(const Primitive& op, const Jvp& j) {
  Tensor total;
  for (std::size_t i = 0; i < j.inputs(); ++i) {
    if (!j.tangent(i).defined()) continue;
    const Tensor along = expand(j.tangent(i), j.out_spec().shape);
    total = added(total, op.vjp(Vjp(j, {&along, 1}, std::uint64_t{1} << i))[i]);
  }
  return {total};
}

/// Returns the tangents of an operation that is jointly linear in its floats: the operation, applied to the tangents.
Tensors of_tangents(const Primitive& op, const Jvp& j) {
  Tensors in;
  for (std::size_t i = 0; i < j.inputs(); ++i)
    in.push_back(has_gradient(j.in_spec(i).dtype) ? j.tangent_or_zeros(i) : j.in(i));
  return op.apply(OperandList(in), j.attrs);
}

/// Returns the tangents of an operation that is linear in each operand: the sum over operands, each replaced by its
/// tangent.
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

/// Returns the tangents of any operation with a gradient: u -> J'u is linear, and the gradient of <J'u, t> by u is J t.
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
  // Entries are linked from the last one on: collect those that the results need, in that order.
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

// ---- the public functions: the record does the work -------------------------------------------------------

Tensors gradient_of_reference(const Primitive& op, const Vjp& v) {
  Tape tape;
  Tensors operands, variables;
  // Integers that a tape knows as results of an operation are wanted like others, but have no gradient.
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

/// A single backward walk over the entries of a record.
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
      // Entries before the oldest variable do not depend on any variable.
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
           g[i].shape() == shape ? std::move(g[i]) : sum_to(g[i], shape));  // the only place that undoes broadcasting
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
  PooledVector<Tensor> grads_;  ///< cotangents that have arrived, by slot
  PooledVector<char> keep_;     ///< slots whose cotangent is a result of the walk
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

/// Throws TapeError for a tensor that no tape saw: its gradient would be zeros, and training would do nothing.
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

/// Returns the cotangent of a differentiated tensor, 1 by default. Throws ShapeError if it does not fit.
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
