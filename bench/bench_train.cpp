// Layer -> last step -> linear(10) -> cross-entropy: microseconds a training step with Adam, compared with the same
// written by hand for this machine (the GRU) and the bound set by its peak and its bandwidth.
//   bench_train [--full] [--kinds gru,lstm,rnn] [--seconds 0.15] [--json FILE]
#include "jobs.h"

int main(int argc, char** argv) { return bench::run_grid({"train"}, {"gru", "lstm", "rnn"}, argc, argv); }
