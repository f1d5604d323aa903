/// Sets the processor's mode for denormal numbers on a thread and its helpers.
#include "ferrite/tensor/denormals.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ferrite {
namespace detail {
namespace {

// Defined here and not in a header, so that no arithmetic of a caller moves across a change of mode.
#if defined(__SSE2__)
constexpr std::uint64_t kFlush = 0x8040;  ///< MXCSR: flush to zero (bit 15), denormals are zero (bit 6)
std::uint64_t control() noexcept { return _mm_getcsr(); }
void set_control(std::uint64_t v) noexcept { _mm_setcsr(static_cast<unsigned>(v)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;  ///< FPCR.FZ: operands and results
std::uint64_t control() noexcept {
  std::uint64_t v = 0;
  asm volatile("mrs %0, fpcr" : "=r"(v));
  return v;
}
void set_control(std::uint64_t v) noexcept { asm volatile("msr fpcr, %0" : : "r"(v) : "memory"); }
#else
constexpr std::uint64_t kFlush = 0;
std::uint64_t control() noexcept { return 0; }
void set_control(std::uint64_t) noexcept {}
#endif

}  // namespace

std::uint64_t denormal_mode() noexcept { return control() & kFlush; }
void set_denormal_mode(std::uint64_t bits) noexcept {
  const std::uint64_t now = control();
  const std::uint64_t wanted = (now & ~kFlush) | bits;
  if (wanted != now) set_control(wanted);
}

}  // namespace detail

FlushDenormals::FlushDenormals() noexcept : before_(detail::denormal_mode()) {
  detail::set_denormal_mode(detail::kFlush);
}
FlushDenormals::~FlushDenormals() { detail::set_denormal_mode(before_); }

KeepDenormals::KeepDenormals() noexcept : before_(detail::denormal_mode()) { detail::set_denormal_mode(0); }
KeepDenormals::~KeepDenormals() { detail::set_denormal_mode(before_); }

bool FlushDenormals::supported() noexcept { return detail::kFlush != 0; }
bool FlushDenormals::active() noexcept { return supported() && detail::denormal_mode() == detail::kFlush; }

}  // namespace ferrite
