/// Reductions of runs and of columns, in the order of docs/numerics.md, rule 3.
#include <algorithm>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/reduce_run.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

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

/// Reduces n rows of `width` columns, a stride apart, along the rows: each column in the order of a run. Lanes without
/// a row would join an identity, which changes nothing: they are left out.
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
constexpr ReductionTable of_kind(bool widens) {
  return {.widens = widens,
          .dtype = {kernels_of<Op, float>(), kernels_of<Op, double>(), kernels_of<Op, std::int32_t>(),
                    kernels_of<Op, std::int64_t>()}};
}

}  // namespace

extern const ReductionTable sum_kernels, prod_kernels, max_kernels, min_kernels;
constinit const ReductionTable sum_kernels = of_kind<SumOf>(true);
constinit const ReductionTable prod_kernels = of_kind<ProdOf>(true);
constinit const ReductionTable max_kernels = of_kind<MaxOf>(false);
constinit const ReductionTable min_kernels = of_kind<MinOf>(false);

}  // namespace ferrite::detail::FERRITE_LEVEL
