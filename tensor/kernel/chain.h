#pragma once
/// Chains of cheap operations on values that stay in registers: each operation reads the result of the one before, with
/// or without another operand from memory. They use the operations' own functions, so the bits are those of one loop
/// for each operation.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// Returns the code that begins a chain.
const LinkKernel* link_from(bool repeated);
/// Returns the code that applies an operation to the chain's value as operand `at`; the other operand, if there is one,
/// is a run or one line of a repeated value. Null where there is no such code: the operation must be cheap and the
/// dtype f32.
const LinkKernel* link_through(const Primitive& op, std::size_t at, bool repeated);
/// Returns the code of a sum, difference or product whose other operand is itself a product of two values.
const LinkKernel* link_through_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2);
/// Returns the code that ends a chain. With `in_memory` the results bypass the caches; other threads see them after
/// `end_streaming`.
const LinkKernel* link_to(bool in_memory);
void end_streaming();

/// Runs a chain over rows of elements. Whole packets only: a single row may end within one, if reading and writing the
/// rest does no harm; several rows hold whole lines.
void run_chain(const Link* links, const ChainRows& rows);

}  // namespace ferrite::detail
