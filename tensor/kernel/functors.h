#pragma once
/// The functions of the library's pointwise operations, by family, on one packet of floats or one lane of any other
/// type. Their records (tensor/ops/) inherit operands and types from here, and find their kernels by the position in
/// the lists.
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <tuple>
#include <type_traits>

#include "ferrite/tensor/block.h"
#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The facts that a functor declares besides its function `f`: the number of operands and their dtypes. One with bool
/// results declares `to_bool`; one that cannot work on packets has a `block<T>` instead.
template <std::size_t Arity, Types Of>
struct Functor {
  static constexpr std::size_t arity = Arity;
  static constexpr Types types = Of;
};
template <class... F>
struct FunctorList {};

// ---- arithmetic ----------------------------------------------------------------------------------------

struct Add : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return a + b; }
};
struct Sub : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return a - b; }
};
struct Mul : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return a * b; }
};
struct Div : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) { return a / b; }
};
struct Neg : Functor<1, Types::numeric> {
  static auto f(const auto& x) { return -x; }
};
/// a^b, where a^2 is rounded once, as by Square.
struct Pow : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) {
    using P = std::remove_cvref_t<decltype(a)>;
    return select(b == P(2), a * a, pow(a, b));
  }
};
struct Abs : Functor<1, Types::numeric> {
  static auto f(const auto& x) { return abs(x); }
};
struct Maximum : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return max(a, b); }
};
struct Minimum : Functor<2, Types::numeric> {
  static auto f(const auto& a, const auto& b) { return min(a, b); }
};
struct Sign : Functor<1, Types::numeric> {
  static auto f(const auto& x) {
    using P = std::remove_cvref_t<decltype(x)>;
    const P zero(0);
    return select(x > zero, P(1), select(x < zero, P(-1), x));
  }
};
struct Square : Functor<1, Types::numeric> {
  static auto f(const auto& x) { return x * x; }
};
struct Clamp : Functor<3, Types::numeric> {
  static auto f(const auto& x, const auto& low, const auto& high) { return min(max(x, low), high); }
};

using Arithmetic = FunctorList<Add, Sub, Mul, Div, Neg, Pow, Abs, Maximum, Minimum, Sign, Square, Clamp>;

// ---- functions -----------------------------------------------------------------------------------------

struct Sqrt : Functor<1, Types::floats> {
  static auto f(const auto& x) { return sqrt(x); }
};
struct Rsqrt : Functor<1, Types::floats> {
  static auto f(const auto& x) { return std::remove_cvref_t<decltype(x)>(1) / sqrt(x); }
};
struct Reciprocal : Functor<1, Types::floats> {
  static auto f(const auto& x) { return std::remove_cvref_t<decltype(x)>(1) / x; }
};
struct Exp : Functor<1, Types::floats> {
  static auto f(const auto& x) { return exp(x); }
};
struct Exp2 : Functor<1, Types::floats> {
  static auto f(const auto& x) { return exp2(x); }
};
struct Expm1 : Functor<1, Types::floats> {
  static auto f(const auto& x) { return expm1(x); }
};
struct Log : Functor<1, Types::floats> {
  static auto f(const auto& x) { return log(x); }
};
struct Log1p : Functor<1, Types::floats> {
  static auto f(const auto& x) { return log1p(x); }
};
struct Log2 : Functor<1, Types::floats> {
  static auto f(const auto& x) { return log2(x); }
};
struct Sin : Functor<1, Types::floats> {
  static auto f(const auto& x) { return sin(x); }
};
struct Cos : Functor<1, Types::floats> {
  static auto f(const auto& x) { return cos(x); }
};
struct Tanh : Functor<1, Types::floats> {
  static auto f(const auto& x) { return tanh(x); }
};
struct TanhGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& y) { return g * (std::remove_cvref_t<decltype(y)>(1) - y * y); }
};
struct SigmoidGrad : Functor<2, Types::floats> {
  static auto f(const auto& g, const auto& y) { return g * (y * (std::remove_cvref_t<decltype(y)>(1) - y)); }
};
struct Sigmoid : Functor<1, Types::floats> {
  static auto f(const auto& x) { return sigmoid(x); }
};
/// max(x, 0), where the addition turns -0 into 0.
struct Relu : Functor<1, Types::numeric> {
  static auto f(const auto& x) {
    using V = std::remove_cvref_t<decltype(x)>;
    if constexpr (requires { x.raw; }) {
      return first_max(x, V(0)) + V(0);
    } else {
      return max(x, V(0));
    }
  }
};
struct Erf : Functor<1, Types::floats> {
  static auto f(const auto& x) { return erf(x); }
};
struct Gelu : Functor<1, Types::floats> {
  static auto f(const auto& x) { return gelu(x); }
};
struct Softplus : Functor<1, Types::floats> {
  static auto f(const auto& x) { return softplus(x); }
};
struct Softsign : Functor<1, Types::floats> {
  static auto f(const auto& x) { return x / (std::remove_cvref_t<decltype(x)>(1) + abs(x)); }
};

using Functions = FunctorList<Sqrt, Rsqrt, Reciprocal, Exp, Exp2, Expm1, Log, Log1p, Log2, Sin, Cos, Tanh, TanhGrad,
                              SigmoidGrad, Sigmoid, Relu, Erf, Gelu, Softplus, Softsign>;

// ---- logic ---------------------------------------------------------------------------------------------

