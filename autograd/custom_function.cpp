/// Functions with a gradient written by hand, as applications with a rule.
#include "ferrite/autograd/custom_function.h"

#include "ferrite/autograd/detail/gradient_rule.h"
#include "ferrite/autograd/detail/reads.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

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

/// The rule of a backward function that has no gradient.
std::shared_ptr<const GradientRule> refusing_rule(const std::string& who) {
  return std::make_shared<GradientRule>(who, [who](const Vjp&, std::size_t) -> Tensors {
    throw TapeError(
        who +
        ": a gradient of its gradient was asked for, and it is declared once_differentiable; write backward "
        "in operations and drop that option");
  });
}

/// Gradients that are computed without tapes, and refuse to be differentiated.
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
