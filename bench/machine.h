#pragma once
/// What the machine does at best, measured.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "ferrite/tensor/kernel/vectors.h"
#include "ferrite/tensor/ops.h"
#include "timing.h"

namespace bench {

// The packets of the library's kernels, compiled for this machine.
using namespace ferrite::detail::FERRITE_LEVEL;
inline constexpr int kFloats = kLanes<float>;

/// Returns the floating-point operations a second of independent chains of fused multiply-adds in registers.
inline double peak_flops() {
  constexpr int kChains = 12;
  constexpr int kSteps = 4000;
  const auto run = [] {
    RawFloats acc[kChains];
    const RawFloats x = set_raw(0.999F), y = set_raw(1e-3F);
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) acc[k] = set_raw(1.0F);
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
      for (int k = 0; k < kChains; ++k) {
        acc[k] = fma_raw(acc[k], x, y);
        asm volatile("" : "+x"(acc[k]));
      }
    RawFloats total = acc[0];
#pragma GCC unroll 16
    for (int k = 1; k < kChains; ++k) total += acc[k];
    asm volatile("" : : "x"(total));
  };
  return 2.0 * kChains * kFloats * kSteps / best(run);
}

/// Returns the bytes a second at which a buffer of this size is read repeatedly.
inline double read_bandwidth(std::size_t bytes) {
  const std::size_t n = std::max<std::size_t>(1, bytes / sizeof(float) / (8 * kFloats)) * (8 * kFloats);
  const ferrite::Tensor x = ferrite::ones({static_cast<std::int64_t>(n)});
  const float* p = x.data<float>();
  const auto run = [&] {
    for (std::size_t i = 0; i < n; i += 8 * kFloats)
#pragma GCC unroll 8
      for (std::size_t k = 0; k < 8; ++k) {
        RawFloats v = load_raw(p + i + k * kFloats);
        asm volatile("" : "+x"(v));
      }
  };
  return static_cast<double>(n * sizeof(float)) / best(run);
}

/// Returns the processor's name, if the system provides it.
inline std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace bench
