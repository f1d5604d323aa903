#pragma once
/// One packet of numbers (16, 8 or 4 floats, by instruction set) with the arithmetic and the functions that
/// pointwise operations are written in. Wraps Eigen's packets; every function is applied to whole packets only,
/// so a value does not depend on its place in a run (docs/numerics.md, rule 1).
///
/// Errors in ULP, over the whole range unless said (tests/ranges, on every instruction set); f32: exp, exp2 1.5, expm1,
/// log, log2 2, log1p, tanh, sigmoid 2.5 (above 4 0.6), softplus 3, sin and cos 2 for |x| < 1e4; f64, the C library's
/// lane by lane: tanh 2, sigmoid 3. A sigmoid below the least normal number may be 0. Further functions:
/// packet_error.h, packet_rounding.h, packet_math.h.
#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>

#include "ferrite/tensor/kernel/mask.h"

namespace ferrite::detail::FERRITE_LEVEL {

template <class T>
struct Packet {
  using Element = T;
  static constexpr int width = kLanes<T>;
  RawPacket<T> raw;

  Packet() = default;
  Packet(RawPacket<T> r) requires(!std::is_same_v<RawPacket<T>, T>) : raw(r) {}
  Packet(T v) : raw(ei::pset1<RawPacket<T>>(v)) {}

  static Packet load(const T* p) { return ei::ploadu<RawPacket<T>>(p); }
  void store(T* p) const { ei::pstoreu(p, raw); }

  friend Packet operator+(Packet a, Packet b) { return ei::padd(a.raw, b.raw); }
  friend Packet operator-(Packet a, Packet b) { return ei::psub(a.raw, b.raw); }
  friend Packet operator*(Packet a, Packet b) { return ei::pmul(a.raw, b.raw); }
  friend Packet operator/(Packet a, Packet b) { return ei::pdiv(a.raw, b.raw); }
  /// The sign bit turned over, of zeros too (Eigen's takes wide packets from 0), or a multiply-add that subtracts.
  friend Packet operator-(Packet a) {
    if constexpr (std::is_floating_point_v<T>) {
      return RawPacket<T>(-a.raw);
    } else {
      return ei::pnegate(a.raw);
    }
  }
  friend Mask<T> operator<(Packet a, Packet b) { return less(a.raw, b.raw); }
  friend Mask<T> operator<=(Packet a, Packet b) { return less_equal(a.raw, b.raw); }
  friend Mask<T> operator>(Packet a, Packet b) { return less(b.raw, a.raw); }
  friend Mask<T> operator>=(Packet a, Packet b) { return less_equal(b.raw, a.raw); }
  friend Mask<T> operator==(Packet a, Packet b) { return equal(a.raw, b.raw); }
};

template <class T>
Packet<T> select(Mask<T> m, Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return chosen(m, a.raw, b.raw);
}
/// a, or +0 where the mask is false: cheaper than to choose it.
template <class T>
Packet<T> or_zero(Mask<T> m, Packet<T> a) {
  return masked(m, a.raw);
}
template <class T>
Mask<T> is_nan(Packet<T> x) {
  return unordered(x.raw);
}
template <class T>
Mask<T> greater_or_nan(Packet<T> a, Packet<T> b) {
  return not_less_equal(a.raw, b.raw);
}
/// Whether the machine has an instruction that rounds a * b + c once (x86: FMA; aarch64 always).
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kRoundsOnce = true;
#else
inline constexpr bool kRoundsOnce = false;
#endif
/// a * b + c, in one rounding where the machine has such an instruction.
template <class T>
Packet<T> fma(Packet<T> a, std::type_identity_t<Packet<T>> b, std::type_identity_t<Packet<T>> c) {
  return ei::pmadd(a.raw, b.raw, c.raw);
}

/// c[0] + c[1] z + c[2] z^2 + ...
template <class T, class C, std::size_t N>
[[gnu::always_inline]] inline Packet<T> polynomial(Packet<T> z, const C (&c)[N]) {
  Packet<T> p = T(c[N - 1]);
#pragma GCC unroll 16
  for (std::size_t k = 1; k < N; ++k) p = fma(p, z, T(c[N - 1 - k]));
  return p;
}

/// Stores the first n elements.
template <class T>
inline void put(T* to, Packet<T> v, std::int64_t n) {
  using Traits = ei::unpacket_traits<RawPacket<T>>;
  if (n == kLanes<T>) return v.store(to);
  if constexpr (requires { requires bool(Traits::masked_store_available); }) {
    using Bits = std::conditional_t<kLanes<T> == 16, std::uint16_t, std::uint8_t>;
    ei::pstoreu(to, v.raw, static_cast<Bits>((1U << n) - 1));
  } else {
    alignas(64) T part[static_cast<std::size_t>(kLanes<T>)];
    v.store(part);
    std::memcpy(to, part, static_cast<std::size_t>(n) * sizeof(T));
  }
}

/// f applied lane by lane.
template <class T, class F>
Packet<T> by_lane(Packet<T> x, F f) {
  alignas(64) T v[static_cast<std::size_t>(kLanes<T>)];
  x.store(v);
  for (T& e : v) e = f(e);
  return Packet<T>::load(v);
}
template <class T, class F>
Packet<T> by_lane(Packet<T> x, Packet<T> y, F f) {
  alignas(64) T v[static_cast<std::size_t>(kLanes<T>)];
  alignas(64) T w[static_cast<std::size_t>(kLanes<T>)];
  x.store(v);
  y.store(w);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kLanes<T>); ++i) v[i] = f(v[i], w[i]);
  return Packet<T>::load(v);
}

