#pragma once
/// Kernels of the selective scan: some steps of some channels of one row, forward and backward.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Rows of numbers by channel that kernels read and write in whole packets have a multiple of this length.
constexpr std::int64_t kScanPadding = 16;
/// Most steps that the backward kernel takes at once: it holds their states.
constexpr std::int64_t kScanSteps = 16;
/// Most channels that the backward kernel takes at once.
constexpr std::int64_t kScanChannels = 128;

/// The operands of some steps, for some channels:
///
///   h[n] = exp(delta A[n]) h[n] + (delta x) B[n], for each channel
///   y = D x + C[0] h[0] + C[1] h[1] + ..., in this order
///
/// Products that are added are one multiply-add each (fma, packet.h).
template <class T>
struct ScanSteps {
  std::int64_t steps, channels, states;
  std::int64_t row;          ///< distance from a step to the next in x, delta and y
  std::int64_t width;        ///< distance from a state to the next in A
  std::int64_t state_width;  ///< the same distance in states, their gradients and that of A
  const T* x = nullptr;      ///< [steps, channels]
  const T* delta = nullptr;  ///< [steps, channels]
  const T* A = nullptr;      ///< [states, channels padded]
  const T* B = nullptr;      ///< [steps, states]
  const T* C = nullptr;      ///< [steps, states]
  const T* D = nullptr;      ///< [channels padded], or null: the term is left out
};

/// The cotangents of some steps, and the gradients. Shapes and distances of x's gradient are those of x, and so on.
template <class T>
struct ScanBack {
  const T* dy = nullptr;
  const T* before = nullptr;  ///< the state before the first step
  T* dstate = nullptr;        ///< cotangent of the state after the last step, replaced by that before the first
  T *dx = nullptr, *ddelta = nullptr;
  T *dA = nullptr, *dD = nullptr;  ///< added to; dD may be null if D is
  T *dB = nullptr, *dC = nullptr;  ///< sums over these channels
};

/// Kernels of the selective scan for f32 and f64. The exponentials of f32 are 0 from -87.7 down and infinite from 88.4
/// on, else within 2 ULP.
template <class T>
struct SelectiveScanKernels {
  /// Runs any number of steps and updates `state` [states, channels padded]. y may be null: only the state is wanted.
  void (*forward)(const ScanSteps<T>& s, T* state, T* y);
  /// Runs at most kScanSteps and kScanChannels backward; recomputes the states.
  void (*backward)(const ScanSteps<T>& s, const ScanBack<T>& g);
};

extern const FloatTablesInUse<SelectiveScanKernels> selective_scan_in_use;

}  // namespace ferrite::detail
