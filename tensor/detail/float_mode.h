#pragma once
/// The bits of the floating-point control register that concern denormals.
#include <cstdint>

namespace ferrite::detail {

/// The bits of this thread's floating-point control register that say what becomes of denormals; 0 where there are
/// none.
std::uint64_t denormal_mode() noexcept;
/// Sets these bits and leaves the others (rounding, exceptions) alone.
void set_denormal_mode(std::uint64_t bits) noexcept;

}  // namespace ferrite::detail