// ---- functions of both widths --------------------------------------------------------------------------

template <class T>
Packet<T> abs(Packet<T> x) {
  return ei::pabs(x.raw);
}
/// NaN if either is NaN (the machine's own instruction takes the second operand).
template <class T>
Packet<T> max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a > b, a, select(is_nan(a), a, b));
}
template <class T>
Packet<T> min(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a < b, a, select(is_nan(a), a, b));
}
/// The machine's own maximum, which keeps a NaN that is its first operand.
template <class T>
Packet<T> first_max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return ei::pmax(a.raw, b.raw);
}
template <class T>
Packet<T> sqrt(Packet<T> x) {
  return by_lane(x, [](T v) { return std::sqrt(v); });  // a true square root, vectorised by the compiler
}
template <class T>
Packet<T> copysign(Packet<T> magnitude, Packet<T> sign) {
  const RawPacket<T> bit = ei::pset1<RawPacket<T>>(T(-0.0));
  return ei::por(ei::pandnot(magnitude.raw, bit), ei::pand(sign.raw, bit));
}

// ---- f64: the C library --------------------------------------------------------------------------------

inline Packet<double> exp(Packet<double> x) {
  return by_lane(x, [](double v) { return std::exp(v); });
}
inline Packet<double> exp2(Packet<double> x) {
  return by_lane(x, [](double v) { return std::exp2(v); });
}
inline Packet<double> expm1(Packet<double> x) {
  return by_lane(x, [](double v) { return std::expm1(v); });
}
inline Packet<double> log(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log(v); });
}
inline Packet<double> log1p(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log1p(v); });
}
inline Packet<double> log2(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log2(v); });
}
inline Packet<double> sin(Packet<double> x) {
  return by_lane(x, [](double v) { return std::sin(v); });
}
inline Packet<double> cos(Packet<double> x) {
  return by_lane(x, [](double v) { return std::cos(v); });
}
inline Packet<double> sigmoid(Packet<double> x) { return Packet<double>(1.0) / (Packet<double>(1.0) + exp(-x)); }
inline Packet<double> tanh(Packet<double> x) {
  return by_lane(x, [](double v) { return std::tanh(v); });
}
inline Packet<double> erf(Packet<double> x) {
  return by_lane(x, [](double v) { return std::erf(v); });
}
inline Packet<double> erfc(Packet<double> x) {
  return by_lane(x, [](double v) { return std::erfc(v); });
}
inline Packet<double> pow(Packet<double> x, Packet<double> y) {
  return by_lane(x, y, [](double a, double b) { return std::pow(a, b); });
}

// ---- f32 -----------------------------------------------------------------------------------------------

/// 2^n for integral n in [-126, 127].
[[gnu::always_inline]] inline Packet<float> power_of_two(Packet<float> n) {
  using IntPacket = typename ei::unpacket_traits<RawPacket<float>>::integer_packet;
  const IntPacket biased = ei::padd(ei::pcast<RawPacket<float>, IntPacket>(n.raw), ei::pset1<IntPacket>(127));
  return ei::preinterpret<RawPacket<float>>(ei::plogical_shift_left<23>(biased));
}

/// x 2^n for integral n in [-252, 254], in two factors so that results reach the denormals and the largest floats.
inline Packet<float> scale(Packet<float> x, Packet<float> n) {
#ifdef __AVX512F__
  return _mm512_scalef_ps(x.raw, n.raw);  // which rounds as the last factor does
#endif
  const Packet<float> half = ei::pfloor(ei::pmul(n.raw, ei::pset1<RawPacket<float>>(0.5F)));
  return x * power_of_two(half) * power_of_two(n - half);
}

