#pragma once
/// A function at a point, with the products of its Jacobian there.
#include <functional>
#include <string_view>
#include <vector>

#include "ferrite/autograd/tape.h"

namespace ferrite::detail {

/// f at a point. One evaluation serves any number of products with the Jacobian from either side.
class Linearized {
 public:
  /// Throws ValueError for a null function, no inputs and an undefined result, DtypeError for inputs that are not
  /// floats; `who` begins the messages.
  Linearized(std::string_view who, const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs);

  const Tensors& values() const { return values_; }
  /// J'u for cotangents of the values; an undefined one counts as zeros. Once `last` is given, nothing more may be
  /// asked for.
  Tensors pull_back(const Tensors& cotangents, bool last = false);
  /// J v for tangents of the inputs; an undefined one counts as zeros.
  Tensors push_forward(const Tensors& tangents);

 private:
  Tape tape_;
  Tensors variables_, values_;
  std::vector<std::size_t> floats_;  ///< the values that have a gradient
};

/// Throws ShapeError unless every tensor has the shape and gradient_dtype of its counterpart, ValueError unless there
/// are as many: "jvp: the tangent of input 0 must be f32[3], got f32[2]".
void check_like(std::string_view who, std::string_view what, const Tensors& given, const Tensors& like);

}  // namespace ferrite::detail
