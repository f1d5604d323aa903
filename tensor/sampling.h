#pragma once
/// Random draws from more distributions than uniform and normal (tensor/random.h): integers, exponential, Laplace,
/// Gumbel, truncated normal, gamma, beta and Poisson numbers, choices from weights or logits, permutations. As there,
/// every number is a function of seed, stream, call and position alone: the same for any number of threads, eager and
/// compiled. No function is differentiable with respect to its parameters. All throw DtypeError and ShapeError for
/// operands of other types, and ValueError for parameters outside the ranges below.
#include <cstdint>

#include "ferrite/tensor/generator.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The source of a draw's random numbers: a constant key, as `{.seed = 7}` in the overloads below; a key and a counter
/// that are values of the program (tensor/random.h); or the next draw of a generator, whose counter advances after the
/// draw.
///
///     const Generator noise(7);
///     const Tensor next = categorical(logits, noise);   // other numbers in every call and every run
class DrawKey {
 public:
  DrawKey(const RandomKey& key) : constant_(key) {}
  /// Draws from a constant key; `counter`, i64 of one element, is added to key.call.
  DrawKey(const RandomKey& key, const Tensor& counter) : constant_(key), counter_(counter) {}
  /// Draws from values of the program: key i64 [2], seed and stream, and a counter.
  DrawKey(const Tensor& key, const Tensor& counter) : key_(key), counter_(counter) {}
  /// Takes the next draw of a generator, which must outlive the key.
  DrawKey(const Generator& generator);

  /// Returns the constant key, which counts only where `key` is undefined.
  const RandomKey& constant() const { return constant_; }
  /// Returns the key tensor; undefined where the key is constant.
  const Tensor& key() const { return key_; }
  /// Returns the counter; undefined for a constant key without one.
  const Tensor& counter() const { return counter_; }
  /// Advances the counter of a generator. Called after a draw.
  void drawn() const;

 private:
  RandomKey constant_{};
  Tensor key_{}, counter_{};
  const Generator* generator_ = nullptr;
};

// ---- numbers -------------------------------------------------------------------------------------------------

/// Draws integers in [low, high), i64 or i32, all equally likely up to 1 in 2^64. Throws ValueError unless low < high,
/// and for bounds that the dtype cannot hold.
Tensor randint(const Shape& shape, const DrawKey& key, std::int64_t low, std::int64_t high, Dtype dtype = Dtype::i64);
Tensor randint(const Shape& shape, const RandomKey& key, std::int64_t low, std::int64_t high, Dtype dtype = Dtype::i64);

/// Draws exponential numbers, above 0, of density rate e^(-rate x). Throws ValueError unless the rate is positive and
/// finite.
Tensor exponential(const Shape& shape, const DrawKey& key, double rate = 1, Dtype dtype = Dtype::f32);
Tensor exponential(const Shape& shape, const RandomKey& key, double rate = 1, Dtype dtype = Dtype::f32);

/// Draws Laplace numbers of density e^(-|x - mean| / scale) / (2 scale). Throws ValueError unless mean and scale are
/// finite and the scale is not negative.
Tensor laplace(const Shape& shape, const DrawKey& key, double mean = 0, double scale = 1, Dtype dtype = Dtype::f32);
Tensor laplace(const Shape& shape, const RandomKey& key, double mean = 0, double scale = 1, Dtype dtype = Dtype::f32);

/// Draws Gumbel numbers: location - scale ln(-ln u), u uniform in (0, 1). Throws as laplace.
Tensor gumbel(const Shape& shape, const DrawKey& key, double location = 0, double scale = 1, Dtype dtype = Dtype::f32);
Tensor gumbel(const Shape& shape, const RandomKey& key, double location = 0, double scale = 1,
              Dtype dtype = Dtype::f32);

