/// Products with a Jacobian: forward and backward sweeps over what a tape recorded.
#include "ferrite/autograd/jvp.h"

#include "ferrite/autograd/detail/linearized.h"
#include "ferrite/autograd/lenient_grad.h"

namespace ferrite {
namespace detail {

Linearized::Linearized(std::string_view who, const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  const std::string where(who);
  if (!f) throw ValueError(where + ": the function is null");
  if (inputs.empty()) throw ValueError(where + ": there are no inputs to differentiate by");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!has_gradient(inputs[i].dtype()))
      throw DtypeError(where + ": input " + std::to_string(i) + " must be a float, got " + inputs[i].spec().str() +
                       "; let the function refer to it");
  for (const Tensor& x : inputs) variables_.push_back(tape_.watch(x));
  values_ = f(variables_);
  for (std::size_t k = 0; k < values_.size(); ++k) {
    if (!values_[k].defined())
      throw ValueError(where + ": result " + std::to_string(k) + " of the function is undefined");
    if (has_gradient(values_[k].dtype())) floats_.push_back(k);
  }
}

Tensors Linearized::pull_back(const Tensors& cotangents, bool last) {
  std::vector<GradOf> of;
  for (const std::size_t k : floats_)
    if (cotangents[k].defined()) of.push_back({values_[k], cotangents[k]});
  return lenient_grad(tape_, of, variables_, {.retain = !last});
}

Tensors Linearized::push_forward(const Tensors& tangents) {
  Tensors found = detail::push_forward(tape_, values_, variables_, tangents);
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!found[k].defined()) found[k] = zeros(values_[k].shape(), gradient_dtype(values_[k].dtype()));
  return found;
}

void check_like(std::string_view who, std::string_view what, const Tensors& given, const Tensors& like) {
  const std::string where(who), name(what);
  if (given.size() != like.size())
    throw ValueError(where + ": there must be a " + name + " for each of " + std::to_string(like.size()) +
                     " tensors, got " + std::to_string(given.size()));
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!given[i].defined() && !has_gradient(like[i].dtype())) continue;
    const Spec wanted{like[i].shape(), gradient_dtype(like[i].dtype())};
    if (!given[i].defined() || !(given[i].spec() == wanted))
      throw ShapeError(where + ": " + name + " " + std::to_string(i) + " must be " + wanted.str() + ", got " +
                       (given[i].defined() ? given[i].spec().str() : "an undefined tensor"));
  }
}

}  // namespace detail

JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents) {
  detail::check_like("jvp", "tangent", tangents, inputs);
  detail::Linearized at("jvp", f, inputs);
  Tensors found = at.push_forward(tangents);
  return {at.values(), std::move(found)};
}

SingleJvpResult jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& tangent) {
  if (!f) throw ValueError("jvp: the function is null");
  JvpResult r = jvp([&](const Tensors& in) { return Tensors{f(in[0])}; }, Tensors{x}, Tensors{tangent});
  return {r.values[0], r.tangents[0]};
}

VjpResult vjp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& cotangents) {
  detail::Linearized at("vjp", f, inputs);
  detail::check_like("vjp", "cotangent", cotangents, at.values());
  Tensors found = at.pull_back(cotangents, true);
  return {at.values(), std::move(found)};
}

SingleVjpResult vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& cotangent) {
  if (!f) throw ValueError("vjp: the function is null");
  VjpResult r = vjp([&](const Tensors& in) { return Tensors{f(in[0])}; }, Tensors{x}, Tensors{cotangent});
  return {r.values[0], r.gradients[0]};
}

}  // namespace ferrite
