#pragma once
/// Random numbers as a function of seed, name and position.
#include <array>
#include <cstdint>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Returns four random words as a pure function of counter and key: Philox4x32-10 (Salmon et al., SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The source of the random numbers of one draw: element i of a draw depends on (seed, stream, call, i) only, so draws
/// are the same on every machine and for any number of threads.
struct RandomKey {
  std::uint64_t seed = 0;
  /// The variable that draws: `stream_of` its full name, or a number below 2^32. The last bit of a larger number is
  /// ignored, so adding a number to a hash does not always make another stream: use `call` for that.
  std::uint64_t stream = 0;
  std::uint64_t call = 0;  ///< number of the draw of that variable
};

/// Returns the stream of a name, its FNV-1a hash: adding a layer leaves the streams of the others unchanged.
std::uint64_t stream_of(std::string_view name);

// Draws take their key in one of two forms. A `RandomKey` is a constant of the program: the same numbers in every call,
// but for a `counter`, i64 of one element, that is added to key.call. A key tensor i64 [2] (seed, stream) and a counter
// are values of the program, which a compiled function reads from variables in every run (tensor/generator.h). No draw
// is differentiable. All throw ShapeError and DtypeError for operands of other types.

/// Draws uniform numbers in [low, high), from 24 bits (f32) or 53 bits (f64) of Philox. Throws ValueError for low >
/// high and for bounds, or a distance between them, that are not finite in the dtype.
Tensor uniform(const Shape& shape, const RandomKey& key, double low = 0, double high = 1, Dtype dtype = Dtype::f32,
               const Tensor& counter = {});
Tensor uniform(const Shape& shape, const Tensor& key, const Tensor& counter, double low = 0, double high = 1,
               Dtype dtype = Dtype::f32);
/// Draws normal numbers of a mean and a standard deviation: the inverse distribution function (Wichura's AS 241) of a
/// 53-bit uniform, computed in f64 by the library itself. Throws ValueError for a negative deviation.
Tensor normal(const Shape& shape, const RandomKey& key, double mean = 0, double deviation = 1, Dtype dtype = Dtype::f32,
              const Tensor& counter = {});
Tensor normal(const Shape& shape, const Tensor& key, const Tensor& counter, double mean = 0, double deviation = 1,
              Dtype dtype = Dtype::f32);
/// Draws 1 with the given probability, else 0. Throws ValueError for a probability outside [0, 1].
Tensor bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype = Dtype::f32,
                 const Tensor& counter = {});
Tensor bernoulli(const Shape& shape, const Tensor& key, const Tensor& counter, double probability,
                 Dtype dtype = Dtype::f32);
/// Returns the numbers 0..n-1 in random order, i64 [n] (Fisher and Yates, by rejection without bias).
Tensor permutation(std::int64_t n, const RandomKey& key);

}  // namespace ferrite
