#pragma once
/// Generators: random tensors that a compiled function draws afresh in every run.
#include <cstdint>
#include <string_view>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// A stream of random tensors whose position is a variable: every draw takes the next number of the call, also in
/// every run of a compiled function, where a plain `RandomKey` would give the same numbers for ever.
///
///   const Generator noise(/*seed=*/7);
///   auto sample = compile([&](const Tensor& mean) { return mean + noise.normal(mean.shape()); });
///
/// Draws depend on the seed, the name and the number of the call alone: the same on every machine, for any number of
/// threads, eager and compiled. Copies share the variables. To repeat draws, save the value of `calls` and assign it.
/// Not for draws by several threads at once. Throws what uniform, normal and bernoulli throw (tensor/random.h).
class Generator {
 public:
  /// The stream is the hash of the name.
  explicit Generator(std::uint64_t seed, std::string_view name = "generator");

  Tensor uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::f32) const;
  Tensor normal(const Shape& shape, double mean = 0, double deviation = 1, Dtype dtype = Dtype::f32) const;
  Tensor bernoulli(const Shape& shape, double probability, Dtype dtype = Dtype::f32) const;

  State calls;  ///< i64, rank 0: the number of the next draw
  State key;    ///< i64 [2]: seed and stream

 private:
  template <class F>
  Tensor draw(F&& f) const;
};

}  // namespace ferrite
