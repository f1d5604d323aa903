#pragma once
/// a b + c, rounded once.
#include <cmath>

namespace support {

// The C library of mingw-w64 rounds twice; so x86-64's own instruction is taken where the processor has it.
#if defined(__x86_64__)
namespace detail {
__attribute__((target("fma"))) inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__attribute__((target("fma"))) inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
}  // namespace detail

template <class T>
T fused(T a, T b, T c) {
  return __builtin_cpu_supports("fma") ? detail::fused(a, b, c) : std::fma(a, b, c);
}
#else
template <class T>
T fused(T a, T b, T c) {
  return std::fma(a, b, c);
}
#endif

}  // namespace support
