#include "ferrite/compile/plan.h"

#include "ferrite/compile/detail/plan_body.h"
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

const PlanReport& Plan::report() const { return body_->report; }
const Graph& Plan::graph() const { return body_->graph; }

namespace {

using Pointers = InlineVector<const Tensor*, 32>;

[[noreturn]] void throw_argument(std::size_t i, const Spec& wanted, const Spec& got) {
  const std::string text = "plan: argument " + std::to_string(i) + " must be " + wanted.str() + ", got " + got.str();
  if (wanted.dtype != got.dtype) throw DtypeError(text);
  throw ShapeError(text);
}

/// Row-major arguments: others are copied, once for the call.
class Arguments {
 public:
  explicit Arguments(const Graph& g) : g_(g) {}
  void add(std::size_t i, ValueId v, const Tensor& t) {
    if (t.shape() != g_.values[v].shape || t.dtype() != g_.values[v].dtype) throw_argument(i, g_.values[v], t.spec());
    if (t.is_abstract()) throw TraceError("plan: argument " + std::to_string(i) + " is a traced tensor");
    if (t.contiguous()) return pointers_.push_back(&t);
    if (copies_.empty()) copies_.reserve(g_.inputs.size() + g_.reads.size());  // addresses stay
    copies_.push_back(contiguous(t));
    pointers_.push_back(&copies_.back());
  }
  std::span<const Tensor* const> get() const { return {pointers_.data(), pointers_.size()}; }

 private:
  const Graph& g_;
  Pointers pointers_;
  Tensors copies_;
};

Tensors run_body(const detail::PlanBody& body, std::span<const Tensor* const> arguments) {
  InlineVector<Tensor, 8> results;
  for (const ValueId v : body.results) results.push_back(Tensor::empty(body.graph.values[v]));
  std::unique_ptr<detail::Workspace> w = body.borrow();
  w->run(arguments, {results.data(), results.size()});
  body.give_back(std::move(w));
  Tensors ends;
  for (const std::size_t i : body.ends) ends.push_back(results[i]);
  return ends;
}

}  // namespace

Tensors Plan::evaluate(std::span<const Tensor* const> arguments) const {
  const Graph& g = graph();
  if (arguments.size() != g.inputs.size() + g.reads.size())
    throw ValueError("plan: " + std::to_string(g.inputs.size() + g.reads.size()) + " arguments are needed, got " +
                     std::to_string(arguments.size()));
  const NewFrame frame;
  Arguments all(g);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    all.add(i, i < g.inputs.size() ? g.inputs[i] : g.reads[i - g.inputs.size()].value, *arguments[i]);
  return run_body(*body_, all.get());
}

Tensors Plan::run(std::span<const Tensor> inputs) const {
  const Graph& g = graph();
  if (inputs.size() != g.inputs.size())
    throw ValueError("plan: " + std::to_string(g.inputs.size()) + " inputs are needed, got " +
                     std::to_string(inputs.size()));
  const NewFrame frame;
  Arguments all(g);
  for (std::size_t i = 0; i < inputs.size(); ++i) all.add(i, g.inputs[i], inputs[i]);
  for (std::size_t i = 0; i < g.reads.size(); ++i)
    all.add(inputs.size() + i, g.reads[i].value, g.cells[g.reads[i].cell].peek());
  Tensors ends = run_body(*body_, all.get());
  for (std::size_t i = 0; i < g.writes.size(); ++i) g.cells[g.writes[i].cell].assign(ends[g.outputs.size() + i]);
  Tensors outputs;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(std::move(ends[i]));
  return outputs;
}

std::string PlanReport::str() const {
  std::string s = std::to_string(operations) + " operations in " + std::to_string(steps.size()) +
                  " steps: " + std::to_string(kernels) + " fused kernels, " + std::to_string(products) + " products, " +
                  std::to_string(others) + " others; " + std::to_string(bytes_moved) + " bytes moved; intermediates " +
                  std::to_string(arena_bytes) + " bytes (at least " + std::to_string(bound_bytes) + "), results " +
                  std::to_string(result_bytes) + ", constants " + std::to_string(constant_bytes) + "\n";
  for (const Step& step : steps)
    s += std::string("  ") + (step.kernel ? "kernel: " : "alone:  ") + step.what + " (" + std::to_string(step.bytes) +
         " bytes)\n";
  for (const std::string& r : refusals) s += "  not fused: " + r + "\n";
  return s;
}

}  // namespace ferrite
