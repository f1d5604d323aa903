#pragma once
/// Jacobians, Hessians and products with Hessians.
#include <functional>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// How a Jacobian is computed.
enum class JacobianBy : std::uint8_t {
  smaller,  ///< of the two, the one with fewer passes: rows where there are not more of them than columns
  rows,     ///< a backward pass for each element of the results
  columns,  ///< two backward passes for each element of the inputs (jvp)
};

struct JacobianOptions {
  JacobianBy by = JacobianBy::smaller;
};

/// The derivative of every element of f(x) by every element of x: [y..., x...], where f(x) is [y...]. f is evaluated
/// once. Zeros where f does not depend on x. May be differentiated under a Tape, nested, and stand in a compiled
/// function. The semantics are those of torch.autograd.functional.jacobian.
///
///   const Tensor j = jacobian([&](const Tensor& t) { return matmul(a, t); }, x);  // a
///
/// Throws ValueError for a null function, DtypeError where x is no float, ShapeError where x and f(x) have more than
/// eight axes together.
Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const JacobianOptions& options = {});
/// The same of several results and inputs: [result][input]. Throws ValueError for no inputs, too.
std::vector<Tensors> jacobian(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs,
                              const JacobianOptions& options = {});

/// The second derivatives of an f that gives one element: [x..., x...]. As `jacobian` of the gradient, a pass for each
/// element of x. The semantics are those of torch.autograd.functional.hessian. Throws as `jacobian` does, and
/// ShapeError where f gives more than one element.
Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
/// The same of several inputs: [input][input].
std::vector<Tensors> hessian(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

/// The value of a function and the product of its Hessian with a vector.
struct HvpResult {
  Tensor value;      ///< f(x)
  Tensors products;  ///< H v, of the shapes of the inputs
};
struct SingleHvpResult {
  Tensor value;
  Tensor product;
};

/// f(x), which has one element, and H v for its Hessian H at x, without forming H: two backward passes.
///
///   const auto [loss, curvature] = hvp(f, x, direction);
///
/// The semantics are those of torch.autograd.functional.hvp. Throws as `hessian` does, ValueError for another number of
/// vectors than inputs, ShapeError for a vector that is not of its input's shape and gradient_dtype.
SingleHvpResult hvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& vector);
HvpResult hvp(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs, const Tensors& vectors);

}  // namespace ferrite
