/// The operations that give values a gradient by a rule.
#include "ferrite/autograd/detail/gradient_rule.h"

#include <algorithm>

#include "ferrite/autograd/custom_gradient.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {
namespace {

/// How many of the last operands are the values.
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

/// A window on the operand, so that it costs nothing where it is planned.
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
  // A tape is given no values: it would hold them twice.
  Tensors all = operands, out;
  for (const Tensor& y : values) {
    all.push_back(tracing ? y : Tensor::abstract(y.spec()));
    out.push_back(tracing ? Tensor::abstract(y.spec()) : y.unmarked());
  }
  const OperandList in(all);
  for (Recorder* r : frame().recorders) r->record(op, attrs, in, {out.data(), out.size()});
  return out;
}

}  // namespace ferrite::detail
