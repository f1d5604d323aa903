#pragma once
/// The list of all cells that have kernels. A cell's folder (nn/recurrent/gru) has the rest: its step in operations,
/// and what its kernels do forward and backward.
#include "ferrite/nn/recurrent/detail/gated_cell.h"

namespace ferrite::nn::detail {

struct CellOperations;
extern const CellOperations gru_operations, gru_reset_before_operations, lstm_operations, peephole_lstm_operations,
    rnn_operations, rnn_relu_operations;
/// In the order of nn::operations().
inline constexpr const CellOperations* kCellOperations[] = {
    &gru_operations,          &lstm_operations, &rnn_operations, &rnn_relu_operations, &gru_reset_before_operations,
    &peephole_lstm_operations};

extern const CellFunctions gru_functions, gru_reset_before_functions, lstm_functions, peephole_lstm_functions,
    rnn_functions, rnn_relu_functions;
using CellTables = ferrite::detail::FloatTablesInUse<CellKernels>;
extern const CellTables gru_in_use, gru_reset_before_in_use, lstm_in_use, peephole_lstm_in_use, rnn_in_use,
    rnn_relu_in_use;

/// Gates r, z, n; saves r, z, n and h W_hn + b_hn. The cotangents of n differ for x and h: places n of h, r, z, n of x.
inline constexpr GatedCell kGru = {.name = "gru",
                                   .functions = &gru_functions,
                                   .kernels = &gru_in_use,
                                   .gates = 3,
                                   .passes_h = true,
                                   .saved = 4,
                                   .places = 4,
                                   .input_place = 1,
                                   .product_place = {1, 2, 0}};
/// The product for n takes r h; saves r, z, n.
inline constexpr GatedCell kGruResetBefore = {.name = "gru",
                                              .functions = &gru_reset_before_functions,
                                              .kernels = &gru_reset_before_in_use,
                                              .gates = 3,
                                              .late_gates = 1,
                                              .passes_h = true,
                                              .saved = 3};
/// Gates i, f, g, o; saves these and c'.
inline constexpr GatedCell kLstm = {.name = "lstm",
                                    .functions = &lstm_functions,
                                    .kernels = &lstm_in_use,
                                    .gates = 4,
                                    .has_memory = true,
                                    .projects = true,
                                    .saved = 5,
                                    .saved_c = 4};
/// The same, with the weights of c in i, of c in f and of c' in o.
inline constexpr GatedCell kPeepholeLstm = {.name = "peephole_lstm",
                                            .functions = &peephole_lstm_functions,
                                            .kernels = &peephole_lstm_in_use,
                                            .gates = 4,
                                            .has_memory = true,
                                            .vectors = 3,
                                            .saved = 5,
                                            .saved_c = 4};
inline constexpr GatedCell kRnn = {.name = "rnn", .functions = &rnn_functions, .kernels = &rnn_in_use};
inline constexpr GatedCell kRnnRelu = {.name = "rnn", .functions = &rnn_relu_functions, .kernels = &rnn_relu_in_use};

}  // namespace ferrite::nn::detail
