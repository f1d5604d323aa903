#pragma once
// Streams of one row, run in blocks and single steps of random sizes and compared with the whole sequence.
#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/operations.h"
#include "support/compare.h"

namespace support {

using namespace ferrite;

/// A source of small random numbers for tests.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

/// Streams a sequence [1, T, D] of one row in blocks of random sizes, and collects the outputs.
template <class T>
class InBlocks {
 public:
  InBlocks(nn::Stream& stream, const Tensor& x, std::int64_t width)
      : stream_(stream), x_(x.to_vector<T>()), D_(x.shape()[2]), N_(width) {}
  /// Runs the next n steps.
  void run(std::int64_t n) {
    std::vector<T> y(static_cast<std::size_t>(n * N_));
    const std::span<const T> x = std::span<const T>(x_).subspan(y_.size() / size(N_) * size(D_), size(n * D_));
    n == 1 ? stream_.step(x, y) : stream_.steps(n, x, y);
    y_.insert(y_.end(), y.begin(), y.end());
  }
  std::int64_t left() const {
    return static_cast<std::int64_t>(x_.size()) / D_ - static_cast<std::int64_t>(y_.size()) / N_;
  }
  void run_all(Dice& dice) {
    while (left() > 0) run(std::min(left(), dice.once_in(3) ? dice.between(1, 9) : dice.between(1, 150)));
  }
  Tensor y() const { return Tensor::from(std::span<const T>(y_), {1, static_cast<std::int64_t>(y_.size()) / N_, N_}); }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  nn::Stream& stream_;
  std::vector<T> x_, y_;
  std::int64_t D_, N_;
};

/// Returns random numbers x [1, steps, width].
inline Tensor sequence_of(std::int64_t steps, std::int64_t width, Dtype dtype, std::uint64_t seed) {
  return cast(uniform({1, steps, width}, {seed, 3, 1}, -2, 2), dtype);
}

/// Returns whether a stream in blocks of random sizes has the bits of the whole sequence.
template <class T>
void check(const nn::Layer& net, const Tensor& x, Dice& dice) {
  const Tensor whole = net(x);
  nn::Stream stream = net.stream();
  InBlocks<T> blocks(stream, x, whole.shape()[2]);
  blocks.run_all(dice);
  BOOST_TEST(identical(blocks.y(), whole));
}

}  // namespace support
