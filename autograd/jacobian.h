#pragma once
/// Jacobians, Hessians and Hessian-vector products.
#include <functional>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The way to compute a Jacobian: row by row, column by column, or whichever takes fewer passes.
enum class JacobianBy : std::uint8_t {
  smaller,  ///< the one of the two with fewer passes: rows unless there are more of them than columns
  rows,     ///< one backward pass for each element of the results
  columns,  ///< one forward pass for each element of the inputs (jvp)
};

/// Options of jacobian: whether it is computed by rows or by columns.
struct JacobianOptions {
  JacobianBy by = JacobianBy::smaller;
};

/// Returns the derivative of every element of f(x) with respect to every element of x, as [y..., x...] if f(x) is
/// [y...]. Evaluates f once. Gives zeros where f does not depend on x. May be differentiated under a Tape, nested, and
/// used in a compiled function. The semantics are those of torch.autograd.functional.jacobian.
///
///   const Tensor j = jacobian([&](const Tensor& t) { return matmul(a, t); }, x);  // a
///
/// Throws ValueError for a null function, DtypeError if x is not a float, ShapeError if x and f(x) have more than eight
/// axes together.
Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const JacobianOptions& options = {});
/// Returns the Jacobians of several results with respect to several inputs: [result][input]. Also throws ValueError for
/// no inputs.
std::vector<Tensors> jacobian(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs,
                              const JacobianOptions& options = {});

/// Returns the second derivatives of an f that gives one element: [x..., x...]. Computed as the Jacobian of the
/// gradient, with one pass for each element of x. The semantics are those of torch.autograd.functional.hessian. Throws
/// as `jacobian` does, and ShapeError if f gives more than one element.
Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
/// Returns the second derivatives with respect to each pair of inputs: [input][input].
std::vector<Tensors> hessian(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

/// The value of a function and the products of its Hessian with vectors.
struct HvpResult {
  Tensor value;      ///< value of the function, f(inputs)
  Tensors products;  ///< H v, with the shapes of the inputs
};
/// The value of a function of one tensor and the product of its Hessian with a vector.
struct SingleHvpResult {
  Tensor value;    ///< value of the function, f(x)
  Tensor product;  ///< H v, with the shape of x
};

/// Returns f(x), which has one element, and H v for its Hessian H at x without forming H: two backward passes.
///
///   const auto [loss, curvature] = hvp(f, x, direction);
///
/// The semantics are those of torch.autograd.functional.hvp. Throws as `hessian` does, ValueError if the number of
/// vectors is not that of the inputs, ShapeError for a vector that does not have its input's shape and gradient_dtype.
SingleHvpResult hvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& vector);
HvpResult hvp(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs, const Tensors& vectors);

}  // namespace ferrite
