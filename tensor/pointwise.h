#pragma once
/// What the records of operations check and run alike: literals, common shapes and dtypes, pointwise evaluation.
#include <string>
#include <string_view>

#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

/// Common shape and dtype of tensors and literals. Throws ShapeError, DtypeError.
void infer_pointwise(const Primitive& op, Types types, Inputs in, const Attrs& attrs, Spec& out);
/// Fills `out` (allocated, contiguous) with a pointwise operation of broadcast, strided operands.
void eval_pointwise(const Primitive& op, Inputs in, Tensor& out, const Attrs& attrs);
/// Applies a pointwise operation of operands that may be literals. Throws ValueError when all of them are.
Tensor call_pointwise(const Primitive& op, std::initializer_list<const Operand*> operands);

/// All operands of a pointwise operation, literals as tensors of one element.
Tensors with_literals(std::size_t arity, Inputs in, const Attrs& attrs);

/// Types of a composite's results, by running its parts on types alone.
Specs infer_composite(const Primitive& op, Inputs in, const Attrs& attrs);
/// Whether those who listen record a composite as one application: all of them want that, or it has a gradient.
inline bool is_recorded_whole(const Frame& f, const Primitive& op) {
  return !f.recorders.empty() && (f.keeps_composites || op.differentiable());
}
/// Records an application of a composite as one. Nothing is computed while that is only traced.
Tensors record_composite(const Primitive& op, Inputs in, const Attrs& attrs);
/// A composite by its record: one application, or its parts, as those who listen want it.
Tensors apply_composite(const Primitive& op, Inputs in, const Attrs& attrs);

/// Throws DtypeError for a float literal with integers, ValueError for an integer that i32 cannot hold.
void check_literal(std::string_view where, Scalar literal, Dtype dtype);
[[noreturn]] void throw_shape(std::string_view where, const std::string& what);
[[noreturn]] void throw_dtype(std::string_view where, const std::string& what);
/// An operation without a kernel whose view of x does not exist.
[[noreturn]] void throw_no_view(const Primitive& op, const Tensor& x);
[[noreturn]] void throw_axis(std::string_view where, std::int64_t axis, int rank);

/// Throws ShapeError unless a constant is one of the axes 0..rank - 1: functions resolve axes, the text of a program
/// may say anything.
inline void check_axis(std::string_view where, std::int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) throw_axis(where, axis, rank);
}
/// The same for a list of axes, none of which stands there twice.
inline void check_axes(std::string_view where, const Shape& axes, int rank) {
  std::uint32_t used = 0;
  for (const std::int64_t a : axes) {
    check_axis(where, a, rank);
    if ((used >> a & 1) != 0) throw_shape(where, "axis " + std::to_string(a) + " is given twice");
    used |= std::uint32_t{1} << a;
  }
}

}  // namespace ferrite::detail
