#pragma once
/// Products with a Jacobian: of vectors from the right (jvp) and from the left (vjp).
#include <functional>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The results of a function and their derivative along a direction.
struct JvpResult {
  Tensors values;    ///< f(x)
  Tensors tangents;  ///< J v: of the shapes of the values, and of their gradient_dtype; zeros for integers
};
struct SingleJvpResult {
  Tensor value;
  Tensor tangent;
};

/// f(inputs) and its derivative along `tangents`: d/dt f(inputs + t tangents) at t = 0. f takes and gives float
/// tensors (integers have no derivative).
///
///   const auto [y, dy] = jvp([](const Tensor& t) { return tanh(t); }, x, v);
///
/// Computed forward, operation by operation, by the rules of their records: it costs one to two evaluations of f beside
/// the one that gives the values, whatever the number of inputs, and holds for every operation with a gradient (one
/// without a rule of its own, such as a fused recurrent layer, is pushed through its gradient, which must then be
/// differentiable). May be differentiated under a Tape, nested, and stand in a compiled function. The semantics are
/// those of torch.autograd.functional.jvp.
///
/// Throws ValueError for a null function, no inputs, and another number of tangents than inputs; ShapeError for a
/// tangent that is not of its input's shape and gradient_dtype; DtypeError for inputs that are not floats.
JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents);
SingleJvpResult jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& tangent);

/// The results of a function and the gradients of its inputs for cotangents of the results.
struct VjpResult {
  Tensors values;     ///< f(x)
  Tensors gradients;  ///< J'u: of the shapes of the inputs
};
struct SingleVjpResult {
  Tensor value;
  Tensor gradient;
};

/// f(inputs) and the gradient of <cotangents, f(inputs)> with respect to every input, zeros for one that f does not
/// depend on: what a Tape gives, as one call. The semantics are those of torch.autograd.functional.vjp.
///
/// Throws as `jvp` does, with cotangents of the results in place of tangents.
VjpResult vjp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& cotangents);
SingleVjpResult vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& cotangent);

}  // namespace ferrite
