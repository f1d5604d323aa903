#pragma once
/// What this machine can do at best: a GRU written by hand for AVX-512 and nothing else, in time and in training, and
/// the training of a perceptron and a small recurrent net sample by sample. Weights stay in the kernel's own order,
/// sizes are padded with zeros, nothing is checked. The yardstick of bench_gru, bench_train, bench_streams and
/// bench_compile.
#include <cstdint>
#include <memory>
#include <vector>

namespace limit {

struct Sizes {
  std::int64_t D = 1, H = 1, T = 1, B = 1;
};

/// Row-major weights with columns r, z, n: w_ih [D, 3H], w_hh [H, 3H], b_ih [3H], b_hh [3H]; to train, also w_out [H,
/// 10], b_out [10].
struct Weights {
  const float* w_ih = nullptr;
  const float* w_hh = nullptr;
  const float* b_ih = nullptr;
  const float* b_hh = nullptr;
  const float* w_out = nullptr;
  const float* b_out = nullptr;
};

inline constexpr std::int64_t kClasses = 10;

/// Returns whether the yardstick runs on this machine.
bool available();

/// A forward pass over a sequence from zero states, or, with T = 1 and B = 1, one step of a stream.
class Forward {
 public:
  virtual ~Forward() = default;
  virtual void run() = 0;
  /// Returns unit j of h at step t in row b.
  virtual float output(std::int64_t t, std::int64_t b, std::int64_t j) const = 0;
};
/// Makes a forward pass over x [B, T, D]. Returns null where the yardstick does not run.
std::unique_ptr<Forward> forward(const Sizes& sizes, const Weights& weights, const float* x);

/// GRU -> last step -> linear(10) -> mean cross-entropy: one step is forward, gradients and Adam.
class Training {
 public:
  virtual ~Training() = default;
  virtual void run() = 0;
  virtual float loss() const = 0;
  /// Gradients of the last training step, by element: of w_ih[k, column], of w_hh[k, column], of w_out[k, c].
  virtual float grad_ih(std::int64_t k, std::int64_t column) const = 0;
  virtual float grad_hh(std::int64_t k, std::int64_t column) const = 0;
  virtual float grad_out(std::int64_t k, std::int64_t c) const = 0;
};
std::unique_ptr<Training> training(const Sizes& sizes, const Weights& weights, const float* x,
                                   const std::vector<std::int64_t>& targets);
/// Makes the training of x [B, D] -> linear(H) -> relu -> linear(10), whose first layer is w_ih [D, H], b_ih [H]. T is
/// 1.
std::unique_ptr<Training> perceptron(const Sizes& sizes, const Weights& weights, const float* x,
                                     const std::vector<std::int64_t>& targets);

/// x [1] -> GRU (3 gates) or LSTM (4) of units -> linear(1) with one row; the last layer is w_out [H], b_out [1]. The
/// state is carried from run to run.
class SampleBySample {
 public:
  virtual ~SampleBySample() = default;
  virtual void run(const float* x, float* y, std::int64_t n) = 0;
};
/// Makes such a net. Returns null where it does not run, and unless there are 8, 12, 16, 20, 24, 32 or 40 units.
std::unique_ptr<SampleBySample> sample_by_sample(std::int64_t units, std::int64_t gates, const Weights& weights);

}  // namespace limit
