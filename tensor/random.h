#pragma once
/// Random numbers as a function of seed, name and position.
#include <array>
#include <cstdint>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Philox4x32-10 (Salmon et al., SC 2011): four random words as a pure function of counter and key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// A point in the space of random streams: element i of a draw depends on (seed, stream, call, i) and on
/// nothing else, so draws are the same on every machine and for any number of threads.
struct RandomKey {
  std::uint64_t seed = 0;
  /// Which variable: `stream_of` its full name, or a number below 2^32. The last bit of a larger one does not count, so
  /// a number that is added to a hash makes no other stream of it: give it as the call.
  std::uint64_t stream = 0;
  std::uint64_t call = 0;  ///< which draw of that variable
};

/// FNV-1a of a name: adding a layer leaves the streams of the others alone.
std::uint64_t stream_of(std::string_view name);

// Draws take their key in one of two forms. A `RandomKey` is a constant of the program: the same numbers in every call,
// but for a `counter`, i64 of one element, that is added to key.call. A key tensor i64 [2] (seed, stream) and a counter
// are values of the program, which a compiled function reads from variables anew in every run (tensor/generator.h).
// None is differentiable. All throw ShapeError and DtypeError for operands of other types.

/// Uniform in [low, high), from 24 bits (f32) or 53 bits (f64) of Philox. Throws ValueError for low > high
/// and for bounds, or a distance of them, that are not finite in the dtype.
Tensor uniform(const Shape& shape, const RandomKey& key, double low = 0, double high = 1, Dtype dtype = Dtype::f32,
               const Tensor& counter = {});
Tensor uniform(const Shape& shape, const Tensor& key, const Tensor& counter, double low = 0, double high = 1,
               Dtype dtype = Dtype::f32);
/// Normal: the inverse distribution function (Wichura's AS 241) of a 53-bit uniform, in f64 arithmetic of our own.
/// Throws ValueError for a negative deviation.
Tensor normal(const Shape& shape, const RandomKey& key, double mean = 0, double deviation = 1, Dtype dtype = Dtype::f32,
              const Tensor& counter = {});
Tensor normal(const Shape& shape, const Tensor& key, const Tensor& counter, double mean = 0, double deviation = 1,
              Dtype dtype = Dtype::f32);
/// 1 with the given probability, else 0. Throws ValueError outside [0, 1].
Tensor bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype = Dtype::f32,
                 const Tensor& counter = {});
Tensor bernoulli(const Shape& shape, const Tensor& key, const Tensor& counter, double probability,
                 Dtype dtype = Dtype::f32);
/// The numbers 0..n-1 in random order, i64 [n] (Fisher and Yates, by rejection without bias).
Tensor permutation(std::int64_t n, const RandomKey& key);

}  // namespace ferrite
