#pragma once
/// What the machine does at best, measured.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "ferrite/tensor/ops.h"
#include "timing.h"

namespace bench {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif
using RawPacket [[gnu::vector_size(kLanes * sizeof(float))]] = float;
/// One instruction: where floats need not lie at a multiple of a packet's size.
using AnyPacket [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(sizeof(float)), gnu::may_alias]] = float;
inline RawPacket load(const float* from) { return *reinterpret_cast<const AnyPacket*>(from); }
inline void store(float* to, RawPacket v) { *reinterpret_cast<AnyPacket*>(to) = v; }
/// a * b + c in one instruction, in every lane.
inline RawPacket multiply_add(RawPacket a, RawPacket b, RawPacket c) {
  for (int i = 0; i < kLanes; ++i) a[i] = std::fma(a[i], b[i], c[i]);
  return a;
}

/// Floating-point operations a second of independent chains of fused multiply-adds in registers.
inline double peak_flops() {
  constexpr int kChains = 12;
  constexpr int kSteps = 4000;
  const auto run = [] {
    RawPacket acc[kChains];
    const RawPacket x = RawPacket{} + 0.999F, y = RawPacket{} + 1e-3F;
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) acc[k] = RawPacket{} + 1.0F;
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
      for (int k = 0; k < kChains; ++k) {
        acc[k] = multiply_add(acc[k], x, y);
        asm volatile("" : "+x"(acc[k]));
      }
    RawPacket total = acc[0];
#pragma GCC unroll 16
    for (int k = 1; k < kChains; ++k) total += acc[k];
    asm volatile("" : : "x"(total));
  };
  return 2.0 * kChains * kLanes * kSteps / best(run);
}

/// Bytes a second read from a buffer of this size, again and again.
inline double read_bandwidth(std::size_t bytes) {
  const std::size_t n = std::max<std::size_t>(1, bytes / sizeof(float) / (8 * kLanes)) * (8 * kLanes);
  const ferrite::Tensor x = ferrite::ones({static_cast<std::int64_t>(n)});
  const float* p = x.data<float>();
  const auto run = [&] {
    for (std::size_t i = 0; i < n; i += 8 * kLanes)
#pragma GCC unroll 8
      for (std::size_t k = 0; k < 8; ++k) {
        RawPacket v = load(p + i + k * kLanes);
        asm volatile("" : "+x"(v));
      }
  };
  return static_cast<double>(n * sizeof(float)) / best(run);
}

/// The processor's name, where the system tells.
inline std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace bench
