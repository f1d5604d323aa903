/// Scans that stay open between their steps: one plan for a whole step, bound to its buffers once.
#include "ferrite/compile/open_scan.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan/detail/operation.h"
#include "ferrite/compile/scan/detail/run.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/reserve.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

/// The traced body, its captures and its plans, shared by all copies of an open scan.
struct OpenScan::Program {
  std::shared_ptr<const ScanBody> body;
  std::vector<Tracer::Capture> captures;
  ScanParts parts;  ///< all but `once` in `step`
  std::unique_ptr<const PlanBody> once, step;
  std::vector<PackableProduct> packable;

  Program(Graph graph, const ScanSignature& signature, std::vector<Tracer::Capture> outside)
      : body(std::make_shared<const ScanBody>(std::move(graph), signature)),
        captures(std::move(outside)),
        parts(take_apart(*body, 0)) {
    if (!parts.once.empty()) once = make_plan(parts.once.graph, {});
    step = make_plan(parts.step.graph, {}, PlanFor::steps);
    packable = packable_products(*step, parts.step);
  }
};

/// A plan bound to its buffers.
struct OpenScan::Bound {
  using Kind = ScanPlace::Kind;
  struct Carry {
    Tensor now, next;
    std::size_t argument = 0;  ///< its base; 0: no step reads it
    std::size_t result = 0;    ///< base of the result that becomes the next carry
    bool owner = true;         ///< the result is computed in `next`; else it is copied there
  };

  explicit Bound(std::shared_ptr<const Program> of) : p(std::move(of)), step(*p->step) {
    const ScanSignature& s = p->body->signature();
    for (std::size_t k = 0; k < s.carries; ++k)
      carries.push_back({zeroed(p->body->input(k)), zeroed(p->body->input(k))});
    for (std::size_t k = 0; k < s.xs; ++k) xs.push_back(zeroed(p->body->input(s.carries + k)));
    bind();
    for (const Kernel& k : p->step->program.kernels) k.reserve(memory);
  }
  /// Copies the values of another one into separate buffers.
  Bound(const Bound& o) : Bound(o.p) {
    captured = o.captured, once = o.once, packs = o.packs, matrices = o.matrices;
    place_snapshot();
    measure();
    for (std::size_t k = 0; k < carries.size(); ++k)
      std::memcpy(Writer::raw(carries[k].now), o.carries[k].now.raw(), bytes(carries[k].now));
    for (std::size_t k = 0; k < xs.size(); ++k) std::memcpy(Writer::raw(xs[k]), o.xs[k].raw(), bytes(xs[k]));
  }

  /// Returns zeros in memory whose elements change, so that nothing stored in it may be packed.
  static Tensor zeroed(const Spec& s) {
    Tensor t = rewritten_tensor(s);
    std::memset(Writer::raw(t), 0, bytes(t));
    return t;
  }
  static std::size_t bytes(const Tensor& t) { return static_cast<std::size_t>(t.numel() * size_of(t.dtype())); }

  void bind() {
    const ScanStage& stage = p->parts.step;
    const PlanBody& plan = *p->step;
    for (std::size_t i = 0; i < stage.in.size(); ++i) {
      const std::size_t base = plan.ends.bases.arguments + i;
      if (stage.in[i].kind == Kind::carry) carries[stage.in[i].index].argument = base;
      if (stage.in[i].kind == Kind::x) step.put(base, address_of(xs[stage.in[i].index]));
    }
    ys.resize(p->body->ys());
    for (std::size_t r = 0; r < plan.ends.results.size(); ++r) bind_result(r);
    for (const auto& [carry, to] : p->parts.carried) ys[to.index] = {0, carry};
  }

  /// Binds a result to the buffer from which the next step reads it as a carry, else to a separate buffer.
  void bind_result(std::size_t r) {
    const ScanStage& stage = p->parts.step;
    const PlanBody& plan = *p->step;
    const std::size_t base = plan.ends.bases.results + r;
    bool carried = false;
    for (std::size_t o = 0; o < stage.out.size(); ++o) {
      if (plan.ends.of[o] != r) continue;
      const ScanPlace& at = stage.out[o];
      if (at.kind == Kind::y) ys[at.index] = {base, 0};
      if (at.kind != Kind::carry) continue;
      carries[at.index].result = base;
      carries[at.index].owner = !carried;
      carried = true;
    }
    if (carried) return;
    outputs.push_back(zeroed(plan.graph.values[plan.ends.results[r]]));
    step.put(base, address_of(outputs.back()));
  }

