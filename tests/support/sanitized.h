#pragma once
/// Tells tests whether a sanitizer watches the program. Everything then takes 10 to 30 times as long, so they use fewer
/// and smaller examples; what a sanitizer finds does not depend on their number.

#ifndef __has_feature
#define __has_feature(x) 0
#endif

namespace support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Returns `all`, or `fewer` under a sanitizer.
template <class T>
constexpr T unless_sanitized(T all, T fewer) {
  return kSanitized ? fewer : all;
}

}  // namespace support
