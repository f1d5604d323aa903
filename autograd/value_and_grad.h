#pragma once
/// The value of a function and all its gradients in one call.
#include <functional>
#include <span>
#include <vector>

#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// A value, its gradients by inputs and its gradients by parameters.
struct ValueAndGradients {
  Tensor value;
  Tensors inputs;      ///< of the shapes of the inputs, zeros where the function does not depend on one
  Tensors parameters;  ///< in the order asked for; undefined for one that the function did not read: optimisers skip it
};

/// f(inputs), which has one element, and its gradients with respect to inputs and parameters: one evaluation and one
/// backward pass.
///
///   const auto [loss, by_input, by_parameter] =
///       value_and_grad([&](const Tensors& in) { return nn::mse_loss(net(in[0]), y); }, {x}, net.parameters());
///   optimiser.step(by_parameter);
///
/// May stand in a compiled function, and be differentiated under a Tape. Hooks on gradients of parameters run
/// (autograd/hooks.h). Throws ValueError for a null function, DtypeError for an input that is no float, ShapeError
/// where f gives more than one element, TapeError for an empty handle among the parameters.
ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 std::span<const Parameter> parameters = {});
ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 const std::vector<Parameter>& parameters);

/// The same function, called later: x -> {f(x), df/dx}.
std::function<std::pair<Tensor, Tensor>(const Tensor&)> value_and_grad(std::function<Tensor(const Tensor&)> f);

}  // namespace ferrite
