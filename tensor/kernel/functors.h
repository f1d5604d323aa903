#pragma once
/// The functions of the library's pointwise operations on one packet of floats or one lane of anything else, by family.
/// Their records (tensor/ops/) inherit operands and types from here, and find their kernels by the place in the lists.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/block.h"
#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// What a functor says of itself beside its function `f`: operands and their dtypes. One whose results are bool says
/// `to_bool`, one that is no function of packets has a `block<T>` instead.
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
/// The square is rounded once, as Square gives it.
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
/// The sum makes 0 of -0.
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
  static bool f(const auto& a, const auto& b) { return a == b; }
};
struct Less : Functor<2, Types::any> {
  static constexpr bool to_bool = true;
  static bool f(const auto& a, const auto& b) { return a < b; }
};
struct LessEqual : Functor<2, Types::any> {
  static constexpr bool to_bool = true;
  static bool f(const auto& a, const auto& b) { return a <= b; }
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
  /// m ? a : b in bits: compilers make many at once of it, and no branch.
  template <class T>
  static T chosen(bool m, T a, T b) {
    using Bits = BitsOf<sizeof(T)>;
    const Bits all = static_cast<Bits>(Bits{0} - static_cast<Bits>(m));
    return __builtin_bit_cast(T, static_cast<Bits>((__builtin_bit_cast(Bits, a) & all) |
                                                   (__builtin_bit_cast(Bits, b) & static_cast<Bits>(~all))));
  }
};

using Logic = FunctorList<Equal, Less, LessEqual, LogicalAnd, LogicalOr, LogicalNot, Where>;

}  // namespace ferrite::detail::FERRITE_LEVEL
