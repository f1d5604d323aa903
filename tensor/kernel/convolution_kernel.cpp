/// The products of convolutions: packets of positions against rows of weights, and the sums over positions that give
/// the gradient of the weights.
#include "ferrite/tensor/kernel/convolution.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/kernel/convolution_channels.h"
#include "ferrite/tensor/kernel/convolution_lines.h"
#include "ferrite/tensor/kernel/convolution_planes.h"
#include "ferrite/tensor/kernel/convolution_spread.h"
#include "ferrite/tensor/kernel/convolution_tiles.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

// ---- images --------------------------------------------------------------------------------------------

/// The elements [first, last) of an axis of an image that the operand has.
struct Inside {
  explicit Inside(const ImageAxis& a) {
    const std::int64_t low = a.shift >= 0 ? 0 : (-a.shift + a.stride - 1) / a.stride;
    const std::int64_t beyond = a.extent - a.shift;  // the first source element that is not there
    const std::int64_t high = beyond <= 0 ? 0 : (beyond + a.stride - 1) / a.stride;
    first = std::min(low, a.count);
    last = std::max(first, std::min(high, a.count));
  }
  std::int64_t first, last;
};

/// Rows are short: a call for each would cost more than its elements. Reads up to a packet past the end.
template <class T>
[[gnu::always_inline]] inline void copy_row(const T* from, std::int64_t n, T* to) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t k = 0;
  for (; k + W <= n; k += W) Packet<T>::load(from + k).store(to + k);
  if (k < n) put(to + k, Packet<T>::load(from + k), n - k);
}

/// Elements 0, 2, 4, ... of which there are n. A packet of `from` is read where one of its elements counts; with `most`
/// packets of results at most one, which reads that many.
template <class T, int most = 0>
[[gnu::always_inline]] inline void copy_every_second(const T* from, std::int64_t n, T* to) {
  if constexpr (sizeof(T) == 4) {
    constexpr std::int64_t W = kLanes<T>;
    const auto packet = [&](std::int64_t k, bool more) __attribute__((always_inline)) {
      const RawPacket<T> low = load_raw(from + 2 * k);
      const Packet<T> x = every_second<T>(low, more ? load_raw(from + 2 * k + W) : low);
      put(to + k, x, std::min(W, n - k));
    };
    if constexpr (most != 0) return packet(0, most == 2);
    for (std::int64_t k = 0; k < n; k += W) packet(k, 2 * (n - k) > W);
  } else {
    for (std::int64_t k = 0; k < n; ++k) to[k] = from[2 * k];
  }
}

/// The elements of images that operands have; the others are zero before. copy(row of an operand, row of its image).
template <class T, class Copy>
void place_rows(std::int64_t channels, const T* from, std::int64_t step, const ImageAxes& axes, T* to,
                std::int64_t to_step, const Copy& copy) {
  const ImageAxis d = axes.axis[0], h = axes.axis[1], w = axes.axis[2];
  const Inside depth(d), height(h), width(w);
  from += width.first * w.stride + w.shift;
  to += width.first;
  for (std::int64_t c = 0; c < channels; ++c, from += step, to += to_step)
    for (std::int64_t i = depth.first; i < depth.last; ++i)
      for (std::int64_t j = height.first; j < height.last; ++j)
        copy(from + ((i * d.stride + d.shift) * h.extent + j * h.stride + h.shift) * w.extent,
             to + (i * h.count + j) * w.count);
}
template <class T>
void place(std::int64_t channels, const T* from, std::int64_t step, const ImageAxes& axes, T* to,
           std::int64_t to_step) {
  const Inside width(axes.axis[2]);
  const std::int64_t n = width.last - width.first, stride = axes.axis[2].stride;
  if (n == 0) return;
  const auto rows = [&](const auto& copy) { place_rows(channels, from, step, axes, to, to_step, copy); };
  if (stride == 1 && n <= kLanes<T>) {
    rows([n](const T* row, T* at) { put(at, Packet<T>::load(row), n); });
  } else if (stride == 1) {
    rows([n](const T* row, T* at) { copy_row(row, n, at); });
  } else if (stride == 2 && 2 * n <= kLanes<T>) {
    rows([n](const T* row, T* at) { copy_every_second<T, 1>(row, n, at); });
  } else if (stride == 2 && n <= kLanes<T>) {
    rows([n](const T* row, T* at) { copy_every_second<T, 2>(row, n, at); });
  } else if (stride == 2) {
    rows([n](const T* row, T* at) { copy_every_second(row, n, at); });
  } else {
    rows([n, stride](const T* row, T* at) {
      for (std::int64_t k = 0; k < n; ++k) at[k] = row[k * stride];
    });
  }
}

