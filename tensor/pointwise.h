#pragma once
/// Code that the records of operations share: checks of literals, shapes and dtypes, and pointwise evaluation.
#include <string>
#include <string_view>

#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

/// Finds the common shape and dtype of tensors and literals. Throws ShapeError, DtypeError.
void infer_pointwise(const Primitive& op, Types types, Inputs in, const Attrs& attrs, Spec& out);
/// Fills `out` (allocated, contiguous) with a pointwise operation of broadcast, strided operands.
void eval_pointwise(const Primitive& op, Inputs in, Tensor& out, const Attrs& attrs);
/// Applies a pointwise operation of operands that may be literals. Throws ValueError when all of them are.
Tensor call_pointwise(const Primitive& op, std::initializer_list<const Operand*> operands);

/// Returns all operands of a pointwise operation, with literals as tensors of one element.
Tensors with_literals(std::size_t arity, Inputs in, const Attrs& attrs);

/// Returns the types of a composite's results by running its parts on abstract tensors.
Specs infer_composite(const Primitive& op, Inputs in, const Attrs& attrs);
/// Returns whether the recorders of f see a composite as one application: all of them ask for that, or it has a
/// gradient.
inline bool is_recorded_whole(const Frame& f, const Primitive& op) {
  return !f.recorders.empty() && (f.keeps_composites || op.differentiable());
}
/// Records an application of a composite as one operation. Computes nothing while tracing.
Tensors record_composite(const Primitive& op, Inputs in, const Attrs& attrs);
/// Applies a composite as one application or as its parts, whichever the recorders ask for.
Tensors apply_composite(const Primitive& op, Inputs in, const Attrs& attrs);

/// Throws DtypeError for a float literal with integers, ValueError for an integer that i32 cannot hold.
void check_literal(std::string_view where, Scalar literal, Dtype dtype);
[[noreturn]] void throw_shape(std::string_view where, const std::string& what);
[[noreturn]] void throw_dtype(std::string_view where, const std::string& what);
/// Throws the error for an operation without a kernel when its view of x does not exist.
[[noreturn]] void throw_no_view(const Primitive& op, const Tensor& x);
[[noreturn]] void throw_axis(std::string_view where, std::int64_t axis, int rank);

/// Throws ShapeError unless a constant is one of the axes 0..rank - 1. Functions resolve axes, but a program read from
/// text may hold anything.
inline void check_axis(std::string_view where, std::int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) throw_axis(where, axis, rank);
}
/// Throws ShapeError unless all constants are axes 0..rank - 1 and none is given twice.
inline void check_axes(std::string_view where, const Shape& axes, int rank) {
  std::uint32_t used = 0;
  for (const std::int64_t a : axes) {
    check_axis(where, a, rank);
    if ((used >> a & 1) != 0) throw_shape(where, "axis " + std::to_string(a) + " is given twice");
    used |= std::uint32_t{1} << a;
  }
}

}  // namespace ferrite::detail
