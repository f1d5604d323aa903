#pragma once
/// Conversion of a stream of rows from one sample rate to another.
#include <cstdint>
#include <memory>

namespace ferrite::nn::detail {

/// Converts rows of f32 from one rate to another, as they come. Row u of the result belongs to the time u / to, and is
/// the sum of `kTerms` rows of the lower rate around it, weighted by a sine under a Kaiser window (J. O. Smith,
/// "Digital Audio Resampling Home Page", https://ccrma.stanford.edu/~jos/resample/). After construction nothing is
/// allocated.
class RateConversion {
 public:
  static constexpr std::int64_t kTerms = 64;             ///< terms of a sum, in rows of the lower rate
  static constexpr std::int64_t kMostRatio = 16;         ///< of the rates
  static constexpr std::int64_t kMostWeights = 1 << 22;  ///< of all phases together

  /// Returns whether there is a conversion between two rates in whole Hz: their ratio is at most kMostRatio, and they
  /// have enough in common for a table of weights of moderate size.
  static bool possible(std::int64_t from, std::int64_t to);

  /// `ahead` is the number of rows that may be pushed before results are pulled.
  RateConversion(std::int64_t from, std::int64_t to, std::int64_t width, std::int64_t ahead);

  /// Returns by how many rows pushed a result comes after the row of its own time.
  std::int64_t wait() const { return half_; }
  /// Takes a row of the input.
  void push(const float* row);
  /// Returns whether the next result is complete.
  bool ready() const { return missing_ <= 0; }
  /// Writes the next result, which must be complete.
  void pull(float* row);
  /// Returns to the beginning, before which all rows are zeros.
  void reset();

 private:
  std::int64_t width_, half_, terms_;  ///< half_: terms at and after the time of a result
  std::int64_t up_, down_;             ///< to / from in lowest terms
  std::int64_t length_;                ///< rows that are kept
  std::unique_ptr<float[]> weights_;   ///< [up, terms]
  std::unique_ptr<float[]> held_;      ///< [width, 2 length]: every row twice, so that any `terms_` are in one piece
  std::int64_t at_ = 0;                ///< where the next row is put
  std::int64_t missing_ = 0;           ///< rows that the next result still needs; negative: rows beyond those
  std::int64_t phase_ = 0;             ///< of the next result, in 1 / up of a row
};

}  // namespace ferrite::nn::detail