struct Equal : Functor<2, Types::any> {
  static constexpr bool to_bool = true;
  static auto f(const auto& a, const auto& b) { return a == b; }
};
struct Less : Functor<2, Types::any> {
  static constexpr bool to_bool = true;
  static auto f(const auto& a, const auto& b) { return a < b; }
};
struct LessEqual : Functor<2, Types::any> {
  static constexpr bool to_bool = true;
  static auto f(const auto& a, const auto& b) { return a <= b; }
};
struct LogicalAnd : Functor<2, Types::boolean> {
  static auto f(const auto& a, const auto& b) { return min(a, b); }
};
struct LogicalOr : Functor<2, Types::boolean> {
  static auto f(const auto& a, const auto& b) { return max(a, b); }
};
struct LogicalNot : Functor<1, Types::boolean> {
  static auto f(const auto& a) { return std::remove_cvref_t<decltype(a)>(!a.v); }
};
struct Where : Functor<3, Types::any> {
  template <class T>
  static void block(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n) {
    const bool* m = static_cast<const bool*>(in[0]);
    const T* a = static_cast<const T*>(in[1]);
    const T* b = static_cast<const T*>(in[2]);
    T* to = static_cast<T*>(out);
    if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = chosen(m[i], a[i], b[i]);
    } else if (step[0] == 1 && step[1] == 1) {
      const T other = *b;
      for (std::int64_t i = 0; i < n; ++i) to[i] = chosen(m[i], a[i], other);
    } else if (step[0] == 1 && step[2] == 1) {
      const T other = *a;
      for (std::int64_t i = 0; i < n; ++i) to[i] = chosen(m[i], other, b[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = m[i * step[0]] ? a[i * step[1]] : b[i * step[2]];
    }
  }

 private:
  template <std::size_t Bytes>
  using BitsOf =
      std::conditional_t<Bytes == 8, std::uint64_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint8_t>>;
  /// Returns m ? a : b, selected by bits: compilers vectorise it without a branch.
  template <class T>
  static T chosen(bool m, T a, T b) {
    using Word = BitsOf<sizeof(T)>;
    const Word all = static_cast<Word>(Word{0} - static_cast<Word>(m));
    return __builtin_bit_cast(T, static_cast<Word>((__builtin_bit_cast(Word, a) & all) |
                                                   (__builtin_bit_cast(Word, b) & static_cast<Word>(~all))));
  }
};

using Logic = FunctorList<Equal, Less, LessEqual, LogicalAnd, LogicalOr, LogicalNot, Where>;

// ---- mathematical functions (tensor/math.h) ---------------------------------------------------------------

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
/// log(e^a + e^b) as larger + softplus(smaller - larger); where both are the same infinity, that infinity.
struct Logaddexp : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P infinity(std::numeric_limits<typename P::Element>::infinity());
    const P large = select(b < a, a, b), small = select(b < a, b, a);
    return large + softplus(select((large == small) & (abs(large) == infinity), -infinity, small - large));
  }
};
/// a log(b), but 0 where a = 0 and the logarithm is not finite.
struct Xlogy : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P zero(0), infinity(std::numeric_limits<typename P::Element>::infinity());
    return select((a == zero) & ((b <= zero) | (b == infinity)), zero, a * log(b));
  }
};
/// a weight, but 0 where the weight is 0, whatever a is.
struct MultiplyNoNan : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& weight) {
    using P = std::remove_cvref_t<decltype(a)>;
    const P zero(0);
    return select(weight == zero, zero, a * weight);
  }
};
/// a + weight (b - a), computed from the nearer end.
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

// ---- activation functions and their gradients --------------------------------------------------------------
// Each is computed like the composition of its record, with the same bits.

/// The packet type of an argument.
template <class X>
using PacketOf = std::remove_cvref_t<X>;
template <class P>
constexpr P number(double v) {
  return P(static_cast<typename P::Element>(v));
}

inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kGeluCube = 0.044715;

/// The gradient of y = relu(x): g where y > 0, else 0.
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
/// x (1 + tanh(u)) / 2, written with sigmoid(2 u), which keeps its digits below 0.
struct GeluTanh : Functor<1, Types::floats> {
  static auto f(const auto& x) {
    using P = PacketOf<decltype(x)>;
    return x * sigmoid(number<P>(2 * kGeluScale) * (x + number<P>(kGeluCube) * (x * x * x)));
  }
};
/// The gradient of GeluTanh. It clamps x to where the slope is 0 or 1, so that no square overflows, and writes 1 -
/// tanh(u)^2 in sigmoids, which lose no digits for large u.
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
/// g where x is above a bound or is NaN; else 0.
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
/// g where x lies outside -lambda..lambda or is NaN; else 0.
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
/// a sigmoid(b), as in `glu`.
struct Gated : Functor<2, Types::floats> {
  static auto f(const auto& a, const auto& b) { return a * sigmoid(b); }
};

using Activations =
    FunctorList<ReluGrad, Silu, SiluGrad, LogSigmoid, LogSigmoidGrad, SoftplusGrad, SoftsignGrad, GeluGrad, GeluTanh,
                GeluTanhGrad, LeakyRelu, LeakyReluGrad, Elu, EluGrad, Celu, CeluGrad, Selu, SeluGrad, Hardtanh,
                PassAbove, PassBelow, Hardsigmoid, Hardswish, HardswishGrad, Mish, MishGrad, Softshrink, Hardshrink,
                ShrinkGrad, Tanhshrink, TanhshrinkGrad, Threshold, Gated>;

// ---- all families -----------------------------------------------------------------------------------------
// A level stores the kernels of each functor by its family and its position there, so that a program contains only
// those of the operations that it reaches.

using Families = std::tuple<Arithmetic, Functions, Logic, Math, Activations>;

}  // namespace ferrite::detail::FERRITE_LEVEL
