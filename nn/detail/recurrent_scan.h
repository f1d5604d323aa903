#pragma once
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent.h"

namespace ferrite::nn::detail {

/// The steps of a kind of cell with these parameters.
Scan scan_of(const CellKind& cell, const RecurrentWeights& weights);

/// All steps of a layer in one direction: outputs, the last h, the last c if there is one.
Tensors run_scan(const Scan& scan, const Tensor& x, const RecurrentState& before, const SequenceOptions& options);

}  // namespace ferrite::nn::detail