// ---- forward -------------------------------------------------------------------------------------------

/// Most rows of a tile, and most packets of one with so many rows: enough chains to hide their latency.
template <class T>
inline constexpr int kTileRows = kManyRegisters && sizeof(T) == 4 ? 8 : 4;
template <class T>
constexpr int most_packets(int rows) {
  if (sizeof(T) == 8 || !kManyRegisters) return rows == 1 ? 6 : 3;
  return rows == 1 ? 8 : rows <= 4 ? 6 : 3;
}

#if defined(__AVX512F__) && defined(__BMI2__)
/// Lanes [begin, end) to every second element from `to` on.
[[gnu::always_inline]] inline void put_every_second(float* to, __m512 v, std::int32_t begin, std::int32_t end) {
  const std::uint32_t places = _pdep_u32((1U << end) - (1U << begin), 0x55555555U);
  const __m512i low = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  float* const first = to - 2 * begin;
  _mm512_mask_storeu_ps(first, static_cast<__mmask16>(places), _mm512_permutexvar_ps(low, v));
  _mm512_mask_storeu_ps(first + 16, static_cast<__mmask16>(places >> 16), _mm512_permutexvar_ps(high, v));
}
#endif

/// Stores lanes [begin, end) from `to` on, `step` apart.
template <class T>
void put_segment(T* to, std::int64_t step, Packet<T> v, std::int32_t begin, std::int32_t end) {
  if (step == 1) {
    if (begin == 0) return put(to, v, end);
    return LanesWithin<T>(begin, end).store(to - begin, v);
  }
#if defined(__AVX512F__) && defined(__BMI2__)
  if constexpr (sizeof(T) == 4)
    if (step == 2) return put_every_second(to, v.raw, begin, end);
#endif
  alignas(64) T lanes[static_cast<std::size_t>(kLanes<T>)];
  v.store(lanes);
  for (std::int32_t i = begin; i < end; ++i) to[(i - begin) * step] = lanes[i];
}

/// One chain over terms [k, end) for MR rows of weights and NV packets.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void chain(const WindowProduct<T>& p, const T* weights, const T* const* at,
                                         std::int64_t k, std::int64_t end, Sums<T, MR, NV>& sums) {
  Sums<T, MR, NV> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = RawPacket<T>{};
  constexpr int kHalf = MR > 4 ? (MR + 1) / 2 : MR;  // rows that one pointer reaches
  const std::int64_t row = p.weights_row;
  const T* a = weights + k;
  const T* below = a + kHalf * row;
  const std::int64_t* const offsets = p.offsets;
  for (; k < end; ++k, ++a, ++below) {
    const std::int64_t offset = offsets[k];
    RawPacket<T> x[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) x[v] = load_raw(at[v] + offset);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const RawPacket<T> w = set_raw<T>((m < kHalf ? a : below)[(m < kHalf ? m : m - kHalf) * row]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) acc[m][v] = fma_raw(w, x[v], acc[m][v]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) sums[m][v] = acc[m][v];
}

/// MR rows from `m` on, NV packets from `packets` on.
template <class T, int MR, int NV>
[[gnu::noinline]] void tile(const WindowProduct<T>& p, std::int64_t m, const PacketPlace* packets) {
  const T* at[static_cast<std::size_t>(NV)];
  for (int v = 0; v < NV; ++v) at[v] = p.image + packets[v].from;
  const T* const weights = p.weights + m * p.weights_row;
  Sums<T, MR, NV> sums;
  chain<T, MR, NV>(p, weights, at, 0, std::min(p.terms, kBlockK), sums);
  for (std::int64_t k = kBlockK; k < p.terms; k += kBlockK) {
    Sums<T, MR, NV> more;
    chain<T, MR, NV>(p, weights, at, k, std::min(p.terms, k + kBlockK), more);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) sums[i][v] = sums[i][v] + more[i][v];
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
    T* const out = p.out + (m + i) * p.out_row;
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      Packet<T> y = sums[i][v];
      if (p.bias) y = y + Packet<T>(p.bias[m + i]);
      for (std::int32_t s = packets[v].first; s < packets[v].last; ++s) {
        const PacketSegment& segment = p.segments[s];
        if (p.out_step == 1 && segment.end - segment.begin == kLanes<T>) {
          y.store(out + segment.to);
          continue;
        }
        put_segment(out + segment.to, p.out_step, y, segment.begin, segment.end);
      }
    }
  }
}

