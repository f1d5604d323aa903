#pragma once
/// Cells that users write, as layers through nn::custom: those of examples/custom_cell and nn::LayerNormGruCell.
#include "jobs.h"

namespace bench {

/// Returns the kinds of cells: plain_gru, peephole_lstm, minimal_gated, layer_norm_gru.
const std::vector<std::string>& own_kinds();
bool is_own(const std::string& kind);
/// Returns the number of columns of all weights of x, divided by H.
std::int64_t own_gates(const std::string& kind);

/// Returns the job of a name. forward: x [B, T, D = H] -> all outputs. train: the mean of their squares, gradients and
/// Adam. The prefix `limit_` selects the nearest built-in fused layer: nn::Lstm for the peephole LSTM, nn::Gru for the
/// others.
std::function<void()> own_job(const std::string& name, const Cell& cell);

/// Returns the values that the peers must also compute from equal parameters and data (compare/own_cells.py): for
/// `forward` the outputs of the last step, for `train` the losses of the first three steps.
std::vector<float> own_values(const std::string& name, const Cell& cell);

}  // namespace bench
