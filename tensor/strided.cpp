/// Row-major copies of strided tensors.
#include "ferrite/tensor/strided.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {
namespace {

/// Copies one run of elements of size Bytes.
template <std::size_t Bytes>
void copy_run(std::byte* dst, std::int64_t dst_step, const std::byte* src, std::int64_t src_step, std::int64_t n) {
  constexpr auto kBytes = static_cast<std::int64_t>(Bytes);
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(dst + i * dst_step * kBytes, src + i * src_step * kBytes, Bytes);
}

/// Copies the last two axes, transposing in squares that stay in the first cache.
template <std::size_t Bytes>
void copy_plane(std::byte* dst, const std::byte* src, const std::int64_t (&extent)[2], const std::int64_t (&ds)[2],
                const std::int64_t (&ss)[2]) {
  constexpr auto kBytes = static_cast<std::int64_t>(Bytes);
  constexpr std::int64_t kSide = 16;
  for (std::int64_t i0 = 0; i0 < extent[0]; i0 += kSide) {
    const std::int64_t i1 = std::min(i0 + kSide, extent[0]);
    for (std::int64_t j0 = 0; j0 < extent[1]; j0 += kSide) {
      const std::int64_t m = std::min(kSide, extent[1] - j0);
      for (std::int64_t i = i0; i < i1; ++i)
        copy_run<Bytes>(dst + (i * ds[0] + j0 * ds[1]) * kBytes, ds[1], src + (i * ss[0] + j0 * ss[1]) * kBytes, ss[1],
                        m);
    }
  }
}

template <std::size_t Bytes>
void copy_walk(std::byte* dst, const std::byte* src, const Walk<2>& walk) {
  constexpr auto kBytes = static_cast<std::int64_t>(Bytes);
  const int rank = walk.shape.rank();
  const bool transposes = rank >= 2 && walk.strides[1][rank - 1] != 1 && walk.strides[1][rank - 2] == 1;
  if (!transposes) {
    walk.rows([&](const std::int64_t* at, std::int64_t n, const std::int64_t* step) {
      std::byte* to = dst + at[0] * kBytes;
      const std::byte* from = src + at[1] * kBytes;
      if (step[0] == 1 && step[1] == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(n * kBytes));
      } else {
        copy_run<Bytes>(to, step[0], from, step[1], n);
      }
    });
    return;
  }
  Walk<2> outer = walk;
  outer.shape.erase(rank - 1);
  outer.shape[rank - 2] = 1;
  for (Shape& s : outer.strides) s.erase(rank - 1);
  const std::int64_t extent[2] = {walk.shape[rank - 2], walk.shape[rank - 1]};
  const std::int64_t ds[2] = {walk.strides[0][rank - 2], walk.strides[0][rank - 1]};
  const std::int64_t ss[2] = {walk.strides[1][rank - 2], walk.strides[1][rank - 1]};
  outer.rows([&](const std::int64_t* at, std::int64_t, const std::int64_t*) {
    copy_plane<Bytes>(dst + at[0] * kBytes, src + at[1] * kBytes, extent, ds, ss);
  });
}

}  // namespace

Shape broadcast_strides(const Shape& x, const Shape& strides, const Shape& shape) {
  const int lead = shape.rank() - x.rank();
  Shape out;
  for (int i = 0; i < shape.rank(); ++i)
    out.push_back(i < lead || (x[i - lead] == 1 && shape[i] != 1) ? 0 : strides[i - lead]);
  return out;
}

void copy_strided(std::byte* dst, const Shape& dst_strides, const std::byte* src, const Shape& src_strides,
                  const Shape& shape, std::int64_t element_bytes) {
  if (shape.numel() == 0) return;
  Walk<2> walk;
  for (int i = 0; i < shape.rank(); ++i) walk.push(shape[i], {dst_strides[i], src_strides[i]});
  switch (element_bytes) {
    case 1: return copy_walk<1>(dst, src, walk);
    case 2: return copy_walk<2>(dst, src, walk);
    case 4: return copy_walk<4>(dst, src, walk);
    default: return copy_walk<8>(dst, src, walk);
  }
}

void copy_to(std::byte* dst, const Tensor& x) {
  const std::int64_t bytes = size_of(x.dtype());
  if (x.contiguous()) {
    std::memcpy(dst, x.raw(), static_cast<std::size_t>(x.numel() * bytes));
    return;
  }
  copy_strided(dst, x.shape().strides(), x.raw(), x.strides(), x.shape(), bytes);
}

Tensor dense(const Tensor& x) {
  if (x.contiguous()) return x;
  const NewFrame frame;
  return contiguous(x);
}

}  // namespace ferrite::detail
