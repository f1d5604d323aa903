#pragma once
/// Products of a Jacobian with vectors: from the right (jvp) and from the left (vjp).
#include <functional>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The results of a function and their derivatives along a direction.
struct JvpResult {
  Tensors values;    ///< values of the function, f(inputs)
  Tensors tangents;  ///< J v: with the shapes of the values and their gradient_dtype; zeros for integers
};
/// The result of a function of one tensor and its derivative along a direction.
struct SingleJvpResult {
  Tensor value;    ///< value of the function, f(x)
  Tensor tangent;  ///< J v, with the shape of the value
};

/// Returns f(inputs) and its derivative along `tangents`: d/dt f(inputs + t tangents) at t = 0. f takes float tensors
/// (integers have no derivative).
///
///   const auto [y, dy] = jvp([](const Tensor& t) { return tanh(t); }, x, v);
///
/// The derivative is computed forward, operation by operation, by the rules of the operations. It costs one to two
/// evaluations of f besides the one that gives the values, whatever the number of inputs. Every operation with a
/// gradient is supported; one without its own rule, such as a fused recurrent layer, is pushed through its gradient,
/// which must then be differentiable. May be differentiated under a Tape, nested, and used in a compiled function. The
/// semantics are those of torch.autograd.functional.jvp.
///
/// Throws ValueError for a null function, no inputs, or a number of tangents that is not that of the inputs; ShapeError
/// for a tangent that does not have its input's shape and gradient_dtype; DtypeError for inputs that are not floats.
JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents);
SingleJvpResult jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& tangent);

/// The results of a function and the gradients of its inputs for given cotangents of the results.
struct VjpResult {
  Tensors values;     ///< values of the function, f(inputs)
  Tensors gradients;  ///< J'u: with the shapes of the inputs
};
/// The result of a function of one tensor and the gradient of its input.
struct SingleVjpResult {
  Tensor value;     ///< value of the function, f(x)
  Tensor gradient;  ///< J'u, with the shape of x
};

/// Returns f(inputs) and the gradient of <cotangents, f(inputs)> with respect to every input, zeros for an input that f
/// does not depend on: a Tape in one call. The semantics are those of torch.autograd.functional.vjp.
///
/// Throws as `jvp` does, for cotangents of the results instead of tangents.
VjpResult vjp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& cotangents);
SingleVjpResult vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& cotangent);

}  // namespace ferrite
