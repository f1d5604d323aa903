#pragma once
/// Checked sums, differences and products of extents, offsets and byte counts. All such arithmetic is here, since the
/// numbers come from users and files and must not wrap.
#include <concepts>
#include <cstdint>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite::detail {

/// Computes r = a + b, a - b or a * b. Returns true when the result does not fit T.
template <std::integral T>
constexpr bool add_overflows(T a, T b, T& r) {
  return __builtin_add_overflow(a, b, &r);
}
template <std::integral T>
constexpr bool sub_overflows(T a, T b, T& r) {
  return __builtin_sub_overflow(a, b, &r);
}
template <std::integral T>
constexpr bool mul_overflows(T a, T b, T& r) {
  return __builtin_mul_overflow(a, b, &r);
}

[[noreturn]] void throw_overflow(std::string_view where, std::int64_t a, char sign, std::int64_t b);

/// Returns a + b, a - b or a * b. Throws ShapeError, naming `where` and both numbers, when it does not fit 64 bits.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view where) {
  std::int64_t r = 0;
  if (add_overflows(a, b, r)) [[unlikely]]
    throw_overflow(where, a, '+', b);
  return r;
}
constexpr std::int64_t checked_sub(std::int64_t a, std::int64_t b, std::string_view where) {
  std::int64_t r = 0;
  if (sub_overflows(a, b, r)) [[unlikely]]
    throw_overflow(where, a, '-', b);
  return r;
}
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view where) {
  std::int64_t r = 0;
  if (mul_overflows(a, b, r)) [[unlikely]]
    throw_overflow(where, a, '*', b);
  return r;
}

}  // namespace ferrite::detail
