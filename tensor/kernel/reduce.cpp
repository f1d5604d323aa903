/// Reductions of strided tensors, split into runs and columns for the kernels.
#include "ferrite/tensor/kernel/reduce.h"

#include <algorithm>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {
namespace {

/// Returns the kernels for a dtype; bool is reduced as the type that it is widened to.
const ReductionKernels& kernels_of(const Reduction& kind, Dtype dtype) {
  return kind.get().dtype[static_cast<int>(dtype)];
}

/// The tensor x with the kept axes first and the reduced ones last.
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

/// Returns the width of rows of columns with stride 1 that the merged kept axes form; 0 where they do not.
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

/// Reduces in the same way for all dtypes, which differ here only in their bytes.
struct Reducing {
  const ReductionKernels& k;
  std::int64_t bytes;  ///< size of an element
  std::byte* out;

  void runs(const Arranged& a) const {
    Walk<1> kept;
    for (int i = 0; i < a.kept_shape.rank(); ++i) kept.push(a.kept_shape[i], {a.kept_strides[i]});
    std::byte* to = out;
    kept.rows([&](const std::int64_t* at, std::int64_t n, const std::int64_t* step) {
      const std::byte* const from = a.x.raw() + at[0] * bytes;
      if (n == 1 || step[0] == a.reduced) {
        k.rows(from, n, a.reduced, to);
      } else {
        for (std::int64_t i = 0; i < n; ++i) k.rows(from + i * step[0] * bytes, 1, a.reduced, to + i * bytes);
      }
      to += n * bytes;
    });
  }

  void columns(const Arranged& a, const Walk<1>& outer, std::int64_t width) const {
    const std::int64_t stride = a.reduced_walk.shape.rank() ? a.reduced_walk.strides[0][0] : 0;
    std::int64_t row = 0;
    for_each_offset(outer.shape, outer.strides[0], [&](std::int64_t at) {
      std::byte* const to = out + row++ * width * bytes;
      const std::int64_t tiles = (width + kReductionColumns - 1) / kReductionColumns;
      const auto tile = [&](std::int64_t t) {
        const std::int64_t c = t * kReductionColumns;
        k.columns(a.x.raw() + (at + c) * bytes, a.reduced, stride, std::min(kReductionColumns, width - c),
                  to + c * bytes);
      };
      if (width * a.reduced < (1 << 16)) {
        for (std::int64_t t = 0; t < tiles; ++t) tile(t);
      } else {
        parallel_for(tiles, tile);
      }
    });
  }
};

void reduce_all(const Reduction& kind, const Tensor& x, const Shape& axes, Tensor& out) {
  const Reducing reducing{kernels_of(kind, x.dtype()), size_of(x.dtype()), Writer::raw(out)};
  const Arranged a = arrange(x, axes);
  if (a.kept == 0) return;
  if (a.reduced == 0) return reducing.k.joins.clear(reducing.out, a.kept);
  const Walk<1>& r = a.reduced_walk;
  if (r.shape.rank() == 0 || (r.shape.rank() == 1 && r.strides[0][0] == 1)) return reducing.runs(a);
  Walk<1> outer;
  if (const std::int64_t width = column_width(a, outer)) return reducing.columns(a, outer, width);
  reducing.runs(made_contiguous(x, axes));
}

/// Returns integers and bool widened to i64, so that a sum fits.
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

}  // namespace

JoinRuns join_runs(const Reduction& kind, Dtype dtype) { return kernels_of(kind, dtype).joins; }

RowReduction row_reduction(const Reduction& kind, Dtype dtype) {
  return is_float(dtype) ? kernels_of(kind, dtype).rows : nullptr;
}

void reduce(const Reduction& kind, const Tensor& x, const Shape& axes, Tensor& out) {
  reduce_all(kind, kind.get().widens ? widened(x) : x, axes, out);
}

}  // namespace ferrite::detail
