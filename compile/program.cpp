#include "ferrite/compile/detail/program.h"

#include <algorithm>

#include "ferrite/compile/graph/oracle.h"
#include "ferrite/compile/graph/pull_back.h"
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

/// A program as one operation on a tape: its arguments are those of the program and the cells it reads; its results are
/// those of the program, what it writes to cells, and what its gradient needs.
struct CompiledCall {
  static Specs infer(const Primitive&, Inputs, const Attrs& attrs) {
    const Graph& g = program_of(attrs).gradient().forward;
    Specs s;
    for (const ValueId v : g.outputs) s.push_back(g.values[v]);
    return s;
  }

  static std::int64_t multiply_adds(std::span<const Spec>, std::span<const Spec>, const Attrs& attrs) {
    return cost_of(program_of(attrs).gradient().forward).multiply_adds;
  }

  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    const Tensors ends = program_of(attrs).gradient().run->plan().evaluate(OperandList(in));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = ends[i];
  }

  static Tensors vjp(const Vjp& v) {
    const Program& p = program_of(v.attrs);
    const Program::Gradient& g = p.gradient();
    bool through_residuals = false;
    for (std::size_t k = g.results; k < v.outputs(); ++k) through_residuals |= v.grad(k).defined();
    if (through_residuals) return recomputed(*g.run, v);
    std::vector<Tensor> residuals;
    for (std::size_t k = g.results; k < v.outputs(); ++k) residuals.push_back(v.out(k));
    return pull_back(p, v, residuals);
  }

  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
    const std::vector<Dense> ends = evaluate_by_oracles(program_of(attrs).gradient().forward, in);
    for (std::size_t k = 0; k < out.size(); ++k) out[k].values = ends[k].values;
  }
  /// A product, a nonlinearity and a result that the gradient does not need.
  static std::span<const Sample> samples() {
    static const std::vector<Sample> all = [] {
      std::vector<Sample> list;
      for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
        const std::vector<Spec> in = {{{2, 3}, dtype}, {{3, 4}, dtype}, {{4}, dtype}};
        const auto f = [](const Tensors& x) {
          const Tensor y = tanh(matmul(x[0], x[1]) + x[2]);
          return Tensors{y, sum(y * y, {1}), y < 0};
        };
        Sample s{.inputs = in, .range = {-1, 1}};
        s.attrs.body = Program::make({trace(f, in), {}, {}}, {});
        list.push_back(std::move(s));
      }
      return list;
    }();
    return all;
  }

  /// Where a gradient of a gradient arrives at what the first one saved, the saved values are results like others: the
  /// program that gives them is differentiated instead, its own residuals computed anew.
  static Tensors recomputed(const Program& forward, const Vjp& v) {
    const Program::Gradient& g = forward.gradient();
    if (effects_of(g.forward).communicates)
      throw TapeError(
          "compiled: a gradient of this gradient would run the function again, which communicates; take both inside");
    std::vector<const Tensor*> arguments;
    for (std::size_t i = 0; i < v.inputs(); ++i) arguments.push_back(&v.in(i));
    const Tensors ends = g.run->apply(arguments);
    return pull_back(forward, v, std::vector<Tensor>(ends.begin() + g.results, ends.end()));
  }

  static Tensors pull_back(const Program& p, const Vjp& v, const std::vector<Tensor>& residuals) {
    const Program::Gradient& g = p.gradient();
    std::vector<bool> wants;
    for (const std::size_t i : g.wanted) wants.push_back(v.wants(i));
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < v.inputs(); ++i) arguments.push_back(v.in(i));
    arguments.insert(arguments.end(), residuals.begin(), residuals.end());
    for (const std::size_t k : g.cotangents) arguments.push_back(v.grad_or_zeros(k));
    const Tensors grads = p.backward(wants)->apply(pointers_to(arguments));
    Tensors all(v.inputs());
    std::size_t next = 0;
    for (std::size_t k = 0; k < g.wanted.size(); ++k)
      if (wants[k]) all[g.wanted[k]] = grads[next++];
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
                                 .oracle = CompiledCall::oracle,
                                 .samples = CompiledCall::samples,
                                 .multiply_adds = CompiledCall::multiply_adds,
                                 .takes_storage_types = true};

/// The values that a graph starts from, as one list of inputs: the cells it reads become arguments.
Graph closed(const Graph& g) {
  Graph c = g;
  for (const Graph::CellValue& r : g.reads) c.inputs.push_back(r.value);
  for (const Graph::CellValue& w : g.writes) c.outputs.push_back(w.value);
  c.cells.clear();
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
  for (const Cell& c : graph_.cells)
    if (c.tied()) return false;  // two cells of the program are one by now
  return true;
}

