#pragma once
/// The value of a function and all its gradients in one call.
#include <functional>
#include <span>
#include <vector>

#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// The value of a function and its gradients with respect to inputs and to parameters.
struct ValueAndGradients {
  Tensor value;        ///< value of the function, one element
  Tensors inputs;      ///< gradients, with the shapes of the inputs; zeros for one that the function does not depend on
  Tensors parameters;  ///< gradients, in the order of the request; undefined for one not read: optimisers skip it
};

/// Returns f(inputs), which has one element, and its gradients with respect to inputs and parameters: one evaluation
/// and one backward pass.
///
///   const auto [loss, by_input, by_parameter] =
///       value_and_grad([&](const Tensors& in) { return nn::mse_loss(net(in[0]), y); }, {x}, net.parameters());
///   optimiser.step(by_parameter);
///
/// May be used in a compiled function, and differentiated under a Tape. Hooks on gradients of parameters run
/// (autograd/hooks.h). Throws ValueError for a null function, DtypeError for an input that is not a float, ShapeError
/// if f gives more than one element, TapeError for an empty handle among the parameters.
ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 std::span<const Parameter> parameters = {});
ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                                 const std::vector<Parameter>& parameters);

/// Returns the function x -> {f(x), df/dx} for an f that gives one element. Throws ValueError for a null function.
std::function<std::pair<Tensor, Tensor>(const Tensor&)> value_and_grad(std::function<Tensor(const Tensor&)> f);

}  // namespace ferrite