/// x - n ln(2), ln(2) in two parts.
[[gnu::always_inline]] inline Packet<float> less_powers(Packet<float> x, Packet<float> n) {
  return fma(n, Packet<float>(2.12194440e-4F), fma(n, Packet<float>(-0.693359375F), x));
}

/// e^r = 1 + r + r^2 low + r^4 high for |r| <= ln(2) / 2: off by 1.5e-8 of e^r - 1 at most (a fit at Chebyshev's
/// points, least squares weighted by the errors again and again).
struct ExpSeries {
  Packet<float> squared, low, high;
};
[[gnu::always_inline]] inline ExpSeries exp_series(Packet<float> r) {
  using P = Packet<float>;
  const P squared = r * r;
  const P middle = fma(P(8.36604089e-3F), r, 4.16668542e-2F);
  return {squared, fma(P(1.66665494e-1F), r, 0.5F), fma(squared, P(1.38982246e-3F), middle)};
}
/// e^r there, rounded twice.
[[gnu::always_inline]] inline Packet<float> exp_reduced(Packet<float> r) {
  const ExpSeries s = exp_series(r);
  return fma(fma(s.squared, s.high, s.low), s.squared, r + 1.0F);
}
inline Packet<float> exp(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = ei::pmin(ei::pmax(x.raw, P(-104.0F).raw), P(89.0F).raw);
  const P n = ei::pfloor(fma(bounded, P(1.44269504088896341F), P(0.5F)).raw);
  const P y = scale(exp_reduced(less_powers(bounded, n)), n);
  return select(is_nan(x), x, select(x < P(-104.0F), P(0.0F), y));
}

inline Packet<float> exp2(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = ei::pmin(ei::pmax(x.raw, P(-151.0F).raw), P(129.0F).raw);
  const P n = ei::pfloor((bounded + P(0.5F)).raw);
  const P y = scale(exp_reduced((bounded - n) * P(0.693147180559945309F)), n);
  return select(is_nan(x), x, select(x < P(-151.0F), P(0.0F), y));
}

/// Denormals, which Eigen's logarithm takes for the smallest normal number, are scaled by 2^24 before.
inline Packet<float> log(Packet<float> x) {
  using P = Packet<float>;
  const Mask<float> small = x < P(std::numeric_limits<float>::min());
  return P(ei::plog(select(small, x * P(0x1p24F), x).raw)) - select(small, P(16.635532333438687F), P(0.0F));
}
inline Packet<float> log2(Packet<float> x) {
  using P = Packet<float>;
  const Mask<float> small = x < P(std::numeric_limits<float>::min());
  return P(ei::plog2(select(small, x * P(0x1p24F), x).raw)) - select(small, P(24.0F), P(0.0F));
}
inline Packet<float> log1p(Packet<float> x) { return ei::generic_plog1p(x.raw); }

/// e^x - 1: a Taylor polynomial near 0, else from e^x.
inline Packet<float> expm1(Packet<float> x) {
  using P = Packet<float>;
  P p = 1.0F / 40320;
  p = fma(p, x, 1.0F / 5040);
  p = fma(p, x, 1.0F / 720);
  p = fma(p, x, 1.0F / 120);
  p = fma(p, x, 1.0F / 24);
  p = fma(p, x, 1.0F / 6);
  p = fma(p, x, 0.5F);
  return select(abs(x) < P(0.6F), copysign(fma(p, x * x, x), x), exp(x) - P(1.0F));
}

inline Packet<float> sin(Packet<float> x) { return ei::psin(x.raw); }
inline Packet<float> cos(Packet<float> x) { return ei::pcos(x.raw); }

