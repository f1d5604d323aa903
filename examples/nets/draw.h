#pragma once
/// Random numbers that are the same on every machine.
#include <cstdint>

namespace nets {

/// Draws random numbers (SplitMix64; G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// 2014).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  /// Returns a number between `low` and `high`.
  double operator()(double low, double high) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return low + (high - low) * (static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53);
  }
  /// Returns a whole number from 0 to n - 1.
  int below(int n) { return static_cast<int>((*this)(0, n)); }

 private:
  std::uint64_t state_;
};

}  // namespace nets
