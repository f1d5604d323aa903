#pragma once
/// Arithmetic on lists of tensors: gradients, parameters, directions of a search.
#include <functional>
#include <span>
#include <vector>

#include "ferrite/tensor/scalar.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

/// Every function takes lists of tensors of any shapes (`Tensors`, std::vector, std::span) and acts on each tensor
/// separately. Undefined entries, which a gradient has for parameters that were not read, count as zeros: they stay
/// undefined where nothing is added to them. Functions of two lists throw ValueError for lists of different lengths.
/// All functions are made of operations, so they can be differentiated, traced and compiled.
namespace ferrite::lists {

using List = std::span<const Tensor>;

/// Returns f of every tensor; f is not called for undefined ones, which stay undefined.
Tensors map(const std::function<Tensor(const Tensor&)>& f, List a);
/// Returns f(a[i], b[i]) for every i; undefined where either of the two is.
Tensors zip(const std::function<Tensor(const Tensor&, const Tensor&)>& f, List a, List b);
/// Returns a[i] + alpha b[i] for every i; an undefined tensor counts as zeros.
Tensors add(List a, List b, Scalar alpha = 1);
/// Returns a[i] - b[i] for every i; an undefined tensor counts as zeros.
Tensors sub(List a, List b);
/// Returns every tensor times a number, or times a tensor of one element.
Tensors scale(List a, Scalar by);
Tensors scale(List a, const Tensor& by);
/// Returns one number []: the inner product of the two lists as if each were one vector, the sum over i of the inner
/// products of a[i] and b[i]. Throws ValueError where no pair is defined.
Tensor dot(List a, List b);
/// Returns one number []: the Euclidean norm of all elements of all tensors, as torch.nn.utils.get_total_norm. Throws
/// ValueError where no tensor is defined.
Tensor norm(List a);
/// Returns the same tensors, detached from every tape: constants for gradients.
Tensors detach(List a);
/// Returns zeros of the shapes and dtypes of the tensors; undefined ones stay undefined.
Tensors zeros_like(List a);
/// Returns whether all elements of all tensors are finite. Reads values: throws TraceError while a function is traced.
bool all_finite(List a);

/// Joins all elements into one vector [n]: the tensors row-major, in the order of the list. Throws ValueError for an
/// undefined tensor and an empty list, DtypeError for tensors of different dtypes.
Tensor flatten(List a);
/// Splits a vector [n] into a list of tensors with the shapes of `like`: the inverse of `flatten`. Throws ShapeError
/// unless n is the number of their elements.
Tensors unflatten(const Tensor& vector, List like);

}  // namespace ferrite::lists

namespace ferrite {

/// Returns the values of all parameters as one vector [n], row-major as this library holds them (a linear layer's
/// weight is [in, out]), in the order of the list: torch.nn.utils.parameters_to_vector. Under a Tape its gradient
/// reaches the parameters. Throws as lists::flatten does.
Tensor parameters_to_vector(std::span<const Parameter> parameters);
Tensor parameters_to_vector(const std::vector<Parameter>& parameters);
/// Assigns each parameter its part of a vector, in the order of `parameters_to_vector`. Throws ShapeError or DtypeError
/// before any parameter has changed.
void vector_to_parameters(const Tensor& vector, std::span<const Parameter> parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Parameter>& parameters);

}  // namespace ferrite
