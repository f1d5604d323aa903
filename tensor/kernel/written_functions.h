#pragma once
/// The library's pointwise operations as recorded expressions: what exchange/freeze prints.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ferrite/tensor/kernel/written.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// The recorded expression of a function: values in an order in which each follows its operands. An operand of the
/// function is a value with the name `kWrittenOperand`, whose bits are its position.
struct WrittenFunction {
  std::vector<WrittenNode> values;
  std::vector<std::int32_t> operands;
  std::int32_t result = -1;  ///< -1: the operation has no functor
};
inline constexpr const char* kWrittenOperand = "operand";

/// Records an operation of f32 or f64. Conditions and results of comparisons are integers, -1 or 0.
WrittenFunction written_function(const Primitive& op, Dtype dtype);

/// The family and place of an operation's functor in the lists of tensor/kernel/functors.h; -1: it has none there.
struct WrittenPlace {
  int family = -1, place = -1;
};
WrittenPlace written_place(const Primitive& op);

}  // namespace ferrite::detail
