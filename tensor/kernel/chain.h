#pragma once
/// Cheap operations one after another on values that stay in registers: what one gives the next one reads, with another
/// operand from memory or without. The operations' own functions, so the bits are those of one loop for each.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// The code that begins a chain.
const LinkKernel* link_from(bool repeated);
/// The code of an operation on the chain's value as operand `at` of it, the other operand (if there is one) a run or
/// one line of a repeated value. Null where there is none: the operation must be cheap; the dtype is f32.
const LinkKernel* link_through(const Primitive& op, std::size_t at, bool repeated);
/// The same with a product of two for the other operand; for sums, differences and products.
const LinkKernel* link_through_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2);
/// The code that ends a chain. `in_memory`: the results go past the caches; other threads see them after
/// `end_streaming`.
const LinkKernel* link_to(bool in_memory);
void end_streaming();

/// Runs a chain over rows of elements. Whole packets only: a single row may end within one, if reading and writing the
/// rest does no harm; several rows hold whole lines.
void run_chain(const Link* links, const ChainRows& rows);

}  // namespace ferrite::detail
