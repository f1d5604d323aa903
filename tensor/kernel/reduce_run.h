#pragma once
/// Reductions of runs in the order of docs/numerics.md, rule 3: the operations, and the reduction of each block.
#include <algorithm>
#include <limits>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

constexpr std::int64_t kBlock = kReductionBlock;

/// Number of lanes that a block is dealt out to.
template <class T>
constexpr std::int64_t kSplit = kReductionLanes<T>;

struct SumOf {
  template <class T>
  static constexpr T identity = T(0);
  template <class T>
  static T join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
  template <class T>
  static Packet<T> join(Packet<T> a, Packet<T> b) {
    return a + b;
  }
};

struct ProdOf {
  template <class T>
  static constexpr T identity = T(1);
  template <class T>
  static T join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
  template <class T>
  static Packet<T> join(Packet<T> a, Packet<T> b) {
    return a * b;
  }
};

struct MaxOf {
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::lowest();
  template <class T>
  static T join(T a, T b) {
    return a > b || a != a ? a : b;
  }
  template <class T>
  static Packet<T> join(Packet<T> a, Packet<T> b) {
    return max(a, b);
  }
};

struct MinOf {
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                     : std::numeric_limits<T>::max();
  template <class T>
  static T join(T a, T b) {
    return a < b || a != a ? a : b;
  }
  template <class T>
  static Packet<T> join(Packet<T> a, Packet<T> b) {
    return min(a, b);
  }
};

/// Rotates the lanes of a packet: lane i of the result is lane i + by of x.
template <int by, class T, int... i>
[[gnu::always_inline]] inline Packet<T> turned(Packet<T> x, std::integer_sequence<int, i...>) {
  return shuffled(x.raw, x.raw, std::integer_sequence<int, (i + by) % kLanes<T>...>());
}
/// Reduces the first `lanes` lanes of a packet in registers by halving: lane i meets lane i + lanes / 2.
template <int lanes, class T, class Join>
[[gnu::always_inline]] inline T fold(Packet<T> x, const Join& join) {
  if constexpr (lanes == 1) {
    return x.raw[0];
  } else {
    constexpr auto all = std::make_integer_sequence<int, kLanes<T>>();
    return fold<lanes / 2>(join(x, turned<lanes / 2>(x, all)), join);
  }
}

/// Reduces the lanes of one block by halving: lane i meets lane i + half.
template <class Op, std::int64_t half, class T>
T fold(T* lanes) {
  for (std::int64_t i = 0; i < half; ++i) lanes[i] = Op::join(lanes[i], lanes[i + half]);
  if constexpr (half > 1) fold<Op, half / 2>(lanes);
  return lanes[0];
}

/// Reduces at least one element and fewer than there are lanes. Lanes without an element would join an identity, which
/// changes nothing: they are left out.
template <class Op, class T>
T reduce_few(const T* x, std::int64_t n) {
  T lanes[static_cast<std::size_t>(kSplit<T>)];
  for (std::int64_t i = 0; i < n; ++i) lanes[i] = Op::join(Op::template identity<T>, x[i]);
  for (std::int64_t half = kSplit<T> / 2; half >= 1; half /= 2)
    for (std::int64_t i = 0; i < std::min(half, n - half); ++i) lanes[i] = Op::join(lanes[i], lanes[i + half]);
  return lanes[0];
}

/// A source of contiguous elements: packet(i) begins at element i, few(i, n) points to the n elements from i on.
template <class T>
struct Run {
  const T* x;
  Packet<T> packet(std::int64_t i) const { return Packet<T>::load(x + i); }
  const T* few(std::int64_t i, std::int64_t) const { return x + i; }
};

/// Reduces one block: deals its elements out to lanes, which are then halved pairwise.
template <class Op, class T, class Source>
[[gnu::always_inline]] inline T reduce_block(const Source& source, std::int64_t from, std::int64_t end) {
  const std::int64_t whole = from + (end - from) / kSplit<T> * kSplit<T>;
  alignas(64) T lanes[static_cast<std::size_t>(kSplit<T>)];
  const auto take_rest = [&] {
    const T* const rest = source.few(whole, end - whole);
    for (std::int64_t l = 0; l < end - whole; ++l) lanes[l] = Op::join(lanes[l], rest[l]);
  };
  if constexpr (std::is_floating_point_v<T>) {
    using P = Packet<T>;
    constexpr std::int64_t kPackets = kSplit<T> / P::width;
    P acc[static_cast<std::size_t>(kPackets)];
    for (P& a : acc) a = P(Op::template identity<T>);
    for (std::int64_t i = from; i < whole; i += kSplit<T>)
      for (std::int64_t p = 0; p < kPackets; ++p) acc[p] = Op::join(acc[p], source.packet(i + p * P::width));
    if (whole < end) {
      for (std::int64_t p = 0; p < kPackets; ++p) acc[p].store(lanes + p * P::width);
      take_rest();
      return fold<Op, kSplit<T> / 2>(lanes);  // packets would wait for the lanes just written
    }
    for (std::int64_t half = kPackets / 2; half >= 1; half /= 2)
      for (std::int64_t p = 0; p < half; ++p) acc[p] = Op::join(acc[p], acc[p + half]);
    return fold<P::width>(acc[0], [](P a, P b) { return Op::join(a, b); });
  } else {
    std::fill_n(lanes, kSplit<T>, Op::template identity<T>);
    const T* const x = source.few(from, whole - from);
    for (std::int64_t i = 0; i < whole - from; i += kSplit<T>)
      for (std::int64_t l = 0; l < kSplit<T>; ++l) lanes[l] = Op::join(lanes[l], x[i + l]);
    take_rest();
    return fold<Op, kSplit<T> / 2>(lanes);
  }
}

/// Reduces n elements of a source, each requested once and in order. Always inlined, since rows are short.
template <class Op, class T, class Source>
[[gnu::always_inline]] inline T reduce(std::int64_t n, const Source& source) {
  if (n == 0) return Op::template identity<T>;
  if (n < kSplit<T>) return reduce_few<Op>(source.few(0, n), n);
  T total = Op::template identity<T>;
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const T block = reduce_block<Op, T>(source, b, std::min(b + kBlock, n));
    total = b == 0 ? block : Op::join(total, block);
  }
  return total;
}

/// Reduces one run of contiguous elements.
template <class Op, class T>
[[gnu::always_inline]] inline T reduce_run(const T* x, std::int64_t n) {
  return reduce<Op, T>(n, Run<T>{x});
}

}  // namespace ferrite::detail::FERRITE_LEVEL
