#pragma once
/// Generators: random tensors that a compiled function draws again in every run.
#include <cstdint>
#include <string_view>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// A stream of random tensors whose position is a variable: every draw takes the next call number, also in every run of
/// a compiled function, where a plain `RandomKey` would give the same numbers each time.
///
///   const Generator noise(/*seed=*/7);
///   auto sample = compile([&](const Tensor& mean) { return mean + noise.normal(mean.shape()); });
///
/// Draws depend only on the seed, the name and the number of the call: they are the same on every machine, for any
/// number of threads, eager and compiled. Copies share the variables. To repeat draws, save the value of `calls` and
/// assign it. Must not be drawn from by several threads at once. Throws what uniform, normal and bernoulli throw
/// (tensor/random.h).
class Generator {
 public:
  /// Makes a generator whose stream is the hash of the name; generators of other names draw other numbers.
  explicit Generator(std::uint64_t seed, std::string_view name = "generator");

  /// Draws as the functions of the same names (tensor/random.h), and advances `calls` by 1.
  Tensor uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::f32) const;
  Tensor normal(const Shape& shape, double mean = 0, double deviation = 1, Dtype dtype = Dtype::f32) const;
  Tensor bernoulli(const Shape& shape, double probability, Dtype dtype = Dtype::f32) const;

  State calls;  ///< the number of the next draw: i64, rank 0
  State key;    ///< seed and stream: i64 [2]

 private:
  template <class F>
  Tensor draw(F&& f) const;
};

}  // namespace ferrite
