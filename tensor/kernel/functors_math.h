#pragma once
/// The functions of tensor/math.h on one packet of floats or one lane of anything else (functors.h).
#include "ferrite/tensor/kernel/functors.h"

namespace ferrite::detail::FERRITE_LEVEL {

#define FERRITE_OF_ONE_FLOAT(Name, function)             \
  struct Name : Functor<1, Types::floats> {              \
    static auto f(const auto& x) { return function(x); } \
  };
FERRITE_OF_ONE_FLOAT(Tan, tan)
FERRITE_OF_ONE_FLOAT(Asin, asin)
FERRITE_OF_ONE_FLOAT(Acos, acos)
FERRITE_OF_ONE_FLOAT(Atan, atan)
FERRITE_OF_ONE_FLOAT(Sinh, sinh)
FERRITE_OF_ONE_FLOAT(Cosh, cosh)
FERRITE_OF_ONE_FLOAT(Asinh, asinh)
FERRITE_OF_ONE_FLOAT(Acosh, acosh)
FERRITE_OF_ONE_FLOAT(Atanh, atanh)
FERRITE_OF_ONE_FLOAT(Sinc, sinc)
FERRITE_OF_ONE_FLOAT(Log10, log10)
FERRITE_OF_ONE_FLOAT(Erfc, erfc)
FERRITE_OF_ONE_FLOAT(Erfinv, erfinv)
FERRITE_OF_ONE_FLOAT(Lgamma, lgamma)
FERRITE_OF_ONE_FLOAT(Digamma, digamma)
FERRITE_OF_ONE_FLOAT(Trigamma, trigamma)
FERRITE_OF_ONE_FLOAT(Floor, floor)
FERRITE_OF_ONE_FLOAT(Ceil, ceil)
FERRITE_OF_ONE_FLOAT(Round, nearest)
FERRITE_OF_ONE_FLOAT(Trunc, trunc)
#undef FERRITE_OF_ONE_FLOAT

struct Atan2 : Functor<2, Types::floats> {
  static auto f(const auto& y, const auto& x) { return atan2(y, x); }
};
struct Hypot : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) { return hypot(a, b); }
};
struct Copysign : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) { return copysign(a, b); }
};
struct Fmod : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return fmod(a, b); }
};
struct Remainder : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return remainder(a, b); }
};
struct FloorDivide : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return floor_divide(a, b); }
};
/// larger + softplus(smaller - larger), where both are the same infinity that itself.
struct Logaddexp : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P infinity(std::numeric_limits<typename P::Element>::infinity());
    const P large = select(b < a, a, b), small = select(b < a, b, a);
    return large + softplus(select((large == small) & (abs(large) == infinity), -infinity, small - large));
  }
};
/// a log(b), 0 where a = 0 beside a logarithm that is not finite.
struct Xlogy : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P zero(0), infinity(std::numeric_limits<typename P::Element>::infinity());
    return select((a == zero) & ((b <= zero) | (b == infinity)), zero, a * log(b));
  }
};
/// a weight, 0 where the weight is 0, whatever a is.
struct MultiplyNoNan : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& weight) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P zero(0);
    return select(weight == zero, zero, a * weight);
  }
};
/// a + weight (b - a), from the nearer end.
struct Lerp : Functor<3, Types::floats> {
  static auto f(const auto& a, const auto& b, const auto& weight) {
    using P = std::remove_cvref_t<decltype(a)>;
    using T = typename P::Element;
    const P way = b - a;
    return select(weight < P(T(0.5)), a + weight * way, b - (P(T(1)) - weight) * way);
  }
};

using Math = FunctorList<Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Sinc, Log10, Erfc, Erfinv, Lgamma,
                         Digamma, Trigamma, Floor, Ceil, Round, Trunc, Atan2, Hypot, Copysign, Fmod, Remainder,
                         FloorDivide, Logaddexp, Xlogy, MultiplyNoNan, Lerp>;

}  // namespace ferrite::detail::FERRITE_LEVEL
