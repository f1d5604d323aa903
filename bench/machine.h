#pragma once
/// What the machine does at best, measured.
#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "ferrite/tensor/ops.h"
#include "timing.h"

namespace bench {

using RawPacket = Eigen::internal::packet_traits<float>::type;
inline constexpr int kLanes = Eigen::internal::unpacket_traits<RawPacket>::size;

/// Floating-point operations a second of independent chains of fused multiply-adds in registers.
inline double peak_flops() {
  namespace ei = Eigen::internal;
  constexpr int kChains = 12;
  constexpr int kSteps = 4000;
  const auto run = [] {
    RawPacket acc[kChains];
    const RawPacket x = ei::pset1<RawPacket>(0.999F), y = ei::pset1<RawPacket>(1e-3F);
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) acc[k] = ei::pset1<RawPacket>(1.0F);
    for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
      for (int k = 0; k < kChains; ++k) {
        acc[k] = ei::pmadd(acc[k], x, y);
        asm volatile("" : "+x"(acc[k]));
      }
    RawPacket total = acc[0];
#pragma GCC unroll 16
    for (int k = 1; k < kChains; ++k) total = ei::padd(total, acc[k]);
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
        RawPacket v = Eigen::internal::pload<RawPacket>(p + i + k * kLanes);
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
