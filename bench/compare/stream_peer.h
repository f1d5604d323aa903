#pragma once
// The main loop that the programs of bench/compare/streams.py share. Arguments: FILE BLOCK. The first line of output is
// the sum of all outputs; then every line of input is answered with nanoseconds a sample, the best of several runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

/// Runs the loop. `make(path, block)` returns a function of (x, y, n samples).
template <class Make>
int serve(int count, char** words, const Make& make) {
  if (count != 3) return 2;
  const int block = std::atoi(words[2]);
  constexpr std::size_t kSamples = 4096;
  std::vector<float> x(kSamples), y(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) x[i] = 0.3F * std::sin(0.05F * static_cast<float>(i));
  auto process = make(words[1], block);
  const auto n = static_cast<std::size_t>(block);
  const auto all = [&] {
    for (std::size_t i = 0; i + n <= kSamples; i += n) process(&x[i], &y[i], block);
  };
  all();
  all();  // the first run still hears the silence before it, which programs treat differently
  std::printf("%.6f\n", std::accumulate(y.begin(), y.end(), 0.0));
  std::fflush(stdout);
  while (std::getchar() == '\n') {
    double best = 1;
    for (int k = 0; k < 9; ++k) {
      const auto begun = std::chrono::steady_clock::now();
      all();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    }
    std::printf("%.3f\n", best / kSamples * 1e9);
    std::fflush(stdout);
  }
  return 0;
}
