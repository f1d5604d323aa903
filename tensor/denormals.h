#pragma once
/// Guards that make denormal numbers count as zero on a thread, or that keep them.
#include <cstdint>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// Makes numbers too small for a full mantissa (below 1.2e-38 in f32, 2.2e-308 in f64) count as zero on this thread
/// while the guard lives, as operands and as results. Computing with such denormals takes some processors a hundred
/// times as long: a filter or a recurrent state that dies away, moments of an optimiser whose gradients have become
/// zero.
///
///   const FlushDenormals guard;
///   while (playing) stream.step(...);
///
/// Off unless asked for, since it changes results. The guard sets two bits of this thread's floating-point control
/// register (x86: MXCSR.FTZ and DAZ; aarch64: FPCR.FZ) and restores them when it is destroyed, however the scope ends.
/// Guards nest, and end on the thread that made them, the inner one first. Threads of the pool that help with an
/// operation compute in the mode of the thread that called it. Other threads keep their mode; one that is started while
/// the guard lives inherits it on most systems. Makes no system call, allocates nothing, takes no lock.
class [[nodiscard]] FlushDenormals {
 public:
  FlushDenormals() noexcept;
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  /// Returns whether the processor can count denormals as zero; where it cannot, the guard does nothing.
  static bool supported() noexcept;
  /// Returns whether denormals count as zero on this thread now.
  static bool active() noexcept;

 private:
  std::uint64_t before_;
};

/// Keeps denormals as ordinary numbers on this thread while the guard lives, whatever guard was made before: the
/// opposite of FlushDenormals. For results that must not depend on the mode of the thread.
class [[nodiscard]] KeepDenormals {
 public:
  KeepDenormals() noexcept;
  ~KeepDenormals();
  KeepDenormals(const KeepDenormals&) = delete;
  KeepDenormals& operator=(const KeepDenormals&) = delete;

 private:
  std::uint64_t before_;
};

namespace detail {

/// Returns the bits of this thread's floating-point control register that decide how denormals are treated; 0 where
/// there are none.
std::uint64_t denormal_mode() noexcept;
/// Sets these bits and leaves the others (rounding, exceptions) unchanged.
void set_denormal_mode(std::uint64_t bits) noexcept;

}  // namespace detail
}  // namespace ferrite
