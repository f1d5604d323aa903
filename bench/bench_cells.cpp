// Layers of cells that users write: microseconds of a forward pass and of a training step with Adam, compared with
// those of the nearest built-in fused layer (the column `limit`).
//   bench_cells [--kinds plain_gru,peephole_lstm,minimal_gated,layer_norm_gru] [--seconds 0.15] [--json FILE]
#include "own_cells.h"

int main(int argc, char** argv) { return bench::run_grid({"forward", "train"}, bench::own_kinds(), argc, argv); }
