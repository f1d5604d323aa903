#pragma once
/// Passes over products before fusion: accumulation in place, copies of transposed operands. Bits stay the same.
#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// A sum of products, as the gradient of a weight that every step reads, is added up in place, product by product:
/// `add_product` of two operands and the sum so far. Without it all products would live until one kernel
/// adds them up.
void accumulate_products(Graph& g);

/// A transposed right operand that several products of few rows read is copied once into the order in which they read
/// it.
void copy_transposed_operands(Graph& g);

/// Whether an operation is a product, added to something or not.
bool is_product(const Primitive& op);

}  // namespace ferrite::detail
