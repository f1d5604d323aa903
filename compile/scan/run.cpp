/// Runs scans chunk by chunk and step by step, without allocations.
#include "ferrite/compile/scan/detail/run.h"

#include <cstring>

#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {
namespace {

constexpr std::int64_t kChunkBytes = 192 << 10;  ///< all values of a chunk together: they stay in the caches
constexpr std::int64_t kMostSteps = 256;

std::int64_t bytes_of(const Spec& s) { return s.shape.numel() * size_of(s.dtype); }

std::int64_t steps_at_once(const ScanParts& parts) {
  std::int64_t bytes = 1;
  for (const Spec& s : parts.chunks) bytes += bytes_of(s);
  return std::clamp<std::int64_t>(kChunkBytes / bytes, 1, kMostSteps);
}

using Kind = ScanPlace::Kind;

}  // namespace

ScanProgram::ScanProgram(const ScanBody& body)
    : body_(body), chunk_(steps_at_once(take_apart(body, 1))), parts_(take_apart(body, chunk_)) {
  if (!parts_.once.empty()) once_ = make_plan(parts_.once.graph, {});
  step_ = make_plan(parts_.step.graph, {}, PlanFor::steps);
  packable_ = packable_products(*step_, parts_.step);
}

ScanProgram::~ScanProgram() = default;

const ScanProgram::ChunkPlans& ScanProgram::plans(std::int64_t steps) const {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = plans_.try_emplace(steps);
  if (fresh) {
    ScanParts parts = take_apart(body_, steps);
    if (!parts.before.empty()) at->second.before = make_plan(std::move(parts.before.graph), {}, PlanFor::windows);
    if (!parts.after.empty()) at->second.after = make_plan(std::move(parts.after.graph), {}, PlanFor::windows);
  }
  return at->second;
}

std::vector<PackableProduct> packable_products(const PlanBody& step, const ScanStage& stage) {
  std::vector<PackableProduct> found;
  for (std::size_t c = 0; c < step.program.calls.size(); ++c) {
    const PlannedCall& call = step.program.calls[c];
    if (call.op != ops::matmul || call.in[0].spec.shape.rank() != 2) continue;
    const PlannedTensor& w = call.in[1];
    if (w.base < step.ends.bases.arguments || w.base >= step.ends.bases.constants || call.in[0].strides[1] != 1)
      continue;
    const ScanPlace& at = stage.in[w.base - step.ends.bases.arguments];
    if (at.kind != Kind::capture && at.kind != Kind::once) continue;
    found.push_back({c, at, w.spec.shape, w.strides, w.offset / size_of(w.spec.dtype), call.in[0].spec.shape[0]});
  }
  return found;
}

/// One run of a scan.
class ScanRun {
 public:
  ScanRun(const ScanProgram& p, Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse, ScanSums& sums)
      : p_(p),
        s_(p.body_.signature()),
        out_(out),
        steps_(steps),
        reverse_(reverse),
        operands_(in.size()),
        step_(*p.step_),
        sums_(sums) {
    for (std::size_t i = 0; i < in.size(); ++i) operands_[i] = dense(in[i]);
  }

  void run() {
    for (std::size_t k = 0; k < s_.carries; ++k) carries_.push_back(address_of(operands_[k]));
    if (steps_ > 0) run_steps();
    for (std::size_t k = 0; k < s_.carries; ++k) std::memcpy(Writer::raw(out_[k]), carries_[k].first, bytes(out_[k]));
  }

 private:
  /// An argument or a result of the step that moves from step to step.
  struct Moving {
    std::size_t base;
    ScanPlace place;
    std::int64_t stride;  ///< elements from step to step
  };
  /// A result of the step with no other place: two buffers take turns, because one is read while the other is written.
  struct Alternating {
    std::size_t base;
    Tensor buffers[2];
  };
  struct Copy {
    std::size_t from;  ///< the base it is copied from
    ScanPlace to;
    std::int64_t bytes;
  };

  static std::size_t bytes(const Tensor& t) { return static_cast<std::size_t>(t.numel() * size_of(t.dtype())); }
  Tensor& sum(std::size_t k) const { return out_[s_.carries + k]; }
  Tensor& y(std::size_t k) const { return out_[s_.carries + s_.sums + k]; }

