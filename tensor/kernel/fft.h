#pragma once
/// Plans of Fourier transforms, and the kernels that execute them.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Complex numbers in two arrays: real and imaginary parts.
template <class T>
struct Split {
  T* re;
  T* im;
};

/// One pass of a transform, which splits off sums of `radix` terms (Stockham: no reordering of the elements). It
/// combines the elements p + groups k of a transform, k < radix; `stride` transforms are interleaved.
template <class T>
struct FftPass {
  std::int64_t radix, groups, stride;
  Split<const T> twiddles;  ///< e^(-2 pi i p k / (radix groups)) at [(k - 1) groups + p], k from 1
  Split<const T> roots;     ///< e^(-2 pi i k / radix)
};

template <class T>
struct FftPasses {
  static constexpr int kMost = 40;
  std::int64_t n = 1;
  int count = 0;
  FftPass<T> pass[kMost];
};

/// A transform of a length with a large prime factor as a convolution with a chirp (Bluestein 1970), in f64.
struct FftChirp {
  std::int64_t n;
  FftPasses<double> passes;      ///< of at least 2 n - 1 points, a power of 2
  Split<const double> chirp;     ///< e^(-pi i j^2 / n), n numbers
  Split<const double> response;  ///< the transform of the conjugate chirp around 0, divided by its length
};

/// The plan of a complex transform of n points; of n / 2 points where it serves a real one of even length.
template <class T>
struct FftPlan {
  std::int64_t n;
  FftPasses<T> passes;
  const FftChirp* chirp;    ///< null: `passes` compute the transform
  Split<const T> untangle;  ///< real, even: e^(-2 pi i k / n), k <= n / 2; else null
  T* work;                  ///< 4 arrays of `points`
  double* chirp_work;       ///< 4 arrays of the chirp's points
  std::int64_t points;      ///< points of the complex transform
};

/// Factors of the results. `inner` applies to every element but the first and, where n is even, the middle one; with it
/// and `scale`, rfft and irfft are each other's adjoints.
struct FftScale {
  double scale, inner;
};

template <class T>
struct FftKernels {
  /// Transforms n numbers into n / 2 + 1 pairs. The imaginary parts that are 0 by symmetry are exactly 0.
  void (*rfft)(const FftPlan<T>& plan, const T* x, T* out, FftScale scale);
  /// Transforms n / 2 + 1 pairs into n numbers; imaginary parts that are 0 by symmetry are not read.
  void (*irfft)(const FftPlan<T>& plan, const T* x, T* out, FftScale scale);
  /// Transforms n pairs into n pairs, with e^(-2 pi i / n) or its conjugate.
  void (*fft)(const FftPlan<T>& plan, const T* x, T* out, double scale, bool inverse);
  /// Runs the passes only, for making plans. Returns x or work, whichever holds the result.
  Split<T> (*run)(const FftPasses<T>& passes, Split<T> x, Split<T> work);
};

/// The tables of the level in use.
extern const FloatTablesInUse<FftKernels> fft_in_use;

}  // namespace ferrite::detail
