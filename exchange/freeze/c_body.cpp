/// Gives values their places and writes the steps of a program in order.
#include "ferrite/exchange/freeze/c_body.h"

#include <algorithm>
#include <optional>

#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

/// Calls f for each value that a step writes.
template <class F>
void each_result(const LoweredStep& s, const F& f) {
  if (!s.is_loop) {
    for (const LoweredWindow& w : s.out) f(w.value);
    return;
  }
  for (const LoweredInstruction& i : s.loop.instructions)
    if (i.step == LoweredInstruction::Step::store || i.step == LoweredInstruction::Step::across)
      f(s.loop.accesses[i.access].value);
}
template <class F>
void each_operand(const LoweredStep& s, const F& f) {
  if (!s.is_loop) {
    for (const LoweredWindow& w : s.in) f(w.value);
    return;
  }
  for (const LoweredInstruction& i : s.loop.instructions)
    if (i.step == LoweredInstruction::Step::load) f(s.loop.accesses[i.access].value);
}

}  // namespace

std::int64_t CWork::bytes() const {
  std::int64_t all = 0;
  for (const auto& [dtype, n] : elements) all += n * std::max<std::int64_t>(size_of(dtype), 4);
  return all;
}

void CWork::widen(const CWork& other) {
  for (const auto& [dtype, n] : other.elements) elements[dtype] = std::max(elements[dtype], n);
}
void CWork::write_members(CText& to) const {
  for (const auto& [dtype, n] : elements)
    if (n > 0) to.line(std::string(c_type(dtype)) + " " + name(dtype) + "[" + std::to_string(n + kPastEnd) + "];");
}
void CWork::write_names(CText& to, bool on_the_stack) const {
  for (const auto& [dtype, n] : elements) {
    if (n == 0) continue;
    const std::string type(c_type(dtype));
    to.line(on_the_stack ? type + " " + name(dtype) + "[" + std::to_string(n + kPastEnd) + "] NF_ALIGNED;"
                         : type + " *const " + name(dtype) + " = n->" + name(dtype) + ";");
  }
}

std::string CWork::name(Dtype dtype) {
  if (dtype == Dtype::f32) return "work_f";
  if (dtype == Dtype::f64) return "work_d";
  if (dtype == Dtype::i32) return "work_i";
  return dtype == Dtype::i64 ? "work_l" : "work_m";
}

namespace {

/// Notes the types of all numbers of a graph and of the bodies of its loops.
void note_types(CModule& module, const Graph& g) {
  for (const Spec& s : g.values)
    if (is_float(s.dtype)) module.has(s.dtype);
  for (const Graph::Node& n : g.nodes)
    if (const auto* body = dynamic_cast<const ferrite::detail::Body*>(n.attrs.body.get()))
      note_types(module, body->graph());
}

}  // namespace

CBody::CBody(CModule& module, const FrozenProgram& program)
    : module_(module), frozen_(program), program_(program.lowered) {
  note_types(module, program_.graph);
  for (const Graph::Node& n : program_.graph.nodes)
    for (const ValueId v : n.out)
      if (is_storage_only(spec(v).dtype)) refuse(n, std::string(name_of(spec(v).dtype)) + " is only stored");
  find_constants();
  find_column_products();
  if (lanes())
    for (const auto& [v, windows] : frozen_.joined) unwritten_.insert(v);
}

namespace {

constexpr std::int64_t kMostTerms = 256, kMostColumns = 1024;

/// Returns the product of a step if it is one row by a row-major matrix.
std::optional<ColumnProduct> row_product(const LoweredStep& s) {
  if (s.is_loop || s.node->op->name != "matmul" || !is_float(s.out[0].spec.dtype)) return {};
  const LoweredWindow &a = s.in[0], &b = s.in[1];
  if (a.spec.shape.rank() < 2 || b.spec.shape.rank() != 2 || a.spec.shape.numel() != a.spec.shape[-1]) return {};
  const ColumnProduct p{a, b, b.spec.shape[0], b.spec.shape[1]};
  const bool dense = (p.terms == 1 || a.strides[-1] == 1) && (p.columns == 1 || b.strides[-1] == 1) &&
                     (p.terms == 1 || b.strides[-2] == p.columns);
  const bool fits = dense && p.terms <= kMostTerms && p.columns <= kMostColumns;
  return fits ? std::optional(p) : std::nullopt;
}

/// Returns whether a loop may compute products of columns: one axis, without reductions, floats of one type.
bool takes_products(const LoweredProgram& program, const LoweredLoop& l) {
  if (l.extents.rank() != 1 || l.reduced || l.across != LoweredLoop::Across::none) return false;
  for (const LoweredSlot& s : l.slots)
    if (!is_float(s.dtype) || s.dtype != l.slots[0].dtype) return false;
  return std::ranges::all_of(
      l.accesses, [&](const LoweredAccess& a) { return a.whole && is_float(program.graph.values[a.value].dtype); });
}

}  // namespace

