#pragma once
/// The operations that the library itself knows by identity: the code that rewrites, fuses, steps and differentiates
/// programs asks for these. All other operations are known only by their records.
#include <string_view>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {
namespace ops {

// tensor/ops/arithmetic.cpp
extern const Primitive* const add;
extern const Primitive* const sub;
extern const Primitive* const mul;
extern const Primitive* const div;
extern const Primitive* const neg;

// tensor/ops/functions.cpp
extern const Primitive* const relu;

// tensor/ops/activations.cpp
extern const Primitive* const leaky_relu;

// tensor/ops/views.cpp
extern const Primitive* const reshape;
extern const Primitive* const contiguous;
extern const Primitive* const permute;
extern const Primitive* const expand;
extern const Primitive* const detach;
extern const Primitive* const slice;

// tensor/ops/assembly.cpp
extern const Primitive* const pad;
extern const Primitive* const concat;
extern const Primitive* const stack;

// tensor/ops/creation.cpp
extern const Primitive* const full;

// tensor/ops/logic.cpp
extern const Primitive* const cast;
extern const Primitive* const where;

// tensor/ops/product.cpp
extern const Primitive* const matmul;

// tensor/ops/reductions.cpp
extern const Primitive* const sum;
extern const Primitive* const prod;
extern const Primitive* const amax;
extern const Primitive* const amin;

// tensor/ops/indexing.cpp
extern const Primitive* const gather;

}  // namespace ops

/// Returns the arithmetic operation, function or activation of this name, or null. `find_primitive` finds all
/// operations, but a program that calls it links them all.
const Primitive* elementwise_operation(std::string_view name);

}  // namespace ferrite::detail
