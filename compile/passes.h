#pragma once
#include "ferrite/compile/graph.h"

namespace ferrite::passes {

// Each pass rewrites a graph into one that computes the same bits.

/// Drops nodes, constants, reads and cells that no output and no written cell depends on, and numbers the values that
/// are left in order of definition.
void remove_dead_code(Graph& g);

/// Merges applications of one operation to the same values with the same constants. Constants are compared by their
/// bits: 0 is not -0, and random draws with other keys, calls or counters stay apart.
void merge_common_subexpressions(Graph& g);

/// Computes what depends on constants alone, where the result is small, a view, or one value repeated.
void fold_constants(Graph& g);

/// Drops what changes no bit: x * 1, x / 1, x - 0, x + (-0), negations in pairs, casts there and back, views that
/// change nothing, copies.
void simplify_exactly(Graph& g);

/// Sums of zero-padded pieces that lie side by side become one concatenation of `piece + 0` (which turns -0 into 0, as
/// the sum does): the gradients of slices.
void join_padded_sums(Graph& g);

/// Picking a few elements of a pointwise result becomes picking from its operands: the log-probabilities of a
/// cross-entropy need not be computed for every class. The same elements meet the same operations.
void sink_gathers(Graph& g);

/// `sum over t of a_t' b_t`: chains of additions of products become one product over the stacked rows. This changes the
/// order of summation (docs/numerics.md, rules 2 and 4), and so the bits: only on request.
void stack_products(Graph& g);

/// All passes that keep bits, in their order.
void simplify(Graph& g);

}  // namespace ferrite::passes
