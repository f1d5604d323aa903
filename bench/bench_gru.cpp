// Recurrent layers, forward and streamed: microseconds a sequence and a step, compared with the GRU written by hand for
// this machine and the bound set by its peak and its bandwidth.
//   bench_gru [--full] [--kinds gru,lstm,rnn] [--seconds 0.15] [--json FILE]
//   bench_gru --serve        answers lines for bench/compare: see jobs.h
#include "jobs.h"

int main(int argc, char** argv) { return bench::run_grid({"forward", "stream"}, {"gru", "lstm", "rnn"}, argc, argv); }
