#include "ferrite/compile/compile.h"

#include <mutex>

#include "ferrite/compile/detail/program.h"
#include "ferrite/tensor/log.h"

namespace ferrite::detail {

struct Compilation::State {
  explicit State(const PlanOptions& o) : options(o) {}

  std::shared_ptr<Program> find(std::span<const Tensor* const> arguments) {
    for (const std::shared_ptr<Program>& p : programs)
      if (p->fits(arguments)) return p;
    return nullptr;
  }

  const PlanOptions options;
  std::mutex mutex;
  std::vector<std::shared_ptr<Program>> programs;
};

Compilation::Compilation(const PlanOptions& options) : state_(std::make_shared<State>(options)) {}

namespace {

std::shared_ptr<Program> trace_program(std::span<const Tensor* const> arguments, const Compilation::Body& f,
                                       const PlanOptions& options) {
  Tracer tracer;
  const NewFrame frame(tracer);
  Tensors in;
  for (const Tensor* t : arguments) in.push_back(tracer.input(t->spec()));
  const Tensors out = f(in);
  std::shared_ptr<Program> p = Program::make(tracer.finish(out), tracer.flags(), options);
  if (log_enabled(LogLevel::debug)) log_debug("compiled: " + p->plan().report().str());
  return p;
}

/// The call as one entry of the tapes that listen: parameters are read through them, cells written afterwards.
Tensors call_recorded(const Program& program, std::span<const Tensor* const> arguments) {
  const Graph& g = program.graph();
  std::vector<Tensor> cells;
  cells.reserve(g.reads.size());
  for (const Graph::CellValue& r : g.reads) cells.push_back(g.cells[r.cell].value());
  std::vector<const Tensor*> all(arguments.begin(), arguments.end());
  for (const Tensor& t : cells) all.push_back(&t);
  const Tensors ends = program.apply(all);
  for (std::size_t i = 0; i < g.writes.size(); ++i) g.cells[g.writes[i].cell].assign(ends[g.outputs.size() + i]);
  Tensors outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(ends[i]);
  return outputs;
}

}  // namespace

Tensors Compilation::call(std::span<const Tensor* const> arguments, const Body& f) const {
  const Frame& now = frame();
  if (now.tracing) {  // part of the program being traced
    Tensors in;
    for (const Tensor* t : arguments) in.push_back(*t);
    return f(in);
  }
  std::shared_ptr<Program> program;
  {
    const std::lock_guard lock(state_->mutex);
    program = state_->find(arguments);
    if (!program) {
      program = trace_program(arguments, f, state_->options);
      state_->programs.push_back(program);
    }
  }
  if (!now.recorders.empty()) return call_recorded(*program, arguments);
  return program->plan().run(arguments);
}

std::size_t Compilation::plans() const {
  const std::lock_guard lock(state_->mutex);
  return state_->programs.size();
}

PlanReport Compilation::report() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->programs.empty()) throw Error("compile: there is no plan before the first call");
  return state_->programs.back()->plan().report();
}

Graph Compilation::graph() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->programs.empty()) throw Error("compile: there is no program before the first call");
  return state_->programs.back()->graph();
}

}  // namespace ferrite::detail
