#pragma once
/// The loops around the function of a pointwise operation (functors.h), and its kernels by dtype.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

// ---- one number -------------------------------------------------------------------------------------------

/// A packet of one number, with the arithmetic of packets (packet.h), for integers and bool in loops that compilers
/// vectorise.
template <class T>
struct Lane {
  using Element = T;
  T v;

  Lane() = default;
  constexpr Lane(T x) : v(x) {}

  // Integer arithmetic wraps, as NumPy's does: computed unsigned, where overflow is defined.
  friend Lane operator+(Lane a, Lane b) { return wrap(bits(a) + bits(b)); }
  friend Lane operator-(Lane a, Lane b) { return wrap(bits(a) - bits(b)); }
  friend Lane operator*(Lane a, Lane b) { return wrap(bits(a) * bits(b)); }
  friend Lane operator-(Lane a) { return wrap(std::uint64_t{0} - bits(a)); }
  friend bool operator<(Lane a, Lane b) { return a.v < b.v; }
  friend bool operator<=(Lane a, Lane b) { return a.v <= b.v; }
  friend bool operator>(Lane a, Lane b) { return a.v > b.v; }
  friend bool operator>=(Lane a, Lane b) { return a.v >= b.v; }
  friend bool operator==(Lane a, Lane b) { return a.v == b.v; }

 private:
  static std::uint64_t bits(Lane a) { return static_cast<std::uint64_t>(a.v); }
  static Lane wrap(std::uint64_t b) { return Lane(static_cast<T>(b)); }
};

template <class T>
Lane<T> select(bool m, Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return m ? a : b;
}
template <class T>
Lane<T> abs(Lane<T> x) {
  return x.v < 0 ? -x : x;
}
template <class T>
Lane<T> max(Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return a.v > b.v ? a : b;
}
template <class T>
Lane<T> min(Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return a.v < b.v ? a : b;
}
// Division of integers, defined where C++ leaves it undefined: 0 for a divisor 0, wrapped for a divisor -1.
template <class T>
Lane<T> fmod(Lane<T> a, Lane<T> b) {
  return b.v == 0 || b.v == -1 ? T(0) : static_cast<T>(a.v % b.v);
}
/// Returns whether a remainder is not 0 and differs from the divisor in sign.
template <class T>
bool crosses(Lane<T> rest, Lane<T> b) {
  return rest.v != 0 && (rest.v < 0) != (b.v < 0);
}
template <class T>
Lane<T> remainder(Lane<T> a, Lane<T> b) {
  const Lane<T> rest = fmod(a, b);
  return crosses(rest, b) ? rest + b : rest;
}
template <class T>
Lane<T> floor_divide(Lane<T> a, Lane<T> b) {
  const Lane<T> quotient = b.v == 0 ? T(0) : b.v == -1 ? (-a).v : static_cast<T>(a.v / b.v);
  return crosses(fmod(a, b), b) ? quotient - Lane<T>(T(1)) : quotient;
}

// ---- loops -------------------------------------------------------------------------------------------------

/// Returns the packet of an operand at element i. Of a repeated value one element is read, which may just have been
/// written.
template <class P>
[[gnu::always_inline]] inline P packet_at(const void* in, std::ptrdiff_t step, std::int64_t i) {
  const auto* const at = static_cast<const typename P::Element*>(in);
  return step == 0 ? P(*at) : P::load(at + i * step);
}
template <class Op, class P, std::size_t... I>
inline auto load_and_apply(const void* const* in, const std::ptrdiff_t* step, std::int64_t i,
                           std::index_sequence<I...>) {
  return Op::f(packet_at<P>(in[I], step[I], i)...);
}

/// The packets of one operand: a run of them, or one value repeated, loaded once.
template <class T, bool Run>
struct PacketsOf {
  explicit PacketsOf(const void* from) : at(static_cast<const T*>(from)), first(*at) {}
  Packet<T> operator[](std::int64_t i) const {
    if constexpr (Run) {
      return Packet<T>::load(at + i);
    } else {
      return first;
    }
  }
  const T* at;
  Packet<T> first;
};

/// Applies an operation to two operands; whether each is a run is known at compile time.
template <class Op, class T, bool RunA, bool RunB>
void packet_pair(const void* const* in, T* to, std::int64_t n) {
  const PacketsOf<T, RunA> a(in[0]);
  const PacketsOf<T, RunB> b(in[1]);
  for (std::int64_t i = 0; i < n; i += kLanes<T>) Op::f(a[i], b[i]).store(to + i);
}

