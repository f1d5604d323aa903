#pragma once
/// Cells that users write, as layers through nn::custom: those of examples/custom_cell and nn::LayerNormGruCell.
#include "jobs.h"

namespace bench {

/// The kinds: plain_gru, peephole_lstm, minimal_gated, layer_norm_gru.
const std::vector<std::string>& own_kinds();
bool is_own(const std::string& kind);
/// Columns of all weights of x, over H.
std::int64_t own_gates(const std::string& kind);

/// forward: x [B, T, D = H] -> all outputs. train: the mean of their squares, gradients and Adam. With `limit_` before
/// it the same of the built-in fused layer that is nearest: nn::Lstm for the peephole LSTM, nn::Gru for the others.
std::function<void()> own_job(const std::string& name, const Cell& cell);

/// What the peers must get, too, from equal parameters and data (compare/own_cells.py): of `forward` the outputs of the
/// last step, of `train` the losses of the first three steps.
std::vector<float> own_values(const std::string& name, const Cell& cell);

}  // namespace bench