void CBody::find_column_products() {
  std::map<ValueId, ColumnProduct> products;
  std::map<ValueId, std::set<std::size_t>> readers;
  for (std::size_t k = 0; k < program_.steps.size(); ++k) {
    const LoweredStep& s = program_.steps[k];
    if (const auto p = row_product(s)) products.emplace(s.out[0].value, *p);
    each_operand(s, [&](ValueId v) { readers[v].insert(k), ++reads_[v]; });
  }
  for (const ValueId v : program_.graph.outputs) products.erase(v);
  for (const auto& [v, product] : products) {
    if (readers[v].size() != 1) continue;
    const LoweredStep& reader = program_.steps[*readers[v].begin()];
    if (!reader.is_loop || !takes_products(program_, reader.loop)) continue;
    const bool whole = std::ranges::all_of(reader.loop.accesses, [&, result = v](const LoweredAccess& a) {
      return a.value != result || a.strides[0] == 1 || reader.loop.extents[0] == 1;
    });
    if (!whole) continue;
    ColumnProduct& p = column_products_.emplace(v, product).first->second;
    if (frozen_.joined.contains(p.a.value) && readers[p.a.value].size() == 1) split_past(p);
    if (!lay_out(p, reader.loop)) column_products_.erase(v);
  }
}

/// Chooses the layout of a product's weights, so that vectors of columns are aligned; returns false if the product is
/// better computed before the loop that reads it, because its vectors then have fewer empty lanes.
bool CBody::lay_out(ColumnProduct& p, const LoweredLoop& reader) const {
  const std::int64_t n = reader.extents[0], lanes = most_lanes_of(spec(p.b.value).dtype);
  if (p.terms <= ColumnProduct::kFewTerms || n % lanes == 0 || p.columns % n != 0) return true;
  if (!p.past.empty() || !own_constant(p.b)) return true;
  for (const LoweredAccess& a : reader.accesses)
    if (column_product(a.value) == &p && a.offset % n != 0) return true;
  const std::int64_t all_parts = p.columns / n * whole_vectors(n, lanes);
  if (n > 2 * lanes && whole_vectors(p.columns, lanes) < all_parts) return false;
  if (p.terms * all_parts * size_of(spec(p.b.value).dtype) <= ColumnProduct::kAlignedBytes) p.row = n;
  return true;
}
const Tensor* CBody::own_constant(const LoweredWindow& w) const {
  const auto at = constants_.find(w.value);
  if (at == constants_.end() || module_.shares_constants() || reads_.at(w.value) != 1) return nullptr;
  if (std::ranges::find(program_.graph.outputs, w.value) != program_.graph.outputs.end()) return nullptr;
  return w.offset == 0 && w.spec.shape.numel() == at->second.numel() ? &at->second : nullptr;
}