/// Applies an operation to floats in whole packets.
template <class Op, class T>
void packet_block(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n) {
  T* to = static_cast<T*>(out);
  if constexpr (Op::arity == 1) {
    if (step[0] == 1) {
      const T* a = static_cast<const T*>(in[0]);
      for (std::int64_t i = 0; i < n; i += kLanes<T>) Op::f(Packet<T>::load(a + i)).store(to + i);
      return;
    }
  }
  if constexpr (Op::arity == 2) {
    if (step[0] == 1 && step[1] == 1) return packet_pair<Op, T, true, true>(in, to, n);
    if (step[0] == 1) return packet_pair<Op, T, true, false>(in, to, n);
    if (step[1] == 1) return packet_pair<Op, T, false, true>(in, to, n);
  }
  for (std::int64_t i = 0; i < n; i += kLanes<T>)
    load_and_apply<Op, Packet<T>>(in, step, i, std::make_index_sequence<Op::arity>{}).store(to + i);
}

template <class R, class V>
R lane_result(V v) {
  if constexpr (std::is_same_v<V, bool>) {
    return v;
  } else {
    return v.v;
  }
}

/// Applies an operation to integers or bool, or compares, in plain loops: one for each pattern of runs and repeated
/// values.
template <class Op, class T, class R>
void lane_block(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n) {
  R* to = static_cast<R*>(out);
  const T* a = static_cast<const T*>(in[0]);
  using L = Lane<T>;
  if constexpr (Op::arity == 1) {
    const std::ptrdiff_t sa = step[0];
    for (std::int64_t i = 0; i < n; ++i) to[i] = lane_result<R>(Op::f(L(a[i * sa])));
  } else if constexpr (Op::arity == 2) {
    const T* b = static_cast<const T*>(in[1]);
    if (step[0] == 1 && step[1] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = lane_result<R>(Op::f(L(a[i]), L(b[i])));
    } else if (step[0] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = lane_result<R>(Op::f(L(a[i]), L(*b)));
    } else if (step[1] == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = lane_result<R>(Op::f(L(*a), L(b[i])));
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = lane_result<R>(Op::f(L(*a), L(*b)));
    }
  } else {
    const T* b = static_cast<const T*>(in[1]);
    const T* c = static_cast<const T*>(in[2]);
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = lane_result<R>(Op::f(L(a[i * step[0]]), L(b[i * step[1]]), L(c[i * step[2]])));
  }
}

/// Returns the kernel of a functor for operands of T, or null where it does not take them.
template <class F, class T>
constexpr Block block_of() {
  if constexpr (!accepts(F::types, dtype_of<T>)) {
    return nullptr;
  } else if constexpr (requires { F::template block<T>; }) {
    return F::template block<T>;
  } else if constexpr (requires { F::to_bool; }) {
    return lane_block<F, T, bool>;
  } else if constexpr (std::is_floating_point_v<T>) {
    return packet_block<F, T>;
  } else {
    return lane_block<F, T, T>;
  }
}

template <class F>
constexpr Blocks blocks_of() {
  return {{block_of<F, float>(), block_of<F, double>(), block_of<F, std::int32_t>(), block_of<F, std::int64_t>(),
           block_of<F, bool>()}};
}

/// The kernels of the functor at a place of a family.
template <std::size_t family, std::size_t place>
struct BlocksAt {
  static const Blocks value;
};
template <std::size_t place, class... F>
constexpr Blocks blocks_at(FunctorList<F...>) {
  return blocks_of<std::tuple_element_t<place, std::tuple<F...>>>();
}
template <std::size_t family, std::size_t place>
constinit const Blocks BlocksAt<family, place>::value = blocks_at<place>(std::tuple_element_t<family, Families>{});

/// The kernels of a whole family; naming them instantiates them.
template <std::size_t N>
struct Family {
  const Blocks* at[N];
};
template <std::size_t family, class... F, std::size_t... place>
constexpr Family<sizeof...(F)> whole_family(FunctorList<F...>, std::index_sequence<place...>) {
  return {{&BlocksAt<family, place>::value...}};
}
template <std::size_t family, class... F>
constexpr Family<sizeof...(F)> whole_family(FunctorList<F...> list) {
  return whole_family<family>(list, std::index_sequence_for<F...>());
}

}  // namespace ferrite::detail::FERRITE_LEVEL