  void run_steps() {
    if (p_.once_)
      once_ = run_once(*p_.once_, p_.parts_.once, [this](const ScanPlace& at) -> const Tensor& { return tensor(at); });
    for (const Spec& s : p_.parts_.chunks)
      chunks_.push_back(rewritten_tensor({with_steps(std::min(p_.chunk_, steps_), s.shape), s.dtype}));
    pack();
    place_step();
    const std::int64_t chunk = p_.chunk_;
    for (std::int64_t done = 0; done < steps_; done += chunk) {
      count_ = std::min(chunk, steps_ - done);
      first_ = reverse_ ? steps_ - done - count_ : done;
      const ScanProgram::ChunkPlans& plans = p_.plans(count_);
      if (plans.before) run_chunk(*plans.before, p_.parts_.before);
      for (std::int64_t i = 0; i < count_; ++i) step(reverse_ ? count_ - 1 - i : i);
      if (plans.after) run_chunk(*plans.after, p_.parts_.after);
      add_terms();
    }
  }

  const Tensor& tensor(const ScanPlace& at) const {
    switch (at.kind) {
      case Kind::carry: return operands_[at.index];
      case Kind::x: return operands_[s_.carries + at.index];
      case Kind::capture: return operands_[s_.carries + s_.xs + at.index];
      case Kind::once: return once_[at.index];
      case Kind::chunk: return chunks_[at.index];
      case Kind::y: break;
    }
    return y(at.index);
  }
  /// Returns the distance from one step of a value to the next, in elements; 0 if it is the same in all steps.
  std::int64_t stride(const ScanPlace& at) const {
    return at.kind == Kind::x || at.kind == Kind::y || at.kind == Kind::chunk ? tensor(at).strides()[0] : 0;
  }
  /// Returns the address of a value at a step of the present chunk; stacks among operands and results hold all steps.
  Address address(const ScanPlace& at, std::int64_t step, std::int64_t stride) const {
    if (at.kind == Kind::carry) return carries_[at.index];
    const Tensor& t = tensor(at);
    Address h = address_of(t);
    h.first += (at.kind == Kind::chunk ? step : first_ + step) * stride * size_of(t.dtype());
    return h;
  }

  /// Runs a plan over all steps of the present chunk.
  void run_chunk(const PlanBody& plan, const ScanStage& stage) const {
    const Borrowed w(plan);
    for (std::size_t i = 0; i < stage.in.size(); ++i)
      w->put(plan.ends.bases.arguments + i, address(stage.in[i], 0, stride(stage.in[i])));
    for (std::size_t o = 0; o < stage.out.size(); ++o)
      w->put(plan.ends.bases.results + plan.ends.of[o], address(stage.out[o], 0, stride(stage.out[o])));
    w->run_in_place();
    for (std::size_t o = 0; o < stage.out.size(); ++o) {  // one value may go to several places
      const Address to = address(stage.out[o], 0, stride(stage.out[o]));
      const std::byte* const from = w->data(plan.ends.bases.results + plan.ends.of[o]);
      if (to.first != from)
        std::memcpy(to.first, from,
                    static_cast<std::size_t>(bytes_of(plan.graph.values[plan.ends.results[plan.ends.of[o]]])));
    }
  }

  void pack() {
    if (p_.packable_.empty()) return;
    const ProfileEvent event("pack", Scope());
    for (const PackableProduct& c : p_.packable_) {
      const Tensor w = tensor(c.weights).view(c.shape, c.strides, c.offset);
      const bool pays = packing_pays(steps_ * ((c.rows + 7) / 8)) && can_pack(w);
      step_->pack(c.call, pays ? pack_matrix(w, packs_.emplace_back()) : PackedMatrix{});
    }
  }

  void place_step() {
    const ScanStage& stage = p_.parts_.step;
    const PlanBody& plan = *p_.step_;
    for (std::size_t i = 0; i < stage.in.size(); ++i) {
      const std::size_t base = plan.ends.bases.arguments + i;
      const std::int64_t by = stride(stage.in[i]);
      if (stage.in[i].kind == Kind::capture || stage.in[i].kind == Kind::once) {
        step_->put(base, address_of(tensor(stage.in[i])));
      } else {
        arguments_.push_back({base, stage.in[i], by});
      }
    }
    next_ = InlineVector<std::size_t, 4>(s_.carries);
    for (std::size_t r = 0; r < plan.ends.results.size(); ++r) place_result(r);
  }