/// Lets a product of a concatenation read past frames where they lie, and its last window where that lies.
void CBody::split_past(ColumnProduct& p) {
  const std::vector<LoweredWindow>& windows = frozen_.joined.at(p.a.value);
  const auto is_past = [this](const LoweredWindow& w) {
    return std::ranges::any_of(frozen_.states, [&](const FrozenState& s) {
      if (s.keeping != Keeping::line) return false;
      if (w.value == s.now) return true;
      // Frames of the whole line before those that the step appends; channel by channel, all of them in the first one.
      const std::int64_t last = w.offset + (w.spec.shape[1] - 1) * (s.channel ? 0 : w.strides[1]);
      const std::int64_t end = s.spec.shape[0] * (s.channel ? 1 : s.frame);
      return w.value == s.next && last < end && (!s.channel || w.strides[1] == s.channel || w.spec.shape[1] == 1);
    });
  };
  const LoweredWindow& last = windows.back();
  if (!std::all_of(windows.begin(), windows.end() - 1, is_past)) return;
  if (last.spec.shape[1] > 1 && last.strides[1] != 1) return;
  unwritten_.insert(p.a.value);
  p.past.assign(windows.begin(), windows.end() - 1);
  p.past_terms = p.terms - last.spec.shape[1];
  p.terms = last.spec.shape[1];
  p.a = last;
  p.b.offset += p.past_terms * p.columns;
}
const std::vector<LoweredWindow>* CBody::joined(ValueId v) const {
  return unwritten_.contains(v) ? &frozen_.joined.at(v) : nullptr;
}
bool CBody::is_unwritten(const LoweredStep& s) const {
  bool unwritten = false;
  if (s.is_loop) each_result(s, [&](ValueId v) { unwritten = unwritten || unwritten_.contains(v); });
  return unwritten;
}
/// Returns the products with past frames that a step reads.
std::vector<ValueId> CBody::past_products(const LoweredStep& s) const {
  std::vector<ValueId> all;
  each_operand(s, [&](ValueId v) {
    const auto at = column_products_.find(v);
    const bool past = at != column_products_.end() && !at->second.past.empty();
    if (past && std::ranges::find(all, v) == all.end()) all.push_back(v);
  });
  return all;
}
/// Writes the sums over past frames of a product.
void CBody::write_past(ValueId v, CText& to) {
  ColumnProduct& p = column_products_.at(v);
  const Dtype dtype = spec(v).dtype;
  const std::int64_t n = p.columns + (p.columns > 64 ? 128 : 0), first = take(dtype, n);
  starts_[v] = {first, n};
  p.start = CWork::name(dtype) + (first ? " + " + std::to_string(first) : "");
  ColumnProduct all = p;
  all.b.offset -= p.past_terms * p.columns;
  write_past_sums(*this, all, to);
}
/// Writes the sums that the next steps read. They wait for nothing, so that a processor computes them while it waits
/// for the results of the steps before.
void CBody::write_past_ahead(std::size_t step, CText& to) {
  int ahead = 0;
  for (std::size_t s = step; s < program_.steps.size() && ahead < kShortAhead; ++s)
    for (const ValueId v : past_products(program_.steps[s])) {
      const bool is_short = column_products_.at(v).past_terms <= kShortTerms;
      if (!starts_.contains(v) && ahead < (is_short ? kShortAhead : kAhead)) write_past(v, to);
      ++ahead;
    }
}

const ColumnProduct* CBody::column_product(ValueId v) const {
  const auto at = column_products_.find(v);
  return at == column_products_.end() ? nullptr : &at->second;
}
bool CBody::multiplies(const LoweredLoop& loop, ValueId v) const {
  return std::ranges::any_of(loop.accesses, [&](const LoweredAccess& a) {
    const ColumnProduct* const p = column_product(a.value);
    return p && (p->a.value == v || p->b.value == v);
  });
}

CBody::CBody(CBody& outer, const FrozenProgram& program) : CBody(outer.module_, program) { outer_ = &outer; }

void CBody::find_constants() {
  for (const Graph::Constant& c : program_.graph.constants) constants_.emplace(c.value, c.tensor);
}

const CPlace& CBody::place_of(ValueId v) const {
  if (constants_.contains(v)) place_constant(v);
  if (!places_.contains(v) && spec(v).shape.numel() == 0)  // no step makes it
    places_[v] = {module_.constant(zeros(spec(v).shape, spec(v).dtype), "nothing"), CPlace::kAnyRoom};
  return places_.at(v);
}

std::string CBody::at(ValueId v, std::int64_t offset) const {
  const std::string& first = place_of(v).first;
  return offset == 0 ? first : first + " + " + std::to_string(offset);
}

void CBody::refuse(const Graph::Node& n, std::string_view why) const {
  ExportError e("freeze: no C for " + std::string(n.op->name) + ": " + std::string(why));
  if (!n.scope.empty()) e.set_layer(n.scope.path());
  throw e;
}

std::int64_t CBody::take(Dtype dtype, std::int64_t n) {
  if (outer_) return outer_->take(dtype, n);
  n = whole_vectors(n);
  std::vector<Hole>& holes = free_[dtype];
  auto best = holes.end();
  for (auto h = holes.begin(); h != holes.end(); ++h)
    if (h->size >= n && (best == holes.end() || h->size < best->size)) best = h;
  std::int64_t& end = work_.elements[dtype];
  if (best == holes.end()) {  // grows the last hole, if it ends where the memory ends
    const auto last = std::ranges::find_if(holes, [&](const Hole& h) { return h.first + h.size == end; });
    const std::int64_t first = last == holes.end() ? end : last->first;
    if (last != holes.end()) holes.erase(last);
    end = first + n;
    return first;
  }
  const std::int64_t first = best->first;
  best->first += n, best->size -= n;
  if (best->size == 0) holes.erase(best);
  return first;
}

void CBody::give(Dtype dtype, std::int64_t first, std::int64_t n) {
  if (outer_) return outer_->give(dtype, first, n);
  std::vector<Hole>& holes = free_[dtype];
  Hole all{first, whole_vectors(n)};
  for (auto h = holes.begin(); h != holes.end();) {
    const bool before = h->first + h->size == all.first, after = all.first + all.size == h->first;
    if (before) all.first = h->first;
    if (before || after) all.size += h->size;
    h = before || after ? holes.erase(h) : h + 1;
  }
  holes.push_back(all);
}