Tensors Program::apply(std::span<const Tensor* const> arguments) const {
  const Frame& now = frame();
  if (now.tracing) {
    std::vector<Tensor> in;
    for (const Tensor* t : arguments) in.push_back(*t);
    return replay(graph_, in);
  }
  if (now.recorders.empty()) return plan_.evaluate(arguments);
  Attrs attrs;
  attrs.body = shared_from_this();
  Tensors out = kCompiled.apply({arguments.data(), arguments.size()}, attrs);
  Tensors results;
  for (std::size_t i = 0; i < gradient().results; ++i) results.push_back(out[i]);
  return results;
}

/// The program and its gradients as one graph: inputs are arguments and cotangents, outputs results and gradients.
Graph Program::trace_gradient(Gradient& g) const {
  const Graph program = closed(graph_);
  g.results = program.outputs.size();
  Tracer tracer;
  const NewFrame frame(tracer);
  Tape tape;
  std::vector<Tensor> arguments, variables, cotangents;
  for (const ValueId v : program.inputs) {
    Tensor x = tracer.input(program.values[v]);
    if (has_gradient(x.dtype())) {
      x = tape.watch(x);
      variables.push_back(x);
      g.wanted.push_back(arguments.size());
    }
    arguments.push_back(x);
  }
  Tensors ends = replay(program, arguments);
  const Tensors results = ends;
  for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
    if (!has_gradient(results[k].dtype())) continue;
    cotangents.push_back(tracer.input({results[k].shape(), gradient_dtype(results[k].dtype())}));
    g.cotangents.push_back(k);
  }
  if (!cotangents.empty() && !variables.empty())
    for (const Tensor& d : pull_back(tape, results, cotangents, g.cotangents, variables)) ends.push_back(d);
  return tracer.finish(ends);
}

/// Cuts the joint graph in two: what depends on the cotangents, and what does not. What the second part reads of the
/// first is a residual.
void Program::cut(const Graph& joint, Gradient& g) {
  const std::size_t inputs = joint.inputs.size() - g.cotangents.size();
  std::vector<char> late(joint.values.size());
  std::vector<char> made(joint.values.size());
  for (std::size_t i = inputs; i < joint.inputs.size(); ++i) late[joint.inputs[i]] = true;
  g.forward = joint;
  g.forward.nodes.clear();
  g.forward.inputs.resize(inputs);
  g.backward = g.forward;
  for (const Graph::Node& n : joint.nodes) {
    bool depends = false;
    for (const ValueId v : n.in) depends |= late[v] != 0;
    for (const ValueId v : n.out) {
      late[v] = depends;
      made[v] = true;
    }
    (depends ? g.backward : g.forward).nodes.push_back(n);
  }
  g.forward.outputs.resize(g.results);
  g.backward.outputs.erase(g.backward.outputs.begin(),
                           g.backward.outputs.begin() + static_cast<std::ptrdiff_t>(g.results));
  std::vector<char> saved(joint.values.size());
  const auto save = [&](ValueId v) {
    if (late[v] || !made[v] || saved[v]) return;
    saved[v] = true;
    g.forward.outputs.push_back(v);
    g.backward.inputs.push_back(v);
  };
  for (const Graph::Node& n : g.backward.nodes)
    for (const ValueId v : n.in) save(v);
  for (const ValueId v : g.backward.outputs) save(v);
  g.backward.inputs.insert(g.backward.inputs.end(), joint.inputs.begin() + static_cast<std::ptrdiff_t>(inputs),
                           joint.inputs.end());
}

const Program::Gradient& Program::gradient() const {
  const std::lock_guard lock(mutex_);
  if (gradient_) return *gradient_;
  auto g = std::make_unique<Gradient>();
  Graph joint = trace_gradient(*g);
  passes::simplify(joint);
  cut(joint, *g);
  g->run = make({g->forward, {}, {}}, options_);
  gradient_ = std::move(g);
  return *gradient_;
}

std::shared_ptr<Program> Program::backward(const std::vector<bool>& wants) const {
  const Gradient& g = gradient();
  const std::lock_guard lock(mutex_);
  for (const Gradient::Variant& v : g.variants)
    if (v.wants == wants) return v.run;
  Graph b = g.backward;
  b.outputs.clear();
  for (std::size_t k = 0; k < wants.size(); ++k)
    if (wants[k]) b.outputs.push_back(g.backward.outputs[k]);
  gradient_->variants.push_back({wants, make({std::move(b), {}, {}}, options_)});
  return gradient_->variants.back().run;
}

}  // namespace ferrite::detail