  /// Decides where a result is written: into a stack among the results if there is one; else, if it is carried,
  /// alternately into two buffers; else into a chunk. Its other places get copies.
  void place_result(std::size_t r) {
    const ScanStage& stage = p_.parts_.step;
    const PlanBody& plan = *p_.step_;
    const std::size_t base = plan.ends.bases.results + r;
    const Spec& spec = plan.graph.values[plan.ends.results[r]];
    bool carried = false;
    const ScanPlace* to = nullptr;
    for (std::size_t o = 0; o < stage.out.size(); ++o) {
      if (plan.ends.of[o] != r) continue;
      const ScanPlace& at = stage.out[o];
      if (at.kind == Kind::carry) next_[at.index] = base;
      carried |= at.kind == Kind::carry;
      if (at.kind == Kind::y && (!to || to->kind != Kind::y)) to = &at;
      if (at.kind == Kind::chunk && !to) to = &at;
    }
    if (carried && to && to->kind == Kind::chunk) to = nullptr;
    if (to) results_.push_back({base, *to, stride(*to)});
    if (!to) alternating_.push_back({base, {rewritten_tensor(spec), rewritten_tensor(spec)}});
    for (std::size_t o = 0; o < stage.out.size(); ++o)
      if (plan.ends.of[o] == r && stage.out[o].kind != Kind::carry && &stage.out[o] != to)
        copies_.push_back({base, stage.out[o], bytes_of(spec)});
  }

  void step(std::int64_t i) {
    for (const Moving& m : arguments_) step_->put(m.base, address(m.place, i, m.stride));
    for (const Moving& m : results_) step_->put(m.base, address(m.place, i, m.stride));
    for (const Alternating& t : alternating_) step_->put(t.base, address_of(t.buffers[turn_]));
    turn_ ^= 1U;
    for (const auto& [k, to] : p_.parts_.carried)
      std::memcpy(address(to, i, stride(to)).first, carries_[k].first, bytes(operands_[k]));
    step_->run_in_place();
    for (const Copy& c : copies_)
      std::memcpy(address(c.to, i, stride(c.to)).first, step_->data(c.from), static_cast<std::size_t>(c.bytes));
    for (std::size_t k = 0; k < s_.carries; ++k) carries_[k] = step_->address(next_[k]);
  }

  void add_terms() {
    if (p_.parts_.terms.empty()) return;
    const ProfileEvent event("sums", Scope());
    for (std::size_t k = 0; k < p_.parts_.terms.size(); ++k) add_term(k);
  }
  void add_term(std::size_t k) {
    const ScanTerm& t = p_.parts_.terms[k];
    const std::int64_t by_a = t.a_width ? stride(t.a) : 0, by_b = stride(t.b);
    const std::byte* b = address(t.b, 0, by_b).first;
    const std::byte* a = t.a_width ? address(t.a, 0, by_a).first : nullptr;
    if (!reverse_) return sums_.add(k, a, b, count_ * t.rows);
    const std::int64_t bytes = size_of(sum(t.sum).dtype());
    for (std::int64_t i = count_ - 1; i >= 0; --i)
      sums_.add(k, a ? a + i * by_a * bytes : a, b + i * by_b * bytes, t.rows);
  }

  const ScanProgram& p_;
  const ScanSignature& s_;
  std::span<Tensor> out_;
  std::int64_t steps_;
  bool reverse_;
  InlineVector<Tensor, 16> operands_, once_, chunks_;
  InlineVector<Tensor, 4> packs_;
  Borrowed step_;
  ScanSums& sums_;
  InlineVector<Address, 4> carries_;
  InlineVector<std::size_t, 4> next_;  ///< by carry: base of the result that replaces it
  InlineVector<Moving, 16> arguments_, results_;
  InlineVector<Alternating, 4> alternating_;
  InlineVector<Copy, 4> copies_;
  std::int64_t first_ = 0, count_ = 0;  ///< first step and length of the present chunk
  unsigned turn_ = 0;
};

void ScanProgram::run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse) const {
  ScanSums sums(parts_.terms);
  run(in, out, steps, reverse, sums);
  const ScanSignature& s = body_.signature();
  sums.give(out.subspan(s.carries, s.sums));
}

void ScanProgram::run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse, ScanSums& sums) const {
  ScanRun(*this, in, out, steps, reverse, sums).run();
}

}  // namespace ferrite::detail
