#pragma once
/// Programs in which operations of layers and optimisers are loops and pointwise operations with the same bits.
#include "ferrite/compile/graph.h"

namespace ferrite::exchange::detail {

/// Returns a program with the same results, bit for bit, in which
///
/// - a sequence of a GRU, an LSTM or an Elman network is a scan of its steps, and its gradient a scan in the other
///   direction, which adds up the gradients of weights. What the gradient needs of each step are stacks [T, B, H]: the
///   GRU's r, z, n and h W_hn + b_hn, the LSTM's i, f, g, o and c;
/// - `rule_update`, an optimiser's update of one parameter, is its formula in pointwise operations.
///
/// `adam_begin` stays: t + 1 and 1 - beta^t by the C library's pow, which the operation `pow` does not round alike.
/// Variables stay what they are. Throws ValueError, naming the operation and its layer, for sequences with lengths,
/// resets or a projection, for other cells, and for gates that are recomputed.
Graph plain_operations(const Graph& graph);

}  // namespace ferrite::exchange::detail
