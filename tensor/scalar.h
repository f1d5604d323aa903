#pragma once
/// Literals in expressions: numbers that take the dtype of the tensor they are combined with.
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "ferrite/tensor/dtype.h"

namespace ferrite {

/// A literal in an expression (`2 * x`, `x + 0.5`): a weak integer or a weak float. It takes the dtype of the tensor
/// that it is combined with; a float literal with an integer tensor is a DtypeError. An unsigned integer that i64
/// cannot hold counts as a float. Never a rank-0 tensor.
class Scalar {
 public:
  constexpr Scalar() = default;
  template <std::integral T>
  constexpr Scalar(T v)
      : integer_(fits(v) ? static_cast<std::int64_t>(v) : 0), real_(static_cast<double>(v)), floating_(!fits(v)) {}
  template <std::floating_point T>
  constexpr Scalar(T v) : real_(static_cast<double>(v)), floating_(true) {}

  constexpr bool is_floating() const { return floating_; }
  /// Returns the literal as a double, an integer too.
  constexpr double real() const { return real_; }
  /// Returns an integer literal exactly; 0 for a float literal.
  constexpr std::int64_t integer() const { return integer_; }
  /// Returns the literal as an element of type T. Integers beyond 2^53 stay exact in integer types.
  template <class T>
  constexpr T as() const {
    if constexpr (std::is_same_v<T, bool>) return real_ != 0;
    if constexpr (std::is_integral_v<T>) return floating_ ? static_cast<T>(real_) : static_cast<T>(integer_);
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(real_);
    return floating_ ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  constexpr bool operator==(const Scalar&) const = default;
  std::string str() const;

 private:
  template <std::integral T>
  static constexpr bool fits(T v) {
    return std::is_signed_v<T> ||
           static_cast<std::uint64_t>(v) <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  }

  std::int64_t integer_ = 0;
  double real_ = 0;
  bool floating_ = false;
};

}  // namespace ferrite
