#pragma once
/// Passes: each rewrites a graph into one that computes the same bits with less work.
#include "ferrite/compile/graph.h"

namespace ferrite::passes {

/// Replaces every composite (softmax, layer_norm) that was traced as one node by the operations that it is made of.
/// Every plan runs this pass first.
void expand_composites(Graph& g);

/// Drops nodes, constants, reads and variables that no output and no written variable depends on, except checks that
/// refuse values (labels, lengths, indices), and numbers the remaining values in order of definition.
void remove_dead_code(Graph& g);

/// Merges applications of one operation to the same values with the same constants. Constants are compared bit by bit:
/// 0 is not -0, and random draws with different keys, calls or counters stay apart.
void merge_common_subexpressions(Graph& g);

/// Computes nodes that depend on constants alone, where the result is small, a view, or one value repeated.
void fold_constants(Graph& g);

/// Drops operations that change no bit: x * 1, x / 1, x - 0, x + (-0), negations in pairs, casts there and back, views
/// that change nothing, copies.
void simplify_exactly(Graph& g);

/// Replaces sums of zero-padded pieces that are next to each other, the gradients of slices, by one concatenation of
/// `piece + 0` (which turns -0 into 0, as the sum does).
void join_padded_sums(Graph& g);

/// Picks a few elements of a pointwise operation's operands instead of its result, so that the log-probabilities of a
/// cross-entropy need not be computed for every class. The same operations are applied to the same elements.
void sink_gathers(Graph& g);

/// Simplifies scans: drops carries, stacks and sums that are not read, replaces a scan of a single step without sums by
/// that step, and keeps only one of two scans when it gives all that the other gives.
void simplify_scans(Graph& g);

/// Drops `detach`, and gradients that a program defines itself (autograd/lenient_grad.h), from a program that runs and
/// is not differentiated any more.
void drop_detach(Graph& g);
/// Drops `recompute`, the identity of checkpoints (autograd/lenient_grad.h), from a program whose gradient stores what
/// it reads.
void drop_recompute(Graph& g);

/// Runs all passes that keep bits, in their order; none of them changes what a gradient would be.
void simplify(Graph& g);

}  // namespace ferrite::passes
