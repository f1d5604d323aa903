#pragma once
/// Passes: from a graph to one that computes the same bits with less.
#include "ferrite/compile/graph.h"

namespace ferrite::passes {

// Each pass rewrites a graph into one that computes the same bits.

/// Replaces composites that stand as one node by the operations that they are made of. The first pass of all plans.
void expand_composites(Graph& g);

/// Drops nodes, constants, reads and variables that no output and no written variable depends on, but for what refuses
/// values (labels, lengths, indices), and numbers the values that are left in order of definition.
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

/// Scans: what nobody reads is not carried, stacked or summed; a single step without sums stands for itself; of two
/// scans of which one gives all that the other does and more, one is left.
void simplify_scans(Graph& g);

/// Drops `detach`, and gradients that a program wrote by hand (autograd/lenient_grad.h): for a program that is run,
/// and not differentiated any more.
void drop_detach(Graph& g);
/// Drops `recompute`: for a program whose gradient stores what it reads.
void drop_recompute(Graph& g);

/// All passes that keep bits, in their order; none that changes what a gradient would be.
void simplify(Graph& g);

}  // namespace ferrite::passes
