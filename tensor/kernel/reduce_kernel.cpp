#include <algorithm>
#include <limits>

#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/reduce.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {
using namespace FERRITE_LEVEL;
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

constexpr std::int64_t kColumns = 64;

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
void reduce_columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, T* out) {
  alignas(64) T lanes[static_cast<std::size_t>(kSplit<T>)][static_cast<std::size_t>(kColumns)];
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

/// x with the kept axes first and the reduced ones last.
struct Arranged {
  Tensor x;
  std::int64_t kept = 1;
  std::int64_t reduced = 1;
  Shape kept_shape, kept_strides;
  Walk<1> reduced_walk;
};

Arranged arrange(const Tensor& x, const Shape& axes) {
  Arranged a;
  a.x = x;
  int next = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (next < axes.rank() && axes[next] == i) {
      a.reduced_walk.push(x.shape()[i], {x.strides()[i]});
      a.reduced *= x.shape()[i];
      ++next;
    } else {
      a.kept_shape.push_back(x.shape()[i]);
      a.kept_strides.push_back(x.strides()[i]);
      a.kept *= x.shape()[i];
    }
  }
  return a;
}

/// Copies x so that the reduced elements of one result are a contiguous run.
Arranged made_contiguous(const Tensor& x, const Shape& axes) {
  Shape shape, strides;
  Shape reduced;
  int next = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (next < axes.rank() && axes[next] == i) {
      reduced.push_back(i);
      ++next;
    } else {
      shape.push_back(x.shape()[i]);
      strides.push_back(x.strides()[i]);
    }
  }
  const int first = shape.rank();
  for (const std::int64_t i : reduced) {
    shape.push_back(x.shape()[static_cast<int>(i)]);
    strides.push_back(x.strides()[static_cast<int>(i)]);
  }
  Tensor copy = Tensor::empty({shape, x.dtype()});
  copy_strided(Writer::raw(copy), copy.strides(), x.raw(), strides, shape, size_of(x.dtype()));
  Shape last;
  for (int i = first; i < shape.rank(); ++i) last.push_back(i);
  return arrange(copy, last);
}

/// The kept axes seen as rows of columns with stride 1 (width) after merging; 0 where that is not so.
std::int64_t column_width(const Arranged& a, Walk<1>& outer) {
  Walk<1> merged;
  for (int i = 0; i < a.kept_shape.rank(); ++i) merged.push(a.kept_shape[i], {a.kept_strides[i]});
  const int rank = merged.shape.rank();
  if (rank == 0 || merged.strides[0][rank - 1] != 1 || a.reduced_walk.shape.rank() > 1) return 0;
  const std::int64_t width = merged.shape[rank - 1];
  merged.shape[rank - 1] = 1;
  outer = merged;
  return width;
}

template <class Op, class T>
void reduce_runs(const Arranged& a, T* out) {
  const T* x = a.x.data<T>();
  std::int64_t k = 0;
  for_each_offset(a.kept_shape, a.kept_strides, [&](std::int64_t at) { out[k++] = reduce_run<Op>(x + at, a.reduced); });
}

template <class Op, class T>
void reduce_as_columns(const Arranged& a, const Walk<1>& outer, std::int64_t width, T* out) {
  const T* x = a.x.data<T>();
  const std::int64_t stride = a.reduced_walk.shape.rank() ? a.reduced_walk.strides[0][0] : 0;
  std::int64_t row = 0;
  for_each_offset(outer.shape, outer.strides[0], [&](std::int64_t at) {
    T* to = out + row++ * width;
    const std::int64_t tiles = (width + kColumns - 1) / kColumns;
    const auto tile = [&](std::int64_t t) {
      const std::int64_t c = t * kColumns;
      reduce_columns<Op>(x + at + c, a.reduced, stride, std::min(kColumns, width - c), to + c);
    };
    if (width * a.reduced < (1 << 16)) {
      for (std::int64_t t = 0; t < tiles; ++t) tile(t);
    } else {
      parallel_for(tiles, tile);
    }
  });
}

template <class Op, class T>
void reduce_typed(const Tensor& x, const Shape& axes, Tensor& out) {
  T* to = Writer::data<T>(out);
  Arranged a = arrange(x, axes);
  if (a.kept == 0) return;
  if (a.reduced == 0) {
    std::fill_n(to, a.kept, Op::template identity<T>);
    return;
  }
  const Walk<1>& r = a.reduced_walk;
  if (r.shape.rank() == 0 || (r.shape.rank() == 1 && r.strides[0][0] == 1)) return reduce_runs<Op, T>(a, to);
  Walk<1> outer;
  if (const std::int64_t width = column_width(a, outer)) return reduce_as_columns<Op, T>(a, outer, width, to);
  reduce_runs<Op, T>(made_contiguous(x, axes), to);
}

template <class Op>
void reduce_any(const Tensor& x, const Shape& axes, Tensor& out) {
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) reduce_typed<Op, T>(x, axes, out);  // bool has been widened
  });
}

/// Integers and bool widened to i64, so that a sum has room.
Tensor widened(const Tensor& x) {
  if (is_float(x.dtype()) || x.dtype() == Dtype::i64) return x;
  Tensor wide = Tensor::empty({x.shape(), Dtype::i64});
  std::int64_t* to = Writer::data<std::int64_t>(wide);
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_offset(x.shape(), x.strides(),
                    [&](std::int64_t at) { *to++ = static_cast<std::int64_t>(x.data<T>()[at]); });
  });
  return wide;
}

template <class Op, class T>
void reduce_each(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  for (std::int64_t r = 0; r < rows; ++r) to[r] = reduce_run<Op>(from + r * n, n);
}

template <class Op>
RowReduction each_of(Dtype dtype) {
  if (dtype == Dtype::f32) return reduce_each<Op, float>;
  return dtype == Dtype::f64 ? reduce_each<Op, double> : nullptr;
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

template <class Op>
JoinRuns joins_of(Dtype dtype) {
  if (dtype == Dtype::f32) return {join_each<Op, float>, deal_each<Op, float>, clear_each<Op, float>, kSplit<float>};
  return {join_each<Op, double>, deal_each<Op, double>, clear_each<Op, double>, kSplit<double>};
}

}  // namespace

JoinRuns join_runs(Reduction kind, Dtype dtype) {
  switch (kind) {
    case Reduction::sum: return joins_of<SumOf>(dtype);
    case Reduction::prod: return joins_of<ProdOf>(dtype);
    case Reduction::max: return joins_of<MaxOf>(dtype);
    case Reduction::min: break;
  }
  return joins_of<MinOf>(dtype);
}

RowReduction row_reduction(Reduction kind, Dtype dtype) {
  switch (kind) {
    case Reduction::sum: return each_of<SumOf>(dtype);
    case Reduction::prod: return each_of<ProdOf>(dtype);
    case Reduction::max: return each_of<MaxOf>(dtype);
    case Reduction::min: break;
  }
  return each_of<MinOf>(dtype);
}

void reduce(Reduction kind, const Tensor& x, const Shape& axes, Tensor& out) {
  switch (kind) {
    case Reduction::sum: return reduce_any<SumOf>(widened(x), axes, out);
    case Reduction::prod: return reduce_any<ProdOf>(widened(x), axes, out);
    case Reduction::max: return reduce_any<MaxOf>(x, axes, out);
    case Reduction::min: return reduce_any<MinOf>(x, axes, out);
  }
}

}  // namespace ferrite::detail
