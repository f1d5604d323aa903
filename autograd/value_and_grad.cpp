/// Computes a value and its gradients with respect to inputs and parameters in one walk.
#include "ferrite/autograd/value_and_grad.h"

#include <algorithm>

#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/lenient_grad.h"

namespace ferrite {
namespace {

/// Collects the values of parameters as the tape marked them; undefined for one that was not read.
class ReadParameters final : public Recorder {
 public:
  explicit ReadParameters(std::span<const Parameter> asked) : asked_(asked), values_(asked.size()) {}
  const std::vector<Tensor>& values() const { return values_; }

  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable& variable, Tensor& value) override {
    for (std::size_t i = 0; i < asked_.size(); ++i)
      if (!values_[i].defined() && asked_[i] == variable) values_[i] = value;
  }
  bool write(const Variable&, const Tensor&) override { return false; }

 private:
  std::span<const Parameter> asked_;
  std::vector<Tensor> values_;
};

}  // namespace

ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 std::span<const Parameter> parameters) {
  if (!f) throw ValueError("value_and_grad: the function is null");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].defined())
      throw TapeError("value_and_grad: parameter " + std::to_string(i) + " of the list is an empty handle");
  Tape tape;
  std::vector<Tensor> variables;
  Tensors watched;
  for (const Tensor& x : inputs) watched.push_back(tape.watch(x));
  variables.assign(watched.begin(), watched.end());
  ReadParameters reads(parameters);
  ValueAndGradients found;
  {
    const Recording recording(reads);
    found.value = f(watched);
  }
  if (found.value.numel() != 1)
    throw ShapeError("value_and_grad: the function must give one element, got " + found.value.spec().str());
  for (const Tensor& p : reads.values())
    if (p.defined() && has_gradient(p.dtype())) variables.push_back(p);
  const Tensors g = detail::lenient_grad(tape, {found.value}, variables);
  std::size_t next = 0;
  while (next < inputs.size()) found.inputs.push_back(g[next++]);
  for (const Tensor& p : reads.values())
    found.parameters.push_back(p.defined() && has_gradient(p.dtype()) ? g[next++] : Tensor());
  detail::run_parameter_hooks(parameters, found.parameters);
  return found;
}

ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 const std::vector<Parameter>& parameters) {
  return value_and_grad(f, inputs, std::span<const Parameter>(parameters));
}

std::function<std::pair<Tensor, Tensor>(const Tensor&)> value_and_grad(std::function<Tensor(const Tensor&)> f) {
  if (!f) throw ValueError("value_and_grad: the function is null");
  return [f = std::move(f)](const Tensor& x) {
    const ValueAndGradients r = value_and_grad([&](const Tensors& in) { return f(in[0]); }, Tensors{x});
    return std::pair(r.value, r.inputs[0]);
  };
}

}  // namespace ferrite
