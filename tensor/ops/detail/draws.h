#pragma once
/// Shared parts of all draws: random words of Philox and normal numbers from them, constants, the key of an
/// application, and numbers for one element.
#include <algorithm>
#include <array>
#include <cstdint>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/philox.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/sampling.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

/// Returns the four words of Philox for element `index` of a draw.
std::array<std::uint32_t, 4> words_of(const RandomKey& key, std::uint64_t index);
/// Returns 64 random bits for element `index` of a draw.
std::uint64_t bits64(const RandomKey& key, std::uint64_t index);

/// Returns the inputs of Philox from which kernels make the words of element `index` and of those after it.
DrawFrom draw_from(const RandomKey& key, std::uint64_t index);

/// Returns ln x for normal positive x, in plain f64 arithmetic: the same bits on every machine. Within 2 ULP.
double log_positive(double x);
/// Returns the x with P(normal < x) = p, 0 < p < 1 (Wichura 1988, AS 241, PPND16): relative error about 1e-16.
double inverse_normal(double p);

/// The key of a draw, as constants.
struct KeyAttrs {
  std::int64_t seed = 0, stream = 0, call = 0;
  static constexpr auto fields =
      attr_list(attr("seed", &KeyAttrs::seed), attr("stream", &KeyAttrs::stream), attr("call", &KeyAttrs::call));
  static KeyAttrs of(const RandomKey& key) {
    return {static_cast<std::int64_t>(key.seed), static_cast<std::int64_t>(key.stream),
            static_cast<std::int64_t>(key.call)};
  }
  RandomKey key() const {
    return {static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(call)};
  }
};

/// Checks the operands after the first n: none, a counter, or a key and a counter.
void check_key(std::string_view name, Inputs in, std::size_t first);
/// Returns the key of an application: values of its operands take precedence over the constants.
RandomKey key_of(Inputs in, std::size_t first, const KeyAttrs& attrs);

/// The operands of a draw: the first ones, then those of a key.
class DrawOperands {
 public:
  DrawOperands(std::initializer_list<const Tensor*> first, const DrawKey& key) {
    for (const Tensor* x : first) list_.push_back(x);
    if (key.key().defined()) list_.push_back(&key.key());
    if (key.counter().defined()) list_.push_back(&key.counter());
  }
  operator Inputs() const { return {list_.data(), list_.size()}; }

 private:
  InlineVector<const Tensor*, 4> list_;
};

/// Returns a key with another stream of numbers for the same elements.
inline RandomKey lane_of(RandomKey key, std::uint64_t lane) {
  std::uint64_t k = key.seed + 0x9E3779B97F4A7C15U * lane;
  if (lane == 0) return key;
  k = (k ^ (k >> 30)) * 0xBF58476D1CE4E5B9U;
  k = (k ^ (k >> 27)) * 0x94D049BB133111EBU;
  key.seed = k ^ (k >> 31);
  return key;
}

/// Returns a number in (0, 1), from 53 bits.
inline double open_unit(std::uint64_t bits) {
  return std::min(static_cast<double>(bits >> 11) * 0x1p-53 + 0x1p-54, 1 - 0x1p-53);
}
inline double open_unit(const RandomKey& key, std::uint64_t index) { return open_unit(bits64(key, index)); }

/// Returns an integer in [0, range) from 128 bits: the upper half of their product, off by less than 1 in 2^64.
std::uint64_t below(const std::array<std::uint32_t, 4>& words, std::uint64_t range);

/// Writes f(words of Philox) for every element of a result.
template <class T, class F>
void fill_drawn(Tensor& out, const RandomKey& key, F&& f) {
  constexpr std::int64_t kChunk = 1 << 12;
  constexpr auto kStep = static_cast<std::int64_t>(kDrawn);
  const std::int64_t n = out.numel();
  const DrawKernels& kernel = draws_in_use.get();
  T* const to = Writer::data<T>(out);
  parallel_for((n + kChunk - 1) / kChunk, [&](std::int64_t c) {
    const std::int64_t end = std::min(n, (c + 1) * kChunk);
    Drawn drawn;
    for (std::int64_t i = c * kChunk; i < end; i += kStep) {
      kernel.words(draw_from(key, static_cast<std::uint64_t>(i)), drawn);
      for (std::int64_t j = 0; j < std::min(kStep, end - i); ++j)
        to[i + j] = static_cast<T>(f(
            std::array<std::uint32_t, 4>{drawn.words[0][j], drawn.words[1][j], drawn.words[2][j], drawn.words[3][j]}));
    }
  });
}

}  // namespace ferrite::detail