  void refresh() {
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < p->captures.size(); ++i) {
      const Tracer::Capture& c = p->captures[i];
      values.push_back(dense(c.variable.defined() ? c.variable.peek() : c.tensor));
    }
    if (p->once)
      once = run_once(*p->once, p->parts.once, [&](const ScanPlace& at) -> const Tensor& { return values[at.index]; });
    captured = std::move(values);
    packs.assign(p->packable.size(), Tensor());
    matrices.clear();
    for (std::size_t i = 0; i < p->packable.size(); ++i) {
      const PackableProduct& c = p->packable[i];
      const Tensor w = outside(c.weights).view(c.shape, c.strides, c.offset);
      matrices.push_back(can_pack(w) ? pack_matrix(w, packs[i]) : PackedMatrix{});
    }
    place_snapshot();
  }

  const Tensor& outside(const ScanPlace& at) const {
    return at.kind == Kind::once ? once[at.index] : captured[at.index];
  }
  void place_snapshot() {
    for (std::size_t i = 0; i < matrices.size(); ++i) step.pack(p->packable[i].call, matrices[i]);
    const ScanStage& stage = p->parts.step;
    for (std::size_t i = 0; i < stage.in.size(); ++i)
      if (stage.in[i].kind == Kind::capture || stage.in[i].kind == Kind::once)
        step.put(p->step->ends.bases.arguments + i, address_of(outside(stage.in[i])));
  }

  void place_carries() {
    for (const Carry& c : carries) {
      if (c.argument) step.put(c.argument, address_of(c.now));
      if (c.owner) step.put(c.result, address_of(c.next));
    }
  }
  void run() {
    const LendKernelMemory lent(memory);
    place_carries();
    step.run_in_place();
    for (Carry& c : carries)
      if (!c.owner) std::memcpy(Writer::raw(c.next), step.data(c.result), bytes(c.next));
  }

  /// Runs the calls of a step, whatever they compute, to learn what memory they ask for: later steps ask for none, on
  /// whatever thread they run. Does nothing if other ranks would have to take part.
  void measure() {
    if (effects_of(p->body->graph()).communicates) return;
    const Reserve::Open open(asked);
    const LendKernelMemory lent(memory);
    place_carries();
    step.try_in_place();
  }

  void commit() {
    for (Carry& c : carries) std::swap(c.now, c.next);
  }

  struct Y {
    std::size_t base = 0;  ///< base of a result; 0: a carry as the step reads it
    std::size_t carry = 0;
  };

  std::shared_ptr<const Program> p;
  Workspace step;
  KernelMemory memory;
  Reserve asked;  ///< memory that operations ask the pool for
  std::vector<Carry> carries;
  std::vector<Tensor> xs, outputs;
  std::vector<Y> ys;
  std::vector<Tensor> captured, packs;  ///< the snapshot of captures, and packs of it
  InlineVector<Tensor, 16> once;
  std::vector<PackedMatrix> matrices;  ///< by packable product: its packed weights
};

OpenScan::OpenScan(const ScanBodyFunction& body, std::span<const Spec> carries, std::span<const Spec> xs,
                   const Substitute& substitute) {
  TracedStep t = trace_step(body, carries, xs);
  if (substitute)
    for (Tracer::Capture& c : t.captures)
      if (c.variable.defined()) c.variable = substitute(c.variable);
  bound_ = std::make_unique<Bound>(std::make_shared<const Program>(
      std::move(t.graph), ScanSignature{carries.size(), xs.size(), 0}, std::move(t.captures)));
  bound_->refresh();
  bound_->measure();
}

OpenScan::OpenScan(const OpenScan& o) : bound_(std::make_unique<Bound>(*o.bound_)) {}

OpenScan::~OpenScan() = default;

bool OpenScan::may_fail() const {
  const Effects effects = effects_of(bound_->p->body->graph());
  return effects.throws || effects.communicates;
}

std::size_t OpenScan::carries() const { return bound_->carries.size(); }

const Spec& OpenScan::y_spec(std::size_t k) const {
  return bound_->p->body->output(bound_->p->body->signature().carries + k);
}

std::byte* OpenScan::x(std::size_t k) { return address_of(bound_->xs[k]).first; }
const std::byte* OpenScan::y(std::size_t k) const {
  const Bound::Y& y = bound_->ys[k];
  return y.base ? bound_->step.data(y.base) : carry(y.carry);
}
std::byte* OpenScan::carry(std::size_t k) { return address_of(bound_->carries[k].now).first; }
const std::byte* OpenScan::carry(std::size_t k) const { return address_of(bound_->carries[k].now).first; }

void OpenScan::run() {
  if (bound_->asked.empty()) return bound_->run();
  const Reserve::Open open(bound_->asked);
  bound_->run();
}
void OpenScan::commit() { bound_->commit(); }
void OpenScan::refresh() { bound_->refresh(); }

}  // namespace ferrite::detail