/// All packets under rows [m, m + MR).
template <class T, int MR>
void row_group(const WindowProduct<T>& p, std::int64_t m, std::int64_t first, std::int64_t last) {
  constexpr int kMost = most_packets<T>(MR);
  equal_groups(last - first, kMost, [&](std::int64_t at, std::int64_t n) {
    with_count<kMost>(n, [&](auto count) { tile<T, MR, count>(p, m, p.packets + first + at); });
  });
}

template <class T>
void forward(const WindowProduct<T>& p) {
  constexpr std::int64_t kTogether = 12;  // packets whose image stays in the first cache under all rows
  for (std::int64_t first = 0; first < p.count; first += kTogether) {
    const std::int64_t last = std::min(p.count, first + kTogether);
    equal_groups(p.rows, kTileRows<T>, [&](std::int64_t m, std::int64_t n) {
      with_count<kTileRows<T>>(n, [&](auto rows) { row_group<T, rows>(p, m, first, last); });
    });
  }
}

// ---- the gradient of the weights ------------------------------------------------------------------------

template <class T>
void transpose(const T* g, std::int64_t row, std::int64_t rows, std::int64_t count, T* to, std::int64_t columns) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t squares = 0;
  if constexpr (W > 1) {
    squares = count / W * W;
    for (std::int64_t r = 0; r + W <= rows; r += W)
      for (std::int64_t i = 0; i < squares; i += W)
        transpose_square<T>(g + r * row + i, row, to + i * columns + r, columns);
  }
  const std::int64_t whole = W > 1 ? rows / W * W : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    T* const line = to + i * columns;
    for (std::int64_t r = i < squares ? whole : 0; r < rows; ++r) line[r] = g[r * row + i];
    std::fill(line + rows, line + columns, T(0));
  }
}

/// MR terms from `k` on against NV packets of columns from `column` on.
template <class T, int MR, int NV>
[[gnu::noinline]] void weight_tile(const WeightProduct<T>& p, std::int64_t k, std::int64_t column) {
  constexpr int W = kLanes<T>;
  const T* at[static_cast<std::size_t>(MR)];
  for (int m = 0; m < MR; ++m) at[m] = p.image + p.offsets[k + m];
  Sums<T, MR, NV> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = RawPacket<T>{};
  const T* g = p.g + column;
  for (std::int64_t i = 0; i < p.positions; ++i, g += p.columns) {
    const std::int64_t place = p.places[i];
    RawPacket<T> y[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) y[v] = load_raw(g + v * W);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const RawPacket<T> x = set_raw<T>(at[m][place]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) acc[m][v] = fma_raw(x, y[v], acc[m][v]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      T* const total = p.totals + (k + m) * p.columns + column + v * W;
      (Packet<T>::load(total) + Packet<T>(acc[m][v])).store(total);
    }
}

/// The same for MR rows of three neighbouring taps from `k` on and one packet of columns: what these read of a row of
/// the image is broadcast once for all three.
template <class T, int MR>
[[gnu::noinline]] void weight_rows(const WeightProduct<T>& p, std::int64_t k, std::int64_t column) {
  Sums<T, MR, 3> acc;
#pragma GCC unroll 4
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) acc[m][c] = RawPacket<T>{};
  const T* g = p.g + column;
  std::int64_t left = p.width - p.begun;
  for (std::int64_t i = 0; i < p.positions;) {
    const std::int64_t n = std::min(left, p.positions - i);
    const T* at[static_cast<std::size_t>(MR)];
    Sums<T, MR, 3> x;
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) {
      at[m] = p.image + p.offsets[k + 3 * m] + p.places[i];
      x[m][0] = set_raw<T>(at[m][0]);
      x[m][1] = set_raw<T>(at[m][1]);
    }
    for (std::int64_t j = 0; j < n; ++j, g += p.columns) {
      const RawPacket<T> y = load_raw(g);
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
        x[m][2] = set_raw<T>(at[m][j + 2]);
#pragma GCC unroll 4
        for (int c = 0; c < 3; ++c) acc[m][c] = fma_raw(x[m][c], y, acc[m][c]);
        x[m][0] = x[m][1];
        x[m][1] = x[m][2];
      }
    }
    i += n;
    left = p.width;
  }
