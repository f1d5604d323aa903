/// Compiled functions: which program runs a call, and calls as operations on a tape.
#include "ferrite/compile/compile.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

// ---- calls as operations on a tape, and the programs of their gradients -----------------------------------

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

  /// Differentiates the program that computes the residuals instead, with residuals computed again. Needed when a
  /// gradient of a gradient arrives at residuals: then these are results like others.
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

/// Returns a graph without variables: the values that it reads become further inputs, those that it writes further
/// outputs.
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

// ---- calls ------------------------------------------------------------------------------------------------

struct Compilation::State {
  using List = std::list<std::shared_ptr<Program>>;  ///< most recently used first

  explicit State(const PlanOptions& o) : options(o) {}

  std::shared_ptr<Program> find(const Arguments& arguments) {
    const std::lock_guard lock(mutex);
    return find_locked(arguments);
  }

  /// Keeps a program, unless another thread has made an equal one meanwhile; returns the one that is kept.
  std::shared_ptr<Program> keep(std::shared_ptr<Program> made, const Arguments& arguments) {
    List dropped;  // destroyed without the lock
    {
      const std::lock_guard lock(mutex);
      if (std::shared_ptr<Program> other = find_locked(arguments)) return other;
      programs.push_front(made);
      newest = made;
      if (options.most_plans > 0 && programs.size() > options.most_plans)
        dropped.splice(dropped.begin(), programs, std::prev(programs.end()));
    }
    if (!dropped.empty() && log_enabled(LogLevel::info))
      log_info("compiled: more than " + std::to_string(options.most_plans) +
               " plans; the one not used for longest was dropped: pad arguments to fewer shapes, or raise "
               "PlanOptions::most_plans");
    return made;
  }

  std::shared_ptr<Program> last(const char* what) {
    const std::lock_guard lock(mutex);
    if (!newest) throw Error(std::string("compile: there is no ") + what + " before the first call");
    return newest;
  }

  const PlanOptions options;
  std::mutex mutex;
  List programs;
  std::shared_ptr<Program> newest;

 private:
  std::shared_ptr<Program> find_locked(const Arguments& arguments) {
    for (auto at = programs.begin(); at != programs.end(); ++at) {
      if (!(*at)->fits(arguments.tensors, arguments.variables)) continue;
      if (at != programs.begin()) programs.splice(programs.begin(), programs, at);
      return programs.front();
    }
    return nullptr;
  }
};

Compilation::Compilation(const PlanOptions& options) : state_(std::make_shared<State>(options)) {}

namespace {

/// Traces a function for such arguments.
Traced trace_function(const Compilation::Arguments& arguments, const Compilation::Body& f) {
  Tracer tracer;
  const NewFrame frame(tracer);
  Tensors in;
  for (const Tensor* t : arguments.tensors) in.push_back(tracer.input(t->spec()));
  const Tensors out = f(in);
  Traced t{tracer.finish(out), tracer.flags(), {}};
  t.variables.assign(arguments.variables.begin(), arguments.variables.end());
  return t;
}

std::shared_ptr<Program> make_program(const Compilation::Arguments& arguments, const Compilation::Body& f,
                                      const PlanOptions& options) {
  const ProfileEvent event("compile", frame().scope);
  std::shared_ptr<Program> p = Program::make(trace_function(arguments, f), options);
  if (log_enabled(LogLevel::debug)) log_debug("compiled: " + p->plan().report().str());
  return p;
}

/// Runs the call as one entry of the tapes that listen: parameters are read through them, variables written afterwards.
Tensors call_recorded(const Program& program, std::span<const Tensor* const> arguments) {
  const Graph& g = program.graph();
  std::vector<Tensor> variables;
  variables.reserve(g.reads.size());
  for (const Graph::VariableValue& r : g.reads) variables.push_back(g.variables[r.variable].value());
  std::vector<const Tensor*> all(arguments.begin(), arguments.end());
  for (const Tensor& t : variables) all.push_back(&t);
  const Tensors ends = program.apply(all);
  for (std::size_t i = 0; i < g.writes.size(); ++i)
    g.variables[g.writes[i].variable].assign(ends[g.outputs.size() + i]);
  Tensors outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(ends[i]);
  return outputs;
}

[[gnu::noinline]] Tensors run_profiled(const Program& program, std::span<const Tensor* const> arguments) {
  const ProfileEvent event(compiled_primitive().name, frame().scope);
  return program.plan().run(arguments);
}

}  // namespace

Tensors Compilation::call(const Arguments& arguments, const Body& f) const {
  const Frame& now = frame();
  const bool detecting = profiling() && detecting_anomalies();
  if (now.tracing || detecting) {  // part of the program being traced; the operations one by one
    Tensors in;
    for (const Tensor* t : arguments.tensors) in.push_back(*t);
    return f(in);
  }
  std::shared_ptr<Program> program = state_->find(arguments);
  if (!program) program = state_->keep(make_program(arguments, f, state_->options), arguments);
  if (!now.recorders.empty()) return call_recorded(*program, arguments.tensors);
  if (profiling()) [[unlikely]]
    return run_profiled(*program, arguments.tensors);
  return program->plan().run(arguments.tensors);
}

void Compilation::verify(const Arguments& arguments, const Body& f) const {
  const std::shared_ptr<Program> program = state_->find(arguments);
  if (!program) throw NoPlanError("compile: there is no plan for such arguments to verify; call the function first");
  const std::string difference = first_difference(program->graph(), trace_function(arguments, f).graph);
  if (!difference.empty())
    throw TraceError("compile: the function is no longer the one that was traced: " + difference +
                     "; make what has changed an argument or a variable");
}

std::size_t Compilation::plans() const {
  const std::lock_guard lock(state_->mutex);
  return state_->programs.size();
}

PlanReport Compilation::report() const { return state_->last("plan")->plan().report(); }

Graph Compilation::graph() const { return state_->last("program")->graph(); }

}  // namespace ferrite::detail