/// The distribution of `truncated_normal`: mean and standard deviation before truncation, and the bounds.
struct TruncatedNormal {
  double mean = 0, deviation = 1;
  double low = -2, high = 2;  ///< bounds of the values themselves, not in deviations; may be infinite
};
/// Draws normal numbers between two bounds, by the inverse distribution function. Throws ValueError unless mean and
/// deviation are finite, the deviation is positive and low < high.
Tensor truncated_normal(const Shape& shape, const DrawKey& key, const TruncatedNormal& from = {},
                        Dtype dtype = Dtype::f32);
Tensor truncated_normal(const Shape& shape, const RandomKey& key, const TruncatedNormal& from = {},
                        Dtype dtype = Dtype::f32);

/// Draws a gamma number of rate 1 for every concentration (shape parameter), f32 or f64 (Marsaglia and Tsang 2000).
/// Throws ValueError for a concentration that is not positive and finite, also in compiled functions.
Tensor gamma(const Tensor& concentration, const DrawKey& key);
Tensor gamma(const Tensor& concentration, const RandomKey& key);

/// Draws a beta number for every pair of concentrations of one shape: X / (X + Y) of gamma numbers. Throws as gamma.
Tensor beta(const Tensor& a, const Tensor& b, const DrawKey& key);
Tensor beta(const Tensor& a, const Tensor& b, const RandomKey& key);

/// Draws a Poisson number for every rate, its mean; results have its shape and dtype, f32 or f64 (below 10 by
/// inversion, else Hormann's PTRS 1993). Throws ValueError for a rate that is negative or not finite, also in compiled
/// functions.
Tensor poisson(const Tensor& rate, const DrawKey& key);
Tensor poisson(const Tensor& rate, const RandomKey& key);

// ---- choices -------------------------------------------------------------------------------------------------

/// Draws n positions on the last axis for every row, each as likely as its weight: weights [..., C], which need not add
/// up to 1, -> i64 [..., n]. Without replacement no position comes twice; positions are in the order of drawing. Throws
/// ValueError for n below 1, weights that are negative or not finite, rows with no positive weight and, without
/// replacement, rows with fewer than n; also in compiled functions.
Tensor multinomial(const Tensor& weights, std::int64_t n, const DrawKey& key, bool replacement = false);
Tensor multinomial(const Tensor& weights, std::int64_t n, const RandomKey& key, bool replacement = false);

/// Draws one class for every row with the probabilities of softmax: logits [..., C] -> i64 [...]. Throws ValueError for
/// NaN and rows that are all -infinity.
Tensor categorical(const Tensor& logits, const DrawKey& key);
Tensor categorical(const Tensor& logits, const RandomKey& key);

/// Options of `filter_logits` and `sample_logits`: the temperature, and the classes that remain.
struct SamplingOptions {
  double temperature = 1;  ///< divisor of the logits; 0: only the largest remains, the first one of equals
  std::int64_t top_k = 0;  ///< number of the largest classes that remain, the first ones of equals; 0: all
  double top_p = 1;        ///< of these, the fewest, largest first, with this part of their probability; at least one
};
/// Returns logits [..., C] / temperature, with -infinity for classes that are not kept. Gradients reach those that are.
/// Throws ValueError for a temperature that is negative or not finite, a negative top_k and a top_p outside 0..1.
Tensor filter_logits(const Tensor& logits, const SamplingOptions& options);
/// Draws a class for every row from those that filter_logits keeps: logits [..., C] -> i64 [...]. Throws as
/// filter_logits and categorical.
Tensor sample_logits(const Tensor& logits, const DrawKey& key, const SamplingOptions& options = {});
Tensor sample_logits(const Tensor& logits, const RandomKey& key, const SamplingOptions& options = {});

/// Returns the numbers 0..n - 1 in random order, i64 [n]: an operation, which a compiled function runs again in every
/// call, whereas permutation(n, RandomKey) gives it a constant.
Tensor permutation(std::int64_t n, const DrawKey& key);
/// Returns x with its slices along an axis in random order, by one permutation for all other axes.
Tensor shuffle(const Tensor& x, const DrawKey& key, std::int64_t axis = 0);
Tensor shuffle(const Tensor& x, const RandomKey& key, std::int64_t axis = 0);

}  // namespace ferrite