std::string CBody::scratch(Dtype dtype, std::int64_t n) {
  n = std::max<std::int64_t>(n, 1);
  const std::int64_t first = take(dtype, n);
  scratch_.push_back({first, n});
  scratch_types_.push_back(dtype);
  return CWork::name(dtype) + (first ? " + " + std::to_string(first) : "");
}

void CBody::place_constant(ValueId v) const {
  if (places_.contains(v)) return;
  Tensor values = constants_.at(v);
  for (const auto& [product, p] : column_products_)
    if (p.b.value == v && p.row > 0) {
      const std::string wide = wide_of(values.dtype(), p.row);
      const std::string behind = " + (NF_VECTOR_BYTES > 0 ? NF_BEHIND / " + wide + " : 0) + 1";
      places_[v] = {module_.rows(values, p.row, behind, "constant"), CPlace::kAnyRoom};
      return;
    }
  const bool whole = std::ranges::find(program_.graph.outputs, v) != program_.graph.outputs.end();
  for (int k = values.rank(); !whole && is_repeated(constants_.at(v)) && k > 0; --k) values = select(values, 0, 0);
  places_[v] = {module_.constant(values, "constant"), CPlace::kAnyRoom};
}

void CBody::find_last_uses() {
  last_use_.assign(program_.graph.values.size(), 0);
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const auto touch = [&](ValueId v) { last_use_[v] = s; };
    each_operand(program_.steps[s], [&](ValueId v) {
      touch(v);
      if (const ColumnProduct* const p = column_product(v)) touch(p->a.value), touch(p->b.value);
      if (const std::vector<LoweredWindow>* const windows = joined(v))
        for (const LoweredWindow& w : *windows) touch(w.value);
    });
    each_result(program_.steps[s], touch);
  }
  for (const ValueId v : program_.graph.outputs) last_use_[v] = program_.steps.size();  // read after all steps
}

void CBody::place_results(const LoweredStep& s, std::size_t) {
  each_result(s, [&](ValueId v) {
    if (has_place(v) || column_product(v) || unwritten_.contains(v)) return;
    const Spec& spec = this->spec(v);
    const std::int64_t first = take(spec.dtype, std::max<std::int64_t>(spec.shape.numel(), 1));
    offsets_[v] = first;
    place(v, {CWork::name(spec.dtype) + (first ? " + " + std::to_string(first) : ""), CPlace::kAnyRoom});
  });
}

void CBody::free_operands(std::size_t step) {
  for (std::size_t k = 0; k < scratch_.size(); ++k) give(scratch_types_[k], scratch_[k].first, scratch_[k].size);
  scratch_.clear(), scratch_types_.clear();
  for (auto at = offsets_.begin(); at != offsets_.end();) {
    if (last_use_[at->first] > step) {
      ++at;
      continue;
    }
    const Spec& spec = this->spec(at->first);
    give(spec.dtype, at->second, std::max<std::int64_t>(spec.shape.numel(), 1));
    at = offsets_.erase(at);
  }
}

/// Writes the name of the layer that a step belongs to, unless the step before belongs to it, too.
void CBody::write_layer(const LoweredStep& s, Scope& before, CText& to) const {
  const Graph::Node* node = s.node;
  for (const LoweredInstruction& i : s.loop.instructions)
    if (!node && i.node) node = i.node;
  if (!node || node->scope == before) return;
  before = node->scope;
  if (!before.empty()) to.line("/* " + c_comment(before.path()) + " */");
}

void CBody::write(CText& appends, CText& rest) {
  find_constants();
  find_last_uses();
  Scope layer;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const LoweredStep& step = program_.steps[s];
    const bool first = !step.is_loop && step.node->op->name == "append_frames";
    const std::vector<ValueId> past = past_products(step);
    if (s == 0 || !past.empty()) write_past_ahead(s, rest);
    place_results(step, s);
    write_layer(step, layer, first ? appends : rest);
    write_step(step, first ? appends : rest);
    free_operands(s);
    for (const ValueId v : past) give(spec(v).dtype, starts_.at(v).first, starts_.at(v).size);
  }
  free_operands(program_.steps.size());
}

void CBody::write_step(const LoweredStep& s, CText& to) {
  if (is_unwritten(s)) return;
  if (s.is_loop) return write_loop(*this, s.loop, to);
  if (!column_product(s.out[0].value)) write_call(*this, s, to);
}

}  // namespace ferrite::exchange::detail
