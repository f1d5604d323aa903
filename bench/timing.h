#pragma once
/// How benchmarks take times: samples in turn, medians without disturbed ones.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How often f must be called for a sample to take `seconds`.
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

/// The median of the samples that took at most 1.15 times the least: others were disturbed by other programs.
inline double undisturbed_median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto end = std::upper_bound(times.begin(), times.end(), 1.15 * times.front());
  return times[static_cast<std::size_t>(end - times.begin()) / 2];
}

/// Seconds a call of each function: medians over samples taken in turn, so that all see the same machine.
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

/// Seconds a call at best: what a bound is computed from.
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

/// The same as `interleaved` with about so many seconds for each function in all: never fewer than three samples.
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

/// Keeps the compiler from dropping a value.
template <class T>
inline void keep(const T& v) {
  asm volatile("" : : "g"(&v) : "memory");
}

}  // namespace bench
