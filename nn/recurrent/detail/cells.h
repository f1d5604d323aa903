#pragma once
/// The list of all cells that have kernels. A cell's folder (nn/recurrent/gru) has the rest: its step in operations,
/// and what its kernels do forward and backward.
#include "ferrite/nn/recurrent/detail/gated_cell.h"

namespace ferrite::nn::detail {

struct CellFamily;
extern const CellFamily gru_family, lstm_family, peephole_lstm_family, rnn_family;
/// Cells that share an operation, in the order of nn::operations().
inline constexpr const CellFamily* kFamilies[] = {&gru_family, &lstm_family, &rnn_family, &peephole_lstm_family};

extern const CellFunctions gru_functions, gru_reset_before_functions, lstm_functions, peephole_lstm_functions,
    rnn_functions, rnn_relu_functions;

/// Gates r, z, n; saves r, z, n and h W_hn + b_hn. The cotangents of n differ for x and h: places n of h, r, z, n of x.
inline constexpr GatedCell kGru = {.name = "gru",
                                   .functions = &gru_functions,
                                   .gates = 3,
                                   .passes_h = true,
                                   .saved = 4,
                                   .places = 4,
                                   .input_place = 1,
                                   .product_place = {1, 2, 0}};
/// The product for n takes r h; saves r, z, n.
inline constexpr GatedCell kGruResetBefore = {
    .name = "gru", .functions = &gru_reset_before_functions, .gates = 3, .late_gates = 1, .passes_h = true, .saved = 3};
/// Gates i, f, g, o; saves these and c'.
inline constexpr GatedCell kLstm = {.name = "lstm",
                                    .functions = &lstm_functions,
                                    .gates = 4,
                                    .has_memory = true,
                                    .projects = true,
                                    .saved = 5,
                                    .saved_c = 4};
/// The same, with the weights of c in i, of c in f and of c' in o.
inline constexpr GatedCell kPeepholeLstm = {.name = "peephole_lstm",
                                            .functions = &peephole_lstm_functions,
                                            .gates = 4,
                                            .has_memory = true,
                                            .vectors = 3,
                                            .saved = 5,
                                            .saved_c = 4};
inline constexpr GatedCell kRnn = {.name = "rnn", .functions = &rnn_functions};
inline constexpr GatedCell kRnnRelu = {.name = "rnn", .functions = &rnn_relu_functions};

inline constexpr const GatedCell* kCells[] = {&kGru, &kGruResetBefore, &kLstm, &kRnn, &kRnnRelu, &kPeepholeLstm};
inline constexpr int kCellCount = sizeof(kCells) / sizeof(kCells[0]);

constexpr int index_of(const GatedCell& cell) {
  int k = 0;
  while (kCells[k] != &cell) ++k;
  return k;
}

}  // namespace ferrite::nn::detail
