/// Reductions of runs and of columns, in the order of docs/numerics.md, rule 3.
#include <algorithm>
#include <limits>

#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/parts.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr std::int64_t kBlock = kReductionBlock;

/// Lanes that a block is dealt out to: a property of the dtype, not of the machine.
template <class T>
constexpr std::int64_t kSplit = sizeof(T) == 8 ? 8 : 16;

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

/// The lanes of one block, halved pairwise: lane i meets lane i + width / 2.
template <class Op, class T>
T fold(T* lanes) {
  for (std::int64_t width = kSplit<T> / 2; width >= 1; width /= 2)
    for (std::int64_t i = 0; i < width; ++i) lanes[i] = Op::join(lanes[i], lanes[i + width]);
  return lanes[0];
}

/// Deals n elements of whole rows of lanes into `lanes`; n is a multiple of the number of lanes.
template <class Op, class T>
void deal(const T* x, std::int64_t n, T* lanes) {
  if constexpr (std::is_floating_point_v<T>) {
    using P = Packet<T>;
    constexpr std::int64_t kPackets = kSplit<T> / P::width;
    P acc[static_cast<std::size_t>(kPackets)];
    for (std::int64_t p = 0; p < kPackets; ++p) acc[p] = P::load(lanes + p * P::width);
    for (std::int64_t i = 0; i < n; i += kSplit<T>)
      for (std::int64_t p = 0; p < kPackets; ++p) acc[p] = Op::join(acc[p], P::load(x + i + p * P::width));
    for (std::int64_t p = 0; p < kPackets; ++p) acc[p].store(lanes + p * P::width);
  } else {
    for (std::int64_t i = 0; i < n; i += kSplit<T>)
      for (std::int64_t l = 0; l < kSplit<T>; ++l) lanes[l] = Op::join(lanes[l], x[i + l]);
  }
}

/// One run of contiguous elements.
template <class Op, class T>
T reduce_run(const T* x, std::int64_t n) {
  T total = Op::template identity<T>;
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const std::int64_t m = std::min(kBlock, n - b);
    const std::int64_t whole = m / kSplit<T> * kSplit<T>;
    alignas(64) T lanes[static_cast<std::size_t>(kSplit<T>)];
    std::fill_n(lanes, kSplit<T>, Op::template identity<T>);
    deal<Op>(x + b, whole, lanes);
    for (std::int64_t i = whole; i < m; ++i) lanes[i - whole] = Op::join(lanes[i - whole], x[b + i]);
    const T block = fold<Op>(lanes);
    total = b == 0 ? block : Op::join(total, block);
  }
  return total;
}

/// Joins `width` columns of a row into an accumulator row.
template <class Op, class T>
void join_row(T* acc, const T* x, std::int64_t width) {
  std::int64_t c = 0;
  if constexpr (std::is_floating_point_v<T>) {
    using P = Packet<T>;
    for (; c + P::width <= width; c += P::width) Op::join(P::load(acc + c), P::load(x + c)).store(acc + c);
  }
  for (; c < width; ++c) acc[c] = Op::join(acc[c], x[c]);
}

/// n rows of `width` columns each, a stride apart, reduced along the rows: each column in the order of a run. Lanes
/// that no row reaches would join an identity, which changes nothing: they are left out.
template <class Op, class T>
void reduce_columns(const void* from, std::int64_t n, std::int64_t stride, std::int64_t width, void* to) {
  const T* const x = static_cast<const T*>(from);
  T* const out = static_cast<T*>(to);
  alignas(64) T lanes[static_cast<std::size_t>(kSplit<T>)][static_cast<std::size_t>(kReductionColumns)];
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const std::int64_t m = std::min(kBlock, n - b);
    const std::int64_t used = std::min(m, kSplit<T>);
    for (std::int64_t l = 0; l < used; ++l) std::fill_n(lanes[l], width, Op::template identity<T>);
    for (std::int64_t i = 0; i < m; ++i) join_row<Op>(lanes[i % kSplit<T>], x + (b + i) * stride, width);
    for (std::int64_t half = kSplit<T> / 2; half >= 1; half /= 2)
      for (std::int64_t l = 0; l < std::min(half, used - half); ++l) join_row<Op>(lanes[l], lanes[l + half], width);
    if (b == 0) {
      std::copy_n(lanes[0], width, out);
    } else {
      join_row<Op>(out, lanes[0], width);
    }
  }
}

template <class Op, class T>
void reduce_rows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  for (std::int64_t r = 0; r < rows; ++r) to[r] = reduce_run<Op>(from + r * n, n);
}

template <class Op, class T>
void join_each(void* to, const void* x, std::int64_t n) {
  join_row<Op>(static_cast<T*>(to), static_cast<const T*>(x), n);
}

template <class Op, class T>
void deal_each(const DealtRows& d) {
  const T* x = static_cast<const T*>(d.rows);
  std::int64_t lane = d.first % kSplit<T>;
  for (std::int64_t r = 0; r < d.count; ++r, x += d.width) {
    join_row<Op>(reinterpret_cast<T*>(d.lanes + lane * d.lane_bytes), x, d.width);
    if (++lane == kSplit<T>) lane = 0;
  }
}

template <class Op, class T>
void clear_each(void* to, std::int64_t n) {
  std::fill_n(static_cast<T*>(to), n, Op::template identity<T>);
}

template <class Op, class T>
constexpr ReductionKernels kernels_of() {
  return {.rows = reduce_rows<Op, T>,
          .columns = reduce_columns<Op, T>,
          .joins = {join_each<Op, T>, deal_each<Op, T>, clear_each<Op, T>, kSplit<T>}};
}
template <class Op>
constexpr Reductions::OfKind of_kind() {
  return {{kernels_of<Op, float>(), kernels_of<Op, double>(), kernels_of<Op, std::int32_t>(),
           kernels_of<Op, std::int64_t>()}};
}

}  // namespace

constinit const Reductions reductions = {{of_kind<SumOf>(), of_kind<ProdOf>(), of_kind<MaxOf>(), of_kind<MinOf>()}};

}  // namespace ferrite::detail::FERRITE_LEVEL
