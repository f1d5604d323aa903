/// Compiled calls as operations on a tape, and the programs of their gradients.
#include "ferrite/compile/detail/program.h"

#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {
namespace {

const Program& program_of(const Attrs& attrs) { return static_cast<const Program&>(*attrs.body); }

std::vector<const Tensor*> pointers_to(const std::vector<Tensor>& list) {
  std::vector<const Tensor*> p;
  for (const Tensor& t : list) p.push_back(&t);
  return p;
}

}  // namespace

/// A program as one operation on a tape: its arguments are those of the program and the variables it reads; its results
/// are those of the program, what it writes to variables, and what its gradient needs.
struct CompiledCall {
  static Specs infer(const Primitive&, Inputs, const Attrs& attrs) {
    const Graph& g = program_of(attrs).recorded();
    Specs s;
    for (const ValueId v : g.outputs) s.push_back(g.values[v]);
    return s;
  }

  static std::int64_t multiply_adds(std::span<const Spec>, std::span<const Spec>, const Attrs& attrs) {
    return cost_of(program_of(attrs).recorded()).multiply_adds;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    const Tensors ends = program_of(attrs).gradient().forward->plan().evaluate(OperandList(in));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = ends[i];
  }

  static Tensors vjp(const Vjp& v) {
    const Program& p = program_of(v.attrs);
    const std::size_t results = v.outputs() - p.gradient().of.residuals();
    for (std::size_t k = results; k < v.outputs(); ++k)
      if (v.grad(k).defined()) return recomputed(*p.gradient().forward, v);
    std::vector<Tensor> residuals;
    for (std::size_t k = results; k < v.outputs(); ++k) residuals.push_back(v.out(k));
    return pull_back(p, v, residuals);
  }

  /// Where a gradient of a gradient arrives at what the first one saved, the saved values are results like others: the
  /// program that gives them is differentiated instead, its own residuals computed anew.
  static Tensors recomputed(const Program& p, const Vjp& v) {
    const Program& forward = *p.gradient().forward;
    if (effects_of(forward.graph()).communicates)
      throw TapeError(
          "compiled: a gradient of this gradient would run the function again, which communicates; take both inside");
    std::vector<const Tensor*> arguments;
    for (std::size_t i = 0; i < v.inputs(); ++i) arguments.push_back(&v.in(i));
    const Tensors ends = forward.apply(arguments);
    return pull_back(p, v, std::vector<Tensor>(ends.end() - p.gradient().of.residuals(), ends.end()));
  }

  static Tensors pull_back(const Program& p, const Vjp& v, std::vector<Tensor> operands) {
    for (std::size_t i = 0; i < v.inputs(); ++i) operands.push_back(v.in(i));
    std::vector<char> arriving, wanted;
    for (std::size_t k = 0; k < p.graph().outputs.size(); ++k) {
      arriving.push_back(v.grad(k).defined());
      if (arriving.back()) operands.push_back(v.grad(k));
    }
    for (std::size_t i = 0; i < v.inputs(); ++i) wanted.push_back(v.wants(i));
    const Tensors grads = p.backward(arriving, wanted)->apply(pointers_to(operands));
    Tensors all(v.inputs());
    std::size_t next = 0;
    for (std::size_t i = 0; i < v.inputs(); ++i)
      if (wanted[i] && has_gradient(v.in_spec(i).dtype)) all[i] = grads[next++];
    return all;
  }
};

namespace {

constexpr Primitive kCompiled = {.name = "compiled",
                                 .summary = "a compiled function",
                                 .arity = -1,
                                 .infer = CompiledCall::infer,
                                 .eval = CompiledCall::eval,
                                 .vjp = CompiledCall::vjp,
                                 .reads = reads_all,
                                 .multiply_adds = CompiledCall::multiply_adds,
                                 .takes_storage_types = true};

/// The values that a graph starts from, as one list of inputs: the variables it reads become arguments.
Graph closed(const Graph& g) {
  Graph c = g;
  for (const Graph::VariableValue& r : g.reads) c.inputs.push_back(r.value);
  for (const Graph::VariableValue& w : g.writes) c.outputs.push_back(w.value);
  c.variables.clear();
  c.reads.clear();
  c.writes.clear();
  return c;
}

}  // namespace

const Primitive& compiled_primitive() { return kCompiled; }

Program::Program(Traced traced, const PlanOptions& options)
    : graph_(std::move(traced.graph)),
      flags_(std::move(traced.flags)),
      variables_(std::move(traced.variables)),
      options_(options),
      plan_(graph_, options) {}

std::shared_ptr<Program> Program::make(Traced traced, const PlanOptions& options) {
  return std::shared_ptr<Program>(new Program(std::move(traced), options));
}

bool Program::fits(std::span<const Tensor* const> arguments, std::span<const void* const> variables) const {
  if (arguments.size() != graph_.inputs.size() || !std::ranges::equal(variables, variables_)) return false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Spec& s = graph_.values[graph_.inputs[i]];
    if (s.dtype != arguments[i]->dtype() || !(s.shape == arguments[i]->shape())) return false;
  }
  for (const TracedFlag& f : flags_)
    if (f.flag->load(std::memory_order_relaxed) != f.value) return false;
  for (const Variable& c : graph_.variables)
    if (c.tied()) return false;  // two variables of the program are one by now
  return true;
}

Tensors Program::apply(std::span<const Tensor* const> arguments) const {
  const Frame& now = frame();
  if (now.tracing) {
    std::vector<Tensor> in;
    for (const Tensor* t : arguments) in.push_back(*t);
    return replay(graph_, in);
  }
  if (now.recorders.empty()) {
    const ProfileEvent event(kCompiled.name, [&] { return now.scope; });
    return plan_.evaluate(arguments);
  }
  Attrs attrs;
  attrs.body = shared_from_this();
  Tensors out = kCompiled.apply({arguments.data(), arguments.size()}, attrs);
  Tensors results;
  for (std::size_t i = 0; i + gradient().of.residuals() < out.size(); ++i) results.push_back(out[i]);
  return results;
}

const Program::Gradient& Program::gradient() const {
  const std::lock_guard lock(mutex_);
  if (gradient_) return *gradient_;
  const Graph program = closed(graph_);
  GraphGradient of(program, std::vector<char>(program.inputs.size(), 1), graph_.outputs.size());
  auto forward = make({of.forward(), {}, {}}, options_);
  gradient_ = std::make_unique<Gradient>(Gradient{std::move(of), std::move(forward), {}});
  return *gradient_;
}

std::shared_ptr<Program> Program::backward(std::vector<char> arriving, std::vector<char> wanted) const {
  const Gradient& g = gradient();
  const std::lock_guard lock(mutex_);
  for (const Gradient::Backward& b : g.backward)
    if (b.arriving == arriving && b.wanted == wanted) return b.run;
  auto run = make({g.of.backward(arriving, wanted), {}, {}}, options_);
  gradient_->backward.push_back({std::move(arriving), std::move(wanted), run});
  return run;
}

}  // namespace ferrite::detail
