/// Recording of applications, and the backward walk that computes gradients.
#include "ferrite/autograd/detail/tape_record.h"

#include <atomic>
#include <bit>

namespace ferrite::detail {
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

/// Entries are ended one after another, last first: a long chain of results never recurses.
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
  // What stands on a tape outside a traced program enters it by an operation: marked as this tape's, it would be a
  // constant there.
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
  // A variable inside a variable: its own slot, so that an inner gradient sees only what depends on it here.
  Entry* e = new_entry();
  e->scope = frame().scope;
  e->in_slots = arena_.make<std::uint32_t>(1);
  e->in_slots[0] = from;
  e->in_specs = keep_specs(1, [&](std::size_t) { return x.spec(); });
  e->out_specs = e->in_specs;
  e->first_out = slot;
  return variable;
}

}  // namespace ferrite::detail
