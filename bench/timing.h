#pragma once
/// Timing for benchmarks: samples of several functions in turn, medians without disturbed samples.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns how often f must be called for a sample to take `seconds`.
inline std::int64_t calls_for(const std::function<void()>& f, double seconds) {
  f();
  for (std::int64_t n = 1;; n *= 4) {
    double spent = 1e30;
    for (int sample = 0; sample < 2; ++sample) {  // the first one may have been disturbed
      const double start = now();
      for (std::int64_t i = 0; i < n; ++i) f();
      spent = std::min(spent, now() - start);
    }
    if (spent > seconds / 4)
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(n) * seconds / spent));
  }
}

/// Returns the median of the samples that took at most 1.15 times the least; other programs disturbed the others.
inline double undisturbed_median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto end = std::upper_bound(times.begin(), times.end(), 1.15 * times.front());
  return times[static_cast<std::size_t>(end - times.begin()) / 2];
}

/// Returns the seconds a call of each function takes: medians over samples taken in turn, so that all see the same
/// machine.
inline std::vector<double> interleaved(const std::vector<std::function<void()>>& functions, int samples = 11,
                                       double seconds = 2e-3) {
  std::vector<std::int64_t> calls;
  for (const auto& f : functions) calls.push_back(calls_for(f, seconds));
  std::vector<std::vector<double>> times(functions.size());
  for (int s = 0; s < samples; ++s)
    for (std::size_t k = 0; k < functions.size(); ++k) {
      const double start = now();
      for (std::int64_t i = 0; i < calls[k]; ++i) functions[k]();
      times[k].push_back((now() - start) / static_cast<double>(calls[k]));
    }
  std::vector<double> medians;
  for (const auto& t : times) medians.push_back(undisturbed_median(t));
  return medians;
}

/// Returns the least seconds that a call takes, from which bounds are computed.
inline double best(const std::function<void()>& f, int samples = 25, double seconds = 1e-3) {
  const std::int64_t calls = calls_for(f, seconds);
  double least = 1e30;
  for (int s = 0; s < samples; ++s) {
    const double start = now();
    for (std::int64_t i = 0; i < calls; ++i) f();
    least = std::min(least, (now() - start) / static_cast<double>(calls));
  }
  return least;
}

/// Returns the same as `interleaved`, taking about `seconds` for each function in all, and at least three samples.
inline std::vector<double> interleaved_for(const std::vector<std::function<void()>>& functions, double seconds) {
  double longest = 0;
  for (const auto& f : functions) {
    f();
    const double start = now();
    f();
    longest = std::max(longest, now() - start);
  }
  const double sample = std::max(longest, seconds / 9);
  return interleaved(functions, std::clamp(static_cast<int>(seconds / sample), 3, 9), std::min(sample, seconds / 9));
}

/// Keeps the compiler from optimising a value away.
template <class T>
inline void keep(const T& v) {
  asm volatile("" : : "g"(&v) : "memory");
}

}  // namespace bench
