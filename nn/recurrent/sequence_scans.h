#pragma once
/// Recurrent layers in training as scans: forward with what is saved for the gradient, and the gradient.
#include "ferrite/compile/graph.h"

namespace ferrite::nn::detail {

/// Returns whether a node is a sequence of a recurrent layer that saves, or the gradient of one, which have scans here.
bool has_scan(const Graph& g, const Graph::Node& n);
/// Computes such an operation by scans of plain operations, in the order of the kernels.
Tensors as_scan(const Graph::Node& n, const Tensors& in);

}  // namespace ferrite::nn::detail
