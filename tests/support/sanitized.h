#pragma once
/// Whether a sanitizer watches the program. Everything takes 10 to 30 times as long then, so tests of many or of large
/// things take fewer and smaller ones: what a sanitizer finds does not hang on the number.

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

/// What a test takes, and what it takes under a sanitizer.
template <class T>
constexpr T unless_sanitized(T all, T fewer) {
  return kSanitized ? fewer : all;
}

}  // namespace support
