/// Functions with a hand-written gradient, as applications with a rule.
#include "ferrite/autograd/custom_function.h"

#include <algorithm>

#include "ferrite/autograd/detail/gradient_rule.h"
#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- reads of outer variables by a function while no tape listens to it -----------------------------------

namespace detail {

OutsideReads::OutsideReads(std::string who, Parameters parameters) : who_(std::move(who)), parameters_(parameters) {
  for (const Recorder* r : frame().recorders)
    if (r->differentiates()) tapes_.push_back(r);
}

void OutsideReads::record(const Primitive& op, const Attrs&, Inputs in, std::span<Tensor>) {
  for (const Tensor& x : in)
    for (const Recorder* tape : tapes_)
      if (tape->holds(x))
        throw TapeError(who_ + ": the function refers to a tensor that is recorded on a tape, and " +
                        std::string(op.name) + " reads it, but no gradient would reach it: " + x.spec().str() +
                        "; make it an input, or detach it");
}

void OutsideReads::read(const Variable& variable, Tensor& value) {
  if (variable.kind() == VariableKind::parameter && parameters_ == Parameters::refused)
    throw TapeError(who_ + ": the function reads a parameter, but no gradient would reach it: '" + variable.name() +
                    "' " + variable.spec().str() + "; make its value an input");
  const bool known = std::ranges::any_of(reads_, [&](const Read& r) { return r.variable == variable; });
  if (!known) reads_.push_back({variable, value.unmarked()});
}

void OutsideReads::flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) {
  switches_.push_back({flag, value});
}

// ---- the operations that give values a gradient by a rule -------------------------------------------------

namespace {

/// Attributes of the operations below: the number of values, which are the last operands.
struct RuleAttrs {
  std::int64_t values = 0;
  static constexpr auto fields = attr_list(attr("values", &RuleAttrs::values));
};

std::size_t values_of(const Attrs& attrs) { return static_cast<std::size_t>(attrs.as<RuleAttrs>("custom").values); }

const GradientRule& rule_of(const Attrs& attrs) { return static_cast<const GradientRule&>(*attrs.body); }

Specs infer_values(const Primitive&, Inputs in, const Attrs& attrs) {
  Specs s;
  for (std::size_t i = in.size() - values_of(attrs); i < in.size(); ++i) s.push_back(in[i].spec());
  return s;
}

void copy_values(Inputs in, std::span<Tensor> out, const Attrs&) {
  for (std::size_t i = 0; i < out.size(); ++i) copy_to(Writer::raw(out[i]), in[in.size() - out.size() + i]);
}

Tensors gradients_by_rule(const Vjp& v) {
  if (!v.attrs.body)
    throw TapeError(
        "custom_gradient: a program read from a text has no gradient written by hand; differentiate the function that "
        "it "
        "was traced from");
  const GradientRule& rule = rule_of(v.attrs);
  const std::size_t inputs = v.inputs() - v.outputs();
  Tensors all = rule.backward(v, inputs);
  if (all.size() != inputs)
    throw ValueError(rule.who + ": the backward function must give a gradient for each input: it gave " +
                     std::to_string(all.size()) + " for " + std::to_string(inputs) +
                     "; leave those that have none undefined");
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!all[i].defined()) continue;
    const Spec wanted{v.in_spec(i).shape, gradient_dtype(v.in_spec(i).dtype)};
    if (has_gradient(v.in_spec(i).dtype) && !(all[i].spec() == wanted))
      throw ShapeError(rule.who + ": the gradient of input " + std::to_string(i) + " must be " + wanted.str() +
                       ", got " + all[i].spec().str());
  }
  while (all.size() < v.inputs()) all.push_back({});
  return all;
}

constexpr Primitive record_of(std::string_view name, std::string_view summary, Reads reads) {
  return {.name = name,
          .summary = summary,
          .arity = -1,
          .infer = infer_values,
          .eval = copy_values,
          .vjp = gradients_by_rule,
          .reads = reads,
          .takes_storage_types = true,
          .attributes = &attr_fields<RuleAttrs>};
}

constexpr Primitive kCustom =
    record_of("custom_gradient", "the last operands, with a gradient that a program wrote", reads_all);
constexpr Primitive kHook =
    record_of("gradient_hook", "the last operands, with a function that sees their gradient", reads_nothing);

/// A view of the operand, which costs nothing in a plan.
struct Recompute {
  static constexpr auto name = "recompute", onnx = "Identity", stablehlo = "";
  static constexpr auto summary = "the same values; what is computed of them is computed again";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const NoAttrs&) { return {in[0].spec()}; }
  static bool view(const Tensor& x, const Spec&, const NoAttrs&, std::size_t, Layout& layout) {
    layout.strides = x.strides();
    return true;
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) { return {v.grad()}; }
};

bool anybody_traces() {
  return std::ranges::any_of(frame().recorders, [](const Recorder* r) { return r->tracing(); });
}

}  // namespace

std::span<const Primitive* const> custom_gradients() {
  static const Primitive* const all[] = {&kCustom, &kHook, &structured<Recompute>};
  return all;
}

const Primitive& recompute_primitive() { return structured<Recompute>; }

