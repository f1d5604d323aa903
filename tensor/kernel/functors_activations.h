#pragma once
/// Activation functions, and what becomes of a cotangent behind them, on one packet of floats (functors.h). Each is
/// computed as the composition of its record is, with its bits.
#include <numbers>

#include "ferrite/tensor/kernel/functors.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The packet of an argument, and its numbers.
template <class X>
using PacketOf = std::remove_cvref_t<X>;
template <class P>
constexpr P number(double v) {
  return P(static_cast<typename P::Element>(v));
}

inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kGeluCube = 0.044715;

/// Of y = relu(x): g where y > 0, else 0.
struct ReluGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& y) {
    const auto zero = number<PacketOf<decltype(y)>>(0);
    return select(y > zero, g, zero);
  }
};
struct Silu : Functor<1, Types::floats> {
  static auto f(const auto& x) { return silu(x); }
};
struct SiluGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    const auto s = sigmoid(x), one = number<PacketOf<decltype(x)>>(1);
    return g * (s * (one + x * (one - s)));
  }
};
struct LogSigmoid : Functor<1, Types::floats> {
  static auto f(const auto& x) { return -softplus(-x); }
};
struct LogSigmoidGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) { return g * sigmoid(-x); }
};
struct SoftplusGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) { return g * sigmoid(x); }
};
struct SoftsignGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    const auto below = number<PacketOf<decltype(x)>>(1) + abs(x);
    return g / (below * below);
  }
};
struct GeluGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) { return g * gelu_slope(x); }
};
/// (1 + tanh(u)) / 2 as sigmoid(2 u), which keeps its digits below 0.
struct GeluTanh : Functor<1, Types::floats> {
  static auto f(const auto& x) {
    using P = PacketOf<decltype(x)>;
    return x * sigmoid(number<P>(2 * kGeluScale) * (x + number<P>(kGeluCube) * (x * x * x)));
  }
};
/// The gradient takes x bounded to where the slope is 0 or 1, so that no square overflows, and writes 1 - tanh(u)^2 in
/// sigmoids, which lose no digits for large u.
struct GeluTanhGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    using P = PacketOf<decltype(x)>;
    const P v = min(max(x, number<P>(-32)), number<P>(32)), square = v * v;
    const P u = number<P>(2 * kGeluScale) * (v + number<P>(kGeluCube) * (square * v)), s = sigmoid(u);
    const P inner = number<P>(2 * kGeluScale) * (number<P>(1) + number<P>(3 * kGeluCube) * square);
    return g * (s + v * ((s * sigmoid(-u)) * inner));
  }
};
struct LeakyRelu : Functor<2, Types::floats> {
  static auto f(const auto& x, const auto& slope) { return select(x > number<PacketOf<decltype(x)>>(0), x, slope * x); }
};
struct LeakyReluGrad : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& slope) {
    return select(x > number<PacketOf<decltype(x)>>(0), g, slope * g);
  }
};
struct Elu : Functor<2, Types::floats> {
  static auto f(const auto& x, const auto& alpha) {
    return select(x <= number<PacketOf<decltype(x)>>(0), alpha * expm1(x), x);
  }
};
struct EluGrad : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& alpha) {
    return select(x <= number<PacketOf<decltype(x)>>(0), g * (alpha * exp(x)), g);
  }
};
struct Celu : Functor<2, Types::floats> {
  static auto f(const auto& x, const auto& alpha) {
    return select(x <= number<PacketOf<decltype(x)>>(0), alpha * expm1(x / alpha), x);
  }
};
struct CeluGrad : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& alpha) {
    return select(x <= number<PacketOf<decltype(x)>>(0), g * exp(x / alpha), g);
  }
};
struct Selu : Functor<1, Types::floats> {
  static auto f(const auto& x) {
    using P = PacketOf<decltype(x)>;
    return number<P>(kSeluScale) * select(x <= number<P>(0), number<P>(kSeluAlpha) * expm1(x), x);
  }
};
struct SeluGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    using P = PacketOf<decltype(x)>;
    return g * (number<P>(kSeluScale) * select(x <= number<P>(0), number<P>(kSeluAlpha) * exp(x), number<P>(1)));
  }
};
struct Hardtanh : Functor<3, Types::floats> {
  static auto f(const auto& x, const auto& low, const auto& high) {
    return select(x <= low, low, select(x >= high, high, x));
  }
};
/// g where x is above a bound, or NaN; else 0.
struct PassAbove : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& bound) {
    return select(x <= bound, number<PacketOf<decltype(g)>>(0), g);
  }
};
struct PassBelow : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& bound) {
    return select(x >= bound, number<PacketOf<decltype(g)>>(0), g);
  }
};
struct Hardsigmoid : Functor<1, Types::floats> {
  static auto f(const auto& x) {
    using P = PacketOf<decltype(x)>;
    const P above = x + number<P>(3), zero = number<P>(0), six = number<P>(6);
    return select(above <= zero, zero, select(above >= six, six, above)) / six;
  }
};
struct Hardswish : Functor<1, Types::floats> {
  static auto f(const auto& x) {
    using P = PacketOf<decltype(x)>;
    const P three = number<P>(3), zero = number<P>(0);
    return select(x <= -three, zero, select(x < three, x * (x + three) / number<P>(6), x));
  }
};
struct HardswishGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    using P = PacketOf<decltype(x)>;
    const P three = number<P>(3), zero = number<P>(0);
    return select(x <= -three, zero, select(x < three, g * ((x + x + three) / number<P>(6)), g));
  }
};
struct Mish : Functor<1, Types::floats> {
  static auto f(const auto& x) { return x * tanh(softplus(x)); }
};
struct MishGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    const auto t = tanh(softplus(x)), one = number<PacketOf<decltype(x)>>(1);
    return g * (t + x * sigmoid(x) * (one - t * t));
  }
};
struct Softshrink : Functor<2, Types::floats> {
  static auto f(const auto& x, const auto& lambda) {
    using P = PacketOf<decltype(x)>;
    const P shrunk = select(x > number<P>(0), x - lambda, x + lambda);
    return select((x >= -lambda) & (x <= lambda), number<P>(0), shrunk);
  }
};
struct Hardshrink : Functor<2, Types::floats> {
  static auto f(const auto& x, const auto& lambda) {
    return select((x >= -lambda) & (x <= lambda), number<PacketOf<decltype(x)>>(0), x);
  }
};
/// g where x lies outside of -lambda..lambda, or is NaN; else 0.
struct ShrinkGrad : Functor<3, Types::floats> {
  static auto f(const auto& g, const auto& x, const auto& lambda) {
    return select((x >= -lambda) & (x <= lambda), number<PacketOf<decltype(g)>>(0), g);
  }
};
struct Tanhshrink : Functor<1, Types::floats> {
  static auto f(const auto& x) { return x - tanh(x); }
};
struct TanhshrinkGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& x) {
    const auto t = tanh(x);
    return g * (t * t);
  }
};
struct Threshold : Functor<3, Types::floats> {
  static auto f(const auto& x, const auto& bound, const auto& value) { return select(x <= bound, value, x); }
};
/// a sigmoid(b).
struct Gated : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) { return a * sigmoid(b); }
};

using Activations =
    FunctorList<ReluGrad, Silu, SiluGrad, LogSigmoid, LogSigmoidGrad, SoftplusGrad, SoftsignGrad, GeluGrad, GeluTanh,
                GeluTanhGrad, LeakyRelu, LeakyReluGrad, Elu, EluGrad, Celu, CeluGrad, Selu, SeluGrad, Hardtanh,
                PassAbove, PassBelow, Hardsigmoid, Hardswish, HardswishGrad, Mish, MishGrad, Softshrink, Hardshrink,
                ShrinkGrad, Tanhshrink, TanhshrinkGrad, Threshold, Gated>;

}  // namespace ferrite::detail::FERRITE_LEVEL