/// e^x = 2^n + 2^n less_one.
struct Exponential {
  Packet<float> power;     ///< 2^n
  Packet<float> less_one;  ///< e^r - 1, |r| <= ln(2) / 2
};
/// e^(2 x), x from 0 to 44, or e^-x, |x| <= 88.37, by `times` = 2 or -1, with few dependent operations: the steps of
/// a recurrence wait for it. Where a multiply-add rounds once, r takes one, and what that leaves of n ln(2), which
/// matters to large n alone, is added to the series' first term.
template <int times>
[[gnu::always_inline]] inline Exponential exponential(Packet<float> x) {
  using P = Packet<float>;
  using IntPacket = typename ei::unpacket_traits<RawPacket<float>>::integer_packet;
  const P shift = 12582912.0F;  // 1.5 2^23: what is added to it is rounded to an integer, in the last bits of the sum
  const P sum = fma(x, P(times * 1.44269504088896341F), shift);
  const P n = sum - shift;
  const IntPacket exponent = ei::plogical_shift_left<23>(ei::preinterpret<IntPacket>(sum.raw));
  const P power = ei::preinterpret<RawPacket<float>>(ei::padd(exponent, ei::pset1<IntPacket>(127 << 23)));
  const P whole = times < 0 ? -x : x + x;
  P r = 0.0F, first = 0.0F;
  if constexpr (kRoundsOnce) {
    r = fma(n, P(-0.693147182464599609F), whole);
    first = times < 0 ? fma(n, P(1.90465430e-9F), r) : r;
  } else {
    first = r = less_powers(whole, n);
  }
  const ExpSeries s = exp_series(r);
  return {power, fma(s.squared * s.squared, s.high, fma(s.squared, s.low, first))};
}

/// t / (t + 2) with t = e^(2|x|) - 1, which is exact to a rounding also near 0; 1 from 9.1 on. A NaN stays, being the
/// first operand of the bound. (Eigen's rational function takes 0.7 of the time and is off by 2.6e-7.)
[[gnu::always_inline]] inline Packet<float> tanh(Packet<float> x) {
  using P = Packet<float>;
  const Exponential e = exponential<2>(ei::pmin(ei::pabs(x.raw), P(9.1F).raw));
  const P t = fma(e.power, e.less_one, e.power - P(1.0F));
  const P y = t / (t + P(2.0F));
  return P(ei::por(y.raw, ei::pand(x.raw, P(-0.0F).raw)));
}

/// 1 / (1 + e^-x), and 1 - e^-x / (1 + e^-x) above 4: near 1 the sum has fewer digits than the result, and the gate of
/// a state that decays slowly would be off in the same direction step after step. 0 from -88.37 down, whatever the
/// exponential gives there. A NaN stays, being the first operand of the bound.
[[gnu::always_inline]] inline Packet<float> sigmoid(Packet<float> x) {
  using P = Packet<float>;
  const P one(1.0F);
  const Exponential e = exponential<-1>(ei::pmin(x.raw, P(88.0F).raw));
  const Mask<float> not_zero = greater_or_nan(x, P(-88.37F));
  const P y = or_zero(not_zero, one / fma(e.power, e.less_one, e.power + one));
  return select(x > P(4.0F), fma(-fma(e.power, e.less_one, e.power), y, one), y);
}

/// e^x for x <= 0: 0 from -104 on. A NaN stays, being the first operand.
[[gnu::always_inline]] inline Packet<float> exp_not_positive(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = ei::pmax(x.raw, P(-104.0F).raw);
  const P n = ei::pfloor(fma(bounded, P(1.44269504088896341F), P(0.5F)).raw);
  return scale(exp_reduced(less_powers(bounded, n)), n);
}
/// ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|; ln(1 + t) = 2 artanh(s), s = t / (2 + t).
inline Packet<float> softplus(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kSeries[] = {0.666666746F, 0.39998889F, 0.286165982F, 0.214307398F, 0.242895618F};
  const P t = exp_not_positive(-abs(x)), s = t / (t + P(2.0F)), z = s * s;
  return max(x, P(0.0F)) + fma(s * z, polynomial(z, kSeries), s + s);
}
inline Packet<double> softplus(Packet<double> x) { return max(x, Packet<double>(0.0)) + log1p(exp(-abs(x))); }

/// Eigen's power, or the C library's where Eigen has no rounding instruction to build it from (baseline SSE).
template <class P>
P generic_power(P x, P y) {
  if constexpr (ei::packet_traits<typename P::Element>::HasRound) {
    return ei::generic_pow(x.raw, y.raw);
  } else {
    return by_lane(x, y, [](auto a, auto b) { return std::pow(a, b); });
  }
}

/// Eigen's, which forgets the sign of (-0)^y for odd negative y.
inline Packet<float> pow(Packet<float> x, Packet<float> y) {
  using P = Packet<float>;
  const P whole = ei::pfloor(y.raw);
  const P half = y * P(0.5F);
  const P signed_zero_power = select(half == P(ei::pfloor(half.raw)), P(std::numeric_limits<float>::infinity()),
                                     copysign(P(std::numeric_limits<float>::infinity()), x));
  return select((x == P(0.0F)) & (y < P(0.0F)) & (y == whole), signed_zero_power, generic_power(x, y));
}

}  // namespace ferrite::detail::FERRITE_LEVEL