#pragma GCC unroll 4
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) {
      T* const total = p.totals + (k + 3 * m + c) * p.columns + column;
      (Packet<T>::load(total) + Packet<T>(acc[m][c])).store(total);
    }
}

/// Whether the terms are rows of three neighbouring taps.
template <class T>
bool are_rows_of_three(const WeightProduct<T>& p) {
  for (std::int64_t k = 0; k + 2 < p.terms; k += 3)
    if (p.offsets[k + 1] != p.offsets[k] + 1 || p.offsets[k + 2] != p.offsets[k] + 2) return false;
  return p.terms % 3 == 0;
}

template <class T>
void weights(const WeightProduct<T>& p) {
  if (p.columns == kLanes<T> && are_rows_of_three(p)) {
    constexpr int kRows = kManyRegisters ? 3 : 2;
    return equal_groups(p.terms / 3, kRows, [&](std::int64_t row, std::int64_t n) {
      with_count<kRows>(n, [&](auto rows) { weight_rows<T, rows>(p, 3 * row, 0); });
    });
  }
  constexpr int kMost = 3;
  equal_groups(p.columns / kLanes<T>, kMost, [&](std::int64_t packet, std::int64_t n) {
    with_count<kMost>(n, [&](auto packets) {
      equal_groups(p.terms, kTileRows<T>, [&](std::int64_t k, std::int64_t size) {
        with_count<kTileRows<T>>(size, [&](auto terms) { weight_tile<T, terms, packets>(p, k, packet * kLanes<T>); });
      });
    });
  });
}

/// Sums of lanes over rows of positions, flushed into totals where a chain is 256 packets long.
template <class T, int MR, int NR>
class Dots {
 public:
  Dots(const WeightDots<T>& p, std::int64_t k, std::int64_t row) : p_(p), k_(k), row_(row) {
    for (auto& line : totals_)
      for (auto& total : line) total = RawPacket<T>{};
  }

