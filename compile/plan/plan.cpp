/// How a plan is called: arguments are checked, variables assigned, the report written.
#include "ferrite/compile/plan.h"

#include "ferrite/compile/plan/body.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

Plan::Plan(Graph graph, const PlanOptions& options) {
  graph.validate();
  body_ = detail::make_plan(std::move(graph), options);
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

const PlanReport& Plan::report() const& { return body_->report; }
const Graph& Plan::graph() const& { return body_->graph; }

namespace {

[[noreturn]] void throw_argument(std::size_t i, const Spec& wanted, const Spec& got) {
  const std::string text = "plan: argument " + std::to_string(i) + " must be " + wanted.str() + ", got " + got.str();
  if (wanted.dtype != got.dtype) throw DtypeError(text);
  throw ShapeError(text);
}

/// Gives a call its i-th argument; one that is not row-major is copied for the call.
void set_argument(detail::Workspace& w, std::size_t i, const Spec& spec, const Tensor& t) {
  if (t.shape() != spec.shape || t.dtype() != spec.dtype) throw_argument(i, spec, t.spec());
  if (t.is_abstract()) throw TraceError("plan: argument " + std::to_string(i) + " is a traced tensor");
  w.arguments[i] = &t;
  if (t.contiguous()) return;
  w.copies[i] = contiguous(t);
  w.arguments[i] = &w.copies[i];
}

void check_count(std::size_t wanted, std::size_t got) {
  if (wanted != got)
    throw ValueError("plan: " + std::to_string(wanted) + " arguments are needed, got " + std::to_string(got));
}

}  // namespace

Tensors Plan::evaluate(std::span<const Tensor* const> arguments) const {
  const Graph& g = graph();
  check_count(g.inputs.size() + g.reads.size(), arguments.size());
  const NewFrame frame;
  const detail::Borrowed w(*body_);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    set_argument(*w, i, g.values[i < g.inputs.size() ? g.inputs[i] : g.reads[i - g.inputs.size()].value],
                 *arguments[i]);
  w->run(false);
  Tensors ends;
  for (const std::size_t i : body_->ends.of) ends.push_back(w->results[i]);
  return ends;
}

Tensors Plan::run(std::span<const Tensor> inputs) const {
  return run(std::span<const Tensor* const>(OperandList(inputs)));
}

Tensors Plan::run(std::span<const Tensor* const> inputs) const {
  const Graph& g = graph();
  check_count(g.inputs.size(), inputs.size());
  const NewFrame frame;
  const detail::Borrowed w(*body_);
  for (std::size_t i = 0; i < inputs.size(); ++i) set_argument(*w, i, g.values[g.inputs[i]], *inputs[i]);
  for (std::size_t i = 0; i < g.reads.size(); ++i)
    set_argument(*w, inputs.size() + i, g.values[g.reads[i].value], g.variables[g.reads[i].variable].peek());
  w->run(true);
  for (std::size_t i = 0; i < g.writes.size(); ++i)
    g.variables[g.writes[i].variable].assign(w->results[body_->ends.of[g.outputs.size() + i]]);
  Tensors outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(w->results[body_->ends.of[i]]);
  return outputs;
}

std::string PlanReport::str(bool layers) const {
  std::string s = std::to_string(operations) + " operations in " + std::to_string(steps.size()) +
                  " steps: " + std::to_string(kernels) + " fused kernels, " + std::to_string(products) + " products (" +
                  std::to_string(epilogues) + " in the step of a kernel), " + std::to_string(others) + " others; " +
                  std::to_string(bytes_moved) + " bytes moved; intermediates " + std::to_string(arena_bytes) +
                  " bytes (at least " + std::to_string(bound_bytes) + "), results " + std::to_string(result_bytes) +
                  ", constants " + std::to_string(constant_bytes) + "\n";
  for (const Step& step : steps) {
    s += std::string("  ") + (step.kernel ? "kernel: " : "alone:  ") + step.what + " (" + std::to_string(step.bytes) +
         " bytes)";
    for (std::size_t i = 0; layers && i < step.layers.size(); ++i)
      s += (i ? ", " : " in ") + std::string(step.layers[i].path());
    s += "\n";
  }
  for (const std::string& r : refusals) s += "  not fused: " + r + "\n";
  return s;
}

}  // namespace ferrite