bool is_custom_gradient(const Primitive& op) { return &op == &kCustom || &op == &kHook; }

Tensors with_rule(std::shared_ptr<const GradientRule> rule, const Tensors& operands, const Tensors& values,
                  RuleReads reads) {
  const Primitive& op = reads == RuleReads::all ? kCustom : kHook;
  Attrs attrs = RuleAttrs{static_cast<std::int64_t>(values.size())};
  attrs.body = std::move(rule);
  const bool tracing = anybody_traces();
  // A tape gets no values: it would hold them twice.
  Tensors all = operands, out;
  for (const Tensor& y : values) {
    all.push_back(tracing ? y : Tensor::abstract(y.spec()));
    out.push_back(tracing ? Tensor::abstract(y.spec()) : y.unmarked());
  }
  const OperandList in(all);
  for (Recorder* r : frame().recorders) r->record(op, attrs, in, {out.data(), out.size()});
  return out;
}

}  // namespace detail

// ---- custom functions -------------------------------------------------------------------------------------

struct CustomFunction::State {
  std::string who;
  Forward forward;
  Backward backward;
  CustomFunctionOptions options;
  std::shared_ptr<const detail::GradientRule> rule;
};

namespace {

using detail::GradientRule;

Tensors unmarked(const Tensors& list) {
  Tensors all;
  for (const Tensor& x : list) all.push_back(x.defined() ? x.unmarked() : x);
  return all;
}

/// Returns a rule that throws TapeError, for a backward function that has no gradient.
std::shared_ptr<const GradientRule> refusing_rule(const std::string& who) {
  return std::make_shared<GradientRule>(who, [who](const Vjp&, std::size_t) -> Tensors {
    throw TapeError(
        who +
        ": a gradient of its gradient was asked for, and it is declared once_differentiable; write backward "
        "in operations and drop that option");
  });
}

/// Returns gradients that are computed without tapes and throw TapeError when they are differentiated.
Tensors once_differentiable(const std::string& who, const CustomFunction::Backward& backward, const Tensors& inputs,
                            const Tensors& outputs, const Tensors& cotangents) {
  Tensors gradients;
  {
    const NoTapes frame;
    gradients = backward(unmarked(inputs), unmarked(outputs), unmarked(cotangents));
  }
  if (!detail::frame().differentiated && !detail::frame().tracing) return gradients;
  Tensors operands = inputs, values;
  for (const Tensor& c : cotangents) operands.push_back(c);
  for (const Tensor& g : gradients)
    if (g.defined()) values.push_back(g);
  const Tensors refusing = detail::with_rule(refusing_rule(who), operands, values);
  std::size_t next = 0;
  for (Tensor& g : gradients)
    if (g.defined()) g = refusing[next++];
  return gradients;
}

}  // namespace

CustomFunction::CustomFunction(std::string name, Forward forward, Backward backward,
                               const CustomFunctionOptions& options) {
  if (name.empty()) throw ValueError("custom_function: the name is empty: ''; errors are told by it");
  const std::string who = "custom_function '" + name + "'";
  if (!forward) throw ValueError(who + ": the forward function is null");
  if (!backward) throw ValueError(who + ": the backward function is null");
  auto rule = [who, backward, once = options.once_differentiable](const Vjp& v, std::size_t n) {
    Tensors inputs, outputs, cotangents;
    for (std::size_t i = 0; i < n; ++i) inputs.push_back(v.in(i));
    for (std::size_t k = 0; k < v.outputs(); ++k) {
      outputs.push_back(v.out(k));
      cotangents.push_back(has_gradient(v.out_spec(k).dtype) ? v.grad_or_zeros(k) : Tensor());
    }
    return once ? once_differentiable(who, backward, inputs, outputs, cotangents)
                : backward(inputs, outputs, cotangents);
  };
  auto made = std::make_shared<const GradientRule>(who, std::move(rule));
  state_ = std::make_shared<const State>(State{who, std::move(forward), std::move(backward), options, std::move(made)});
}

Tensors CustomFunction::operator()(const Tensors& inputs) const {
  const State& s = *state_;
  if (detail::frame().recorders.empty()) return s.forward(inputs);
  Tensors values;
  {
    detail::OutsideReads reads(s.who, detail::OutsideReads::Parameters::refused);
    const NoTapes frame;
    const Recording recording(reads);
    values = s.forward(unmarked(inputs));
  }
  for (std::size_t k = 0; k < values.size(); ++k)
    if (!values[k].defined())
      throw ValueError(s.who + ": result " + std::to_string(k) + " of the forward function is undefined");
  return detail::with_rule(s.rule, inputs, values);
}

Tensor CustomFunction::single(const Tensors& results) const {
  if (results.size() != 1)
    throw ValueError(state_->who + ": called for one result, and it gives " + std::to_string(results.size()) +
                     "; call it with a list of inputs");
  return results[0];
}

CustomFunction custom_function(std::string name, CustomFunction::Forward forward, CustomFunction::Backward backward,
                               const CustomFunctionOptions& options) {
  return {std::move(name), std::move(forward), std::move(backward), options};
}

}  // namespace ferrite