  [[gnu::noinline]] void run() {
    constexpr std::int64_t W = kLanes<T>;
    const std::int64_t packets = packets_of<T>(p_.length);
    const std::int64_t whole = p_.length / W;
    const Mask<T> tail = first_lanes<T>(p_.length - whole * W);
    Sums<T, MR, NR> acc;
    clear(acc);
    std::int64_t chained = 0;
    for (std::int64_t i = 0; i < p_.count; ++i) {
      const T* const image = p_.image + p_.position_rows[i].image;
      const T* const g = p_.g + row_ * p_.g_row + p_.position_rows[i].g;
      for (std::int64_t j = 0; j < packets;) {
        const std::int64_t n = std::min(packets - j, kBlockK - chained);
        const std::int64_t end = j + n;
        for (; j < std::min(end, whole); ++j)
          add(acc, image + j * W, g + j * W, [](const T* from) { return Packet<T>::load(from).raw; });
        for (; j < end; ++j)
          add(acc, image + j * W, g + j * W, [&](const T* from) { return or_zero(tail, Packet<T>::load(from)).raw; });
        chained += n;
        if (chained == kBlockK) {
          flush(acc);
          chained = 0;
        }
      }
    }
    flush(acc);
    for (int r = 0; r < NR; ++r) {
      constexpr int kWhole = (MR + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
      alignas(64) T lanes[static_cast<std::size_t>(kWhole * W)] = {}, found[static_cast<std::size_t>(kWhole)];
      for (int m = 0; m < MR; ++m) Packet<T>(totals_[r][m]).store(lanes + m * W);
      sum_lanes(lanes, MR, found);
      T* const totals = p_.totals + (row_ + r) * p_.totals_row + k_;
      for (int m = 0; m < MR; ++m) totals[m] = totals[m] + found[m];
    }
  }

 private:
  static void clear(Sums<T, MR, NR>& acc) {
    for (auto& line : acc)
      for (auto& sum : line) sum = RawPacket<T>{};
  }
  void flush(Sums<T, MR, NR>& acc) {
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
      for (int r = 0; r < NR; ++r) totals_[r][m] = totals_[r][m] + acc[m][r];
    clear(acc);
  }
  template <class Load>
  [[gnu::always_inline]] void add(Sums<T, MR, NR>& acc, const T* image, const T* g, const Load& load) const {
    RawPacket<T> y[static_cast<std::size_t>(NR)];
#pragma GCC unroll 16
    for (int r = 0; r < NR; ++r) y[r] = load(g + r * p_.g_row);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const RawPacket<T> x = load(image + p_.offsets[k_ + m]);
#pragma GCC unroll 16
      for (int r = 0; r < NR; ++r) acc[m][r] = fma_raw(x, y[r], acc[m][r]);
    }
  }

  const WeightDots<T>& p_;
  std::int64_t k_, row_;
  Sums<T, NR, MR> totals_;
};

template <class T>
void dots(const WeightDots<T>& p) {
  constexpr int kRows = 2, kTerms = kManyRegisters ? 9 : 5;
  equal_groups(p.rows, kRows, [&](std::int64_t row, std::int64_t n) {
    with_count<kRows>(n, [&](auto rows) {
      equal_groups(p.terms, kTerms, [&](std::int64_t k, std::int64_t size) {
        with_count<kTerms>(size, [&](auto terms) { Dots<T, terms, rows>(p, k, row).run(); });
      });
    });
  });
}

template <class T>
void line(const LineProduct<T>& p) {
  with_count<int{kMostLineTaps}>(p.taps, [&](auto taps) { multiply_line<T, taps>(p); });
}
template <class F>
void with_plane_kernel(std::int64_t taps, std::int64_t stride, const F& f) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  if (taps == 3)
    return stride == 1 ? f(std::integral_constant<int, 3>(), One()) : f(std::integral_constant<int, 3>(), Two());
  return stride == 1 ? f(std::integral_constant<int, 5>(), One()) : f(std::integral_constant<int, 5>(), Two());
}
template <class T>
void planes(std::int64_t taps, const PlaneProduct<T>& p) {
  with_plane_kernel(taps, p.source.stride, [&](auto K, auto S) { multiply_planes<T, K, S>(p); });
}
template <class T>
void spread(std::int64_t taps, const PlaneSpread<T>& p) {
  taps == 3 ? spread_planes<T, 3>(p) : spread_planes<T, 5>(p);
}
template <class T>
void plane_dots(std::int64_t taps, const PlaneDots<T>& p) {
  with_plane_kernel(taps, p.source.stride, [&](auto K, auto S) { sum_planes<T, K, S>(p); });
}

template <class T>
constexpr ConvolutionKernels<T> kernels_of() {
  return {.lanes = kLanes<T>,
          .place = place<T>,
          .forward = forward<T>,
          .channels = multiply_channels<T>,
          .transpose = transpose<T>,
          .weights = weights<T>,
          .dots = dots<T>,
          .line = line<T>,
          .planes = planes<T>,
          .spread = spread<T>,
          .plane_dots = plane_dots<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(ConvolutionKernels, convolution_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
