/// Checkpoints: the second run of a function, for its gradient, with the variables as the first run found them.
#include "ferrite/autograd/checkpoint.h"

#include <algorithm>
#include <list>

#include "ferrite/autograd/detail/gradient_rule.h"
#include "ferrite/autograd/lenient_grad.h"

namespace ferrite {
namespace {

using detail::OutsideReads;
using Function = std::function<Tensors(const Tensors&)>;

/// Hands the applications of a second run to an outer recorder, but not its variables.
class Operations final : public Recorder {
 public:
  explicit Operations(Recorder& to) : to_(to) {}
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override {
    to_.record(op, attrs, in, out);
  }
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable&, const Tensor&) override { return true; }
  void flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) override { to_.flag(flag, value); }
  bool holds(const Tensor& x) const override { return to_.holds(x); }
  bool tracing() const override { return to_.tracing(); }
  bool keeps_composites() const override { return to_.keeps_composites(); }

 private:
  Recorder& to_;
};

/// Gives variables the values that they had in the first run; writes go to these copies only.
class Replacing final : public Recorder {
 public:
  Replacing(const std::vector<Variable>& variables, std::span<const Tensor> values)
      : variables_(variables), values_(values.begin(), values.end()) {}
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override {
    const auto at = std::ranges::find(variables_, variable);
    if (at != variables_.end()) value = values_[static_cast<std::size_t>(at - variables_.begin())];
  }
  bool write(const Variable& variable, const Tensor& value) override {
    const auto at = std::ranges::find(variables_, variable);
    if (at != variables_.end()) values_[static_cast<std::size_t>(at - variables_.begin())] = value;
    return true;
  }

 private:
  std::vector<Variable> variables_;
  std::vector<Tensor> values_;
};

/// A frame for the second run: outer tapes and tracers see its operations but not its variables. `before` provides the
/// values of variables first.
class SecondRun {
 public:
  explicit SecondRun(Recorder& before) {
    detail::Frame& frame = detail::frame();
    const detail::Frame& outer = *frame.outer;
    frame.scope = outer.scope;
    frame.cut = outer.cut;
    recordings_.emplace_back(before);
    for (Recorder* r : outer.recorders)
      recordings_.emplace_back(r->differentiates() ? *r : static_cast<Recorder&>(operations_.emplace_back(*r)));
  }

 private:
  NewFrame frame_;
  std::list<Operations> operations_;
  std::list<Recording> recordings_;
};

/// The facts about the first run that the second one needs.
struct FirstRun {
  Function f;
  std::vector<Variable> variables{};  ///< their values are the operands after the inputs
  std::vector<OutsideReads::Switch> switches{};
  std::size_t inputs = 0;
  Specs results{};
};

void check_switches(const FirstRun& first) {
  for (const OutsideReads::Switch& s : first.switches)
    if (s.flag->load(std::memory_order_relaxed) != s.value)
      throw TapeError(std::string("checkpoint: a module was switched between the two runs of the function: training "
                                  "was ") +
                      (s.value ? "true, is false" : "false, is true") + "; take the gradient before");
}

void check_results(const FirstRun& first, const Tensors& results) {
  bool same = results.size() == first.results.size();
  for (std::size_t k = 0; same && k < results.size(); ++k)
    same = results[k].defined() && results[k].spec() == first.results[k];
  if (same) return;
  const auto list = [](const auto& all, const auto& text) {
    std::string s;
    for (const auto& x : all) s += (s.empty() ? "" : ", ") + text(x);
    return s;
  };
  throw TapeError("checkpoint: the second run of the function gave results of other types than the first: " +
                  list(results, [](const Tensor& t) { return t.defined() ? t.spec().str() : "undefined"; }) +
                  " after " + list(first.results, [](const Spec& t) { return t.str(); }) +
                  "; what it depends on besides inputs must be variables or constant");
}

Tensor recomputed(const Tensor& x) {
  const Tensor* in[] = {&x};
  return detail::recompute_primitive().apply(in)[0];
}

Tensors gradients(const FirstRun& first, const Vjp& v, std::size_t operands) {
  check_switches(first);
  std::vector<Tensor> plain;
  for (std::size_t i = 0; i < operands; ++i) plain.push_back(v.in(i).unmarked());
  // Tapes check that a parameter still has the value that they have seen.
  Replacing before(first.variables, std::span<const Tensor>(plain).subspan(first.inputs));
  const SecondRun frame(before);
  const bool differentiated = detail::frame().differentiated, tracing = detail::frame().tracing;
  Tape tape;
  std::vector<Tensor> now, variables;
  const auto is_variable = [&](std::size_t i) { return v.wants(i) && has_gradient(v.in_spec(i).dtype); };
  for (std::size_t i = 0; i < operands; ++i) {
    const Tensor& x = differentiated ? v.in(i) : plain[i];
    now.push_back(is_variable(i) ? tape.watch(x) : x);
    if (is_variable(i)) variables.push_back(now.back());
    if (tracing) now.back() = recomputed(now.back());
  }
  Replacing after(first.variables, std::span<const Tensor>(now).subspan(first.inputs));
  const Recording recording(after);
  Tensors inputs;
  for (std::size_t i = 0; i < first.inputs; ++i) inputs.push_back(now[i]);
  const Tensors results = first.f(inputs);
  check_results(first, results);
  std::vector<GradOf> of;
  for (std::size_t k = 0; k < results.size(); ++k)
    if (v.grad(k).defined() && has_gradient(results[k].dtype())) of.push_back({results[k], v.grad(k)});
  Tensors all(operands);
  if (of.empty() || variables.empty()) return all;
  const Tensors g = detail::lenient_grad(tape, of, variables);
  for (std::size_t i = 0, next = 0; i < operands; ++i)
    if (is_variable(i)) all[i] = g[next++];
  return all;
}

}  // namespace

Tensors checkpoint(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  if (!f) throw ValueError("checkpoint: the function is null");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined()) throw ValueError("checkpoint: input " + std::to_string(i) + " is undefined");
  if (detail::frame().recorders.empty()) return f(inputs);
  OutsideReads outside("checkpoint", OutsideReads::Parameters::collected);
  Tensors values;
  {
    const NoTapes frame;
    const Recording recording(outside);
    Tensors plain;
    for (const Tensor& x : inputs) plain.push_back(x.unmarked());
    values = f(plain);
  }
  FirstRun first{.f = f, .switches = outside.switches(), .inputs = inputs.size()};
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!values[k].defined())
      throw ValueError("checkpoint: result " + std::to_string(k) + " of the function is undefined");
    first.results.push_back(values[k].spec());
  }
  Tensors operands = inputs;
  for (const OutsideReads::Read& r : outside.reads()) {
    first.variables.push_back(r.variable);
    operands.push_back(r.variable.kind() == VariableKind::parameter ? r.variable.value() : r.value);
  }
  auto rule = std::make_shared<const detail::GradientRule>(
      "checkpoint", [first = std::move(first)](const Vjp& v, std::size_t n) { return gradients(first, v, n); });
  return detail::with_rule(std::move(rule), operands, values);
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  if (!f) throw ValueError("checkpoint: the function is null");
  return checkpoint([f](const Tensors& in) { return Tensors{f(in[0])}; }, Tensors{x})[0];
}

}  // namespace ferrite
