/// Compiled functions: which program runs a call.
#include "ferrite/compile/compile.h"

#include <list>
#include <mutex>

#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/no_plan.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/log.h"

namespace ferrite::detail {

struct Compilation::State {
  using List = std::list<std::shared_ptr<Program>>;  ///< the one used last first

  explicit State(const PlanOptions& o) : options(o) {}

  std::shared_ptr<Program> find(const Arguments& arguments) {
    const std::lock_guard lock(mutex);
    return find_locked(arguments);
  }

  /// Keeps a program, unless another thread has made its like meanwhile; gives the one that is kept.
  std::shared_ptr<Program> keep(std::shared_ptr<Program> made, const Arguments& arguments) {
    List dropped;  // ended without the lock
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

/// The program of a function for such arguments.
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

/// The call as one entry of the tapes that listen: parameters are read through them, variables written afterwards.
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
