#pragma once
/// The work that bench_gru, bench_train, bench_compile and bench/compare time: a recurrent layer over a whole sequence,
/// a step of a stream, or a whole training step, by this library and by the yardstick in bench/limit.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// One entry of the grid. A net is a layer -> last step -> linear(10): gru, lstm or rnn of D = H features, vowels (the
/// demo's GRU, of 12 features), or mlp, which has no steps: linear(H) -> relu on 784 features. Layers of users' cells
/// (own_cells.h) are timed without a net around them.
struct Cell {
  std::string kind;
  std::int64_t H = 1, T = 1, B = 1;
};

/// Returns the job of a name. forward: x [B, T, D] -> all outputs. stream: one step of a stream (T is 1). train: the
/// net -> mean cross-entropy, with gradients and Adam; compiled: the same as one compiled function. The prefix
/// `unrolled_` selects the form in single operations, `limit_` the yardstick. Returns an empty function where there is
/// none (lstm, rnn).
std::function<void()> job(const std::string& name, const Cell& cell);

/// Throws std::runtime_error when the yardstick and the library compute different results: outputs for forward and
/// stream, loss and gradients for train and compiled.
void check_limit(const std::string& name, const Cell& cell);

/// The least time that a job can take: its floating-point operations at the peak, or the weights that it reads (and
/// Adam's traffic) at the bandwidth of a buffer of their size, whichever is longer. Gates are not counted.
class Bounds {
 public:
  Bounds();
  double peak() const { return peak_; }
  double seconds(const std::string& name, const Cell& cell);

 private:
  double bandwidth(double bytes);
  double peak_;
  std::vector<std::pair<double, double>> bandwidths_;
};

/// Times the jobs over the grid of these kinds and prints a table. Options are those in the first lines of the
/// programs. Returns an exit code.
int run_grid(const std::vector<std::string>& jobs, const std::vector<std::string>& kinds, int argc,
             const char* const* argv);
/// Answers lines "job kind H T B seconds" with microseconds, or "none" if there is no such job; for users' cells,
/// answers "check_forward" and "check_train" with the result of own_values.
void serve();

}  // namespace bench
