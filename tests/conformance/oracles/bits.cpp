// Oracles and samples of tensor/ops/logic.cpp.
#include "conformance/oracles/oracle.h"

namespace oracles::bits {
namespace {

/// The base of operations on bits: kernels for integers, and for bool where they say so.
struct Bits {
  static constexpr Range domain{0, 40};
};

/// Converts the oracle's numbers to integers.
std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

struct BitwiseAnd : Bits {
  static constexpr auto name = "bitwise_and";
  static double scalar(double a, double b) { return static_cast<double>(whole(a) & whole(b)); }
};

struct BitwiseOr : Bits {
  static constexpr auto name = "bitwise_or";
  static double scalar(double a, double b) { return static_cast<double>(whole(a) | whole(b)); }
};

struct BitwiseXor : Bits {
  static constexpr auto name = "bitwise_xor";
  static double scalar(double a, double b) { return static_cast<double>(whole(a) ^ whole(b)); }
};

struct BitwiseNot : Bits {
  static constexpr auto name = "bitwise_not";
  static double scalar(double a) { return -1 - a; }
};

template <class T>
bool within_bits(T places) {
  return places >= 0 && places < static_cast<T>(8 * sizeof(T));
}

struct LeftShift : Bits {
  static constexpr auto name = "bitwise_left_shift";
  template <class T>
  static T of(T a, T b) {
    return within_bits(b) ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b) : T(0);
  }
  /// Computes with 64 bits; results that do not fit in 32 are left out of the comparison.
  static double scalar(double a, double b) { return static_cast<double>(of(whole(a), whole(b))); }
};

struct RightShift : Bits {
  static constexpr auto name = "bitwise_right_shift";
  static double scalar(double a, double b) {
    if (b < 0 || b > 62) return a < 0 ? -1 : 0;
    return static_cast<double>(whole(a) >> whole(b));
  }
};

const Added added = add<BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, LeftShift, RightShift>();

}  // namespace
}  // namespace oracles::bits
