/// The products of convolutions: packets of positions by rows of weights, and the sums over positions that give the
/// gradient of the weights. Every sum is the same chain, whichever loop computes it.
#include "ferrite/tensor/kernel/convolution.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/kernel/convolution_lines.h"
#include "ferrite/tensor/kernel/convolution_planes.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {

// ---- lanes along the channels of the results --------------------------------------------------------------
// Used where packets along small images would be partly empty.

/// Most packets of channels of a tile, and most positions of a tile with a number of packets.
inline constexpr int kChannelPackets = kManyRegisters ? 4 : 2;
constexpr int most_positions(int packets) { return packets == kChannelPackets ? 6 : 8; }

/// Computes one chain over a block of terms for MR positions from `i` on and NV packets of channels from `column` on,
/// and adds it to the sums of the blocks before.
template <class T, int MR, int NV>
[[gnu::noinline]] void channel_tile(const ChannelProduct<T>& p, std::int64_t i, std::int64_t column,
                                    std::int64_t block) {
  constexpr int W = kLanes<T>;
  const T* at[static_cast<std::size_t>(MR)];
  for (int m = 0; m < MR; ++m) at[m] = p.image + p.places[i + m];
  Sums<T, MR, NV> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = RawPacket<T>{};
  const std::int64_t step = p.terms * W;
  const T* const weights = p.weights + column * p.terms;
  const std::int64_t end = p.ends[block];
  for (std::int64_t t = block == 0 ? 0 : p.ends[block - 1]; t < end; ++t) {
    const auto [offset, from] = p.met[t];
    const T* const row = weights + from;
    RawPacket<T> w[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) w[v] = load_raw(row + v * step);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const RawPacket<T> x = set_raw<T>(at[m][offset]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) acc[m][v] = fma_raw(w[v], x, acc[m][v]);
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      T* const out = p.out + p.results[i + m] * p.columns + column + v * W;
      Packet<T> y = acc[m][v];
      if (block != 0) y = Packet<T>::load(out) + y;
      if (p.bias && (block + 1) * kBlockK >= p.terms) y = y + Packet<T>::load(p.bias + column + v * W);
      y.store(out);
    }
}

template <class T>
void multiply_channels(const ChannelProduct<T>& p) {
  equal_groups(p.columns / kLanes<T>, kChannelPackets, [&](std::int64_t packet, std::int64_t n) {
    with_count<kChannelPackets>(n, [&](auto packets) {
      constexpr int NV = packets, kMost = most_positions(NV);
      for (std::int64_t block = 0; block * kBlockK < p.terms; ++block)
        equal_groups(p.positions, kMost, [&](std::int64_t i, std::int64_t size) {
          with_count<kMost>(size, [&](auto rows) { channel_tile<T, rows, NV>(p, i, packet * kLanes<T>, block); });
        });
    });
  });
}

// ---- the adjoint of depthwise planes with stride 2 --------------------------------------------------------
// Neighbouring results meet different taps. They are computed as two packets, each of every second column, which are
// stored interleaved.

/// Two packets of columns of the results, starting at column `at`, and the elements that tap c of a row reads for every
/// second of them: for the even ones where c + before is even, else for the odd ones.
template <class T, int K>
struct SpreadColumns {
  SpreadColumns(const PlaneSpread<T>& p, std::int64_t first)
      : at(first), low(0, p.width - first), high(0, p.width - first - kLanes<T>) {
    for (int c = 0; c < K; ++c) {
      from[c] = at / 2 + (((c ^ p.columns_before) & 1) + p.columns_before - c) / 2;
      taps[c] = {-from[c], p.y_width - from[c]};
    }
  }
  std::int64_t at;
  LanesWithin<T> low, high;
  std::int64_t from[static_cast<std::size_t>(K)];
  LanesWithin<T> taps[static_cast<std::size_t>(K)];
};

/// Computes a plane. `odd` is 1 if the number of columns before the first is odd.
template <class T, int K, int odd>
[[gnu::noinline]] void spread_plane(const PlaneSpread<T>& p, const SpreadColumns<T, K>& columns, std::int64_t plane) {
  constexpr int kRows = (K + 1) / 2;  // most rows of y that a row of results meets
  const T* const y = p.y + plane * p.y_step;
  T* const out = p.out + plane * p.out_step + columns.at;
  RawPacket<T> weights[static_cast<std::size_t>(K * K)];
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) weights[k] = set_raw<T>(p.weights[plane * K * K + k]);
  const RawPacket<T> bias = set_raw<T>(p.bias ? p.bias[plane] : T(-0.0));  // -0 changes no number
  // x[k] is row v - k of y, which rows 2 v + r - rows_before of the results meet under row of taps r.
  RawPacket<T> x[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(K)];
#pragma GCC unroll 8
  for (int k = 0; k < kRows; ++k)
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c) x[k][c] = RawPacket<T>{};
  const std::int64_t first = p.rows_before >> 1, last = (p.height - 1 + p.rows_before) >> 1;
  for (std::int64_t v = first - kRows + 1; v <= last; ++v) {
#pragma GCC unroll 8
    for (int k = kRows - 1; k > 0; --k)
#pragma GCC unroll 8
      for (int c = 0; c < K; ++c) x[k][c] = x[k - 1][c];
    const bool exists = v >= 0 && v < p.y_height;
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c)
      x[0][c] = exists ? columns.taps[c].load(y + v * p.y_width + columns.from[c]) : RawPacket<T>{};
#pragma GCC unroll 2
    for (int e = 0; e < 2; ++e) {
      const std::int64_t i = 2 * v + e - p.rows_before;
      if (v < first || i < 0 || i >= p.height) continue;
      RawPacket<T> sums[2] = {RawPacket<T>{}, RawPacket<T>{}};
#pragma GCC unroll 8
      for (int r = e; r < K; r += 2)
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c)
          sums[(c ^ odd) & 1] = fma_raw(weights[r * K + c], x[(r - e) / 2][c], sums[(c ^ odd) & 1]);
      RawPacket<T> low, high;
      in_turn<T>(sums[0] + bias, sums[1] + bias, low, high);
      columns.low.store(out + i * p.width, low);
      columns.high.store(out + i * p.width + kLanes<T>, high);
    }
  }
}

template <class T, int K>
void spread_planes(const PlaneSpread<T>& p) {
  for (std::int64_t at = 0; at < p.width; at += 2 * kLanes<T>) {
    const SpreadColumns<T, K> columns(p, at);
    for (std::int64_t plane = 0; plane < p.planes; ++plane)
      p.columns_before % 2 != 0 ? spread_plane<T, K, 1>(p, columns, plane) : spread_plane<T, K, 0>(p, columns, plane);
  }
}

namespace {

// ---- images --------------------------------------------------------------------------------------------

/// The elements [first, last) of an axis of an image that exist in the operand.
struct Inside {
  explicit Inside(const ImageAxis& a) {
    const std::int64_t low = a.shift >= 0 ? 0 : (-a.shift + a.stride - 1) / a.stride;
    const std::int64_t beyond = a.extent - a.shift;  // the first source element that does not exist
    const std::int64_t high = beyond <= 0 ? 0 : (beyond + a.stride - 1) / a.stride;
    first = std::min(low, a.count);
    last = std::max(first, std::min(high, a.count));
  }
  std::int64_t first, last;
};

/// Copies a row in place of a function call, since rows are short. Reads up to a packet past the end.
template <class T>
[[gnu::always_inline]] inline void copy_row(const T* from, std::int64_t n, T* to) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t k = 0;
  for (; k + W <= n; k += W) Packet<T>::load(from + k).store(to + k);
  if (k < n) put(to + k, Packet<T>::load(from + k), n - k);
}

/// Returns every S-th lane of S consecutive packets; S is a power of two.
template <class T, int S>
[[gnu::always_inline]] inline RawPacket<T> every(const RawPacket<T>* x) {
  if constexpr (S == 1) {
    return x[0];
  } else {
    return every_second<T>(every<T, S / 2>(x), every<T, S / 2>(x + S / 2));
  }
}

/// Copies the elements 0, S, 2 S, ..., n of them. A packet of `from` is read only where one of its elements counts;
/// with `most` there is at most one packet of results, which reads that many.
template <class T, int S, int most = 0>
[[gnu::always_inline]] inline void copy_every(const T* from, std::int64_t n, T* to) {
  if constexpr (sizeof(T) == 4) {
    constexpr std::int64_t W = kLanes<T>;
    const auto packet = [&](std::int64_t k, std::int64_t packets) __attribute__((always_inline)) {
      RawPacket<T> x[static_cast<std::size_t>(S)];
#pragma GCC unroll 4
      for (int i = 0; i < S; ++i) x[i] = load_raw(from + S * k + (i < packets ? i : 0) * W);
      put(to + k, Packet<T>(every<T, S>(x)), std::min(W, n - k));
    };
    if constexpr (most != 0) return packet(0, most);
    std::int64_t k = 0;
    for (; k + W <= n; k += W) packet(k, S);
    if (k < n) packet(k, (S * (n - k - 1)) / W + 1);
  } else {
    for (std::int64_t k = 0; k < n; ++k) to[k] = from[S * k];
  }
}

/// Writes the elements of images that exist in the operands; the others must be zero before. Calls copy(row of an
/// operand, row of its image).
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
    rows([n](const T* row, T* at) { copy_every<T, 2, 1>(row, n, at); });
  } else if (stride == 2 && n <= kLanes<T>) {
    rows([n](const T* row, T* at) { copy_every<T, 2, 2>(row, n, at); });
  } else if (stride == 2) {
    rows([n](const T* row, T* at) { copy_every<T, 2>(row, n, at); });
  } else if (stride == 4) {
    rows([n](const T* row, T* at) { copy_every<T, 4>(row, n, at); });
  } else {
    rows([n, stride](const T* row, T* at) {
      for (std::int64_t k = 0; k < n; ++k) at[k] = row[k * stride];
    });
  }
}

// ---- forward -------------------------------------------------------------------------------------------

/// Most rows of a tile, and most packets of a tile with a number of rows: enough chains to hide their latency.
template <class T>
inline constexpr int kTileRows = kManyRegisters && sizeof(T) == 4 ? 8 : 4;
template <class T>
constexpr int most_packets(int rows) {
  if (sizeof(T) == 8 || !kManyRegisters) return rows == 1 ? 6 : 3;
  return rows == 1 ? 8 : rows <= 4 ? 6 : 3;
}

/// Stores sums [rows, count], packets, whose lanes are apart in the results, starting at row `m`.
template <class T>
[[gnu::noinline]] void put_apart(const WindowProduct<T>& p, std::int64_t m, std::int64_t rows,
                                 const PacketPlace* packets, std::int64_t count, const T* sums) {
  constexpr std::int64_t W = kLanes<T>;
  T* const out = p.out + m * p.out_row;
  for (std::int64_t v = 0; v < count; ++v, sums += W)
    for (std::int32_t s = packets[v].first; s < packets[v].last; ++s) {
      const auto [to, begin, end] = p.segments[s];
      T* row = out + to;
#if defined(__AVX512F__) && defined(__BMI2__)
      if constexpr (sizeof(T) == 4)
        if (p.out_step == 2) {  // every second element of two packets, starting at the place of lane 0
          const std::uint32_t places = _pdep_u32((1U << end) - (1U << begin), 0x55555555U);
          const __m512i low = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
          const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
          row -= 2 * begin;
          for (std::int64_t i = 0; i < rows; ++i, row += p.out_row) {
            const RawPacket<T> x = load_raw(sums + i * count * W);
            _mm512_mask_storeu_ps(row, static_cast<__mmask16>(places), _mm512_permutexvar_ps(low, x));
            _mm512_mask_storeu_ps(row + W, static_cast<__mmask16>(places >> 16), _mm512_permutexvar_ps(high, x));
          }
          continue;
        }
#endif
      for (std::int64_t i = 0; i < rows; ++i, row += p.out_row)
        for (std::int32_t k = begin; k < end; ++k) row[(k - begin) * p.out_step] = sums[i * count * W + k];
    }
}

/// Computes one chain over terms [k, end) for MR rows of weights and NV packets.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void chain(const WindowProduct<T>& p, const T* weights, const T* const* at,
                                         std::int64_t k, std::int64_t end, Sums<T, MR, NV>& acc) {
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
}

/// Stores the sums of rows [m, m + MR), which are in registers, with their bias.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void put_tile(const WindowProduct<T>& p, std::int64_t m, const PacketPlace* packets,
                                            Sums<T, MR, NV>& sums) {
  constexpr std::int64_t W = kLanes<T>;
  T* const out = p.out + m * p.out_row;
  if (p.bias) {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) sums[i][v] = sums[i][v] + set_raw<T>(p.bias[m + i]);
  }
  if (p.out_step != 1) {
    alignas(64) T kept[static_cast<std::size_t>(MR * NV * W)];
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) store_raw(kept + (i * NV + v) * W, sums[i][v]);
    return put_apart(p, m, MR, packets, NV, kept);
  }
#pragma GCC unroll 16
  for (int v = 0; v < NV; ++v)
    for (std::int32_t s = packets[v].first; s < packets[v].last; ++s) {
      const PacketSegment& segment = p.segments[s];
      T* to = out + segment.to;
      if (segment.end - segment.begin == W) {
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i, to += p.out_row) store_raw(to, sums[i][v]);
      } else {
        const LanesWithin<T> lanes(segment.begin, segment.end);
        to -= segment.begin;
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i, to += p.out_row) lanes.store(to, sums[i][v]);
      }
    }
}

/// Computes MR rows starting at `m` for NV packets starting at `packets`.
template <class T, int MR, int NV>
[[gnu::noinline]] void tile(const WindowProduct<T>& p, std::int64_t m, const PacketPlace* packets) {
  constexpr std::int64_t W = kLanes<T>;
  const T* at[static_cast<std::size_t>(NV)];
  for (int v = 0; v < NV; ++v) at[v] = p.image + packets[v].from;
  const T* const weights = p.weights + m * p.weights_row;
  alignas(64) T before[static_cast<std::size_t>(MR * NV * W)];  // sums of the blocks of terms before
  for (std::int64_t block = 0;; ++block) {
    Sums<T, MR, NV> sums;
    chain<T, MR, NV>(p, weights, at, block == 0 ? 0 : p.ends[block - 1], p.blocks == 0 ? 0 : p.ends[block], sums);
    if (block != 0) {
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) sums[i][v] = load_raw(before + (i * NV + v) * W) + sums[i][v];
    }
    if (block + 1 >= p.blocks) return put_tile<T, MR, NV>(p, m, packets, sums);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) store_raw(before + (i * NV + v) * W, sums[i][v]);
  }
}

/// Computes all packets for rows [m, m + MR).
template <class T, int MR>
void row_group(const WindowProduct<T>& p, std::int64_t m, std::int64_t first, std::int64_t last) {
  constexpr int kMost = most_packets<T>(MR);
  equal_groups(last - first, kMost, [&](std::int64_t at, std::int64_t n) {
    with_count<kMost>(n, [&](auto count) { tile<T, MR, count>(p, m, p.packets + first + at); });
  });
}

template <class T>
void forward(const WindowProduct<T>& p) {
  constexpr std::int64_t kTogether = 6;  // packets whose image stays in the first cache for all rows
  for (std::int64_t first = 0; first < p.count; first += kTogether) {
    const std::int64_t last = std::min(p.count, first + kTogether);
    equal_groups(p.rows, kTileRows<T>, [&](std::int64_t m, std::int64_t n) {
      with_count<kTileRows<T>>(n, [&](auto rows) { row_group<T, rows>(p, m, first, last); });
    });
  }
}

// ---- the gradient of the weights ------------------------------------------------------------------------

template <class T>
void transpose(const T* g, std::int64_t row, std::int64_t rows, std::int64_t count, T* to, std::int64_t to_row,
               std::int64_t columns) {
  constexpr std::int64_t W = kLanes<T>;
  const std::int64_t whole = W > 1 ? rows / W * W : 0, squares = W > 1 ? count / W * W : 0;
  if constexpr (W > 1)
    for (std::int64_t r = 0; r < whole; r += W)
      for (std::int64_t i = 0; i < squares; i += W)
        transpose_square<T>(g + r * row + i, row, to + i * to_row + r, to_row);
  const auto rest = [&](std::int64_t i, std::int64_t end, std::int64_t first) {
    for (; i < end; ++i) {
      T* const line = to + i * to_row;
      for (std::int64_t r = first; r < rows; ++r) line[r] = g[r * row + i];
      for (std::int64_t r = rows; r < columns; ++r) line[r] = T(0);
    }
  };
  if (whole < std::max(rows, columns)) rest(0, squares, whole);
  rest(squares, count, 0);
}

/// Calls f(first, count) for the positions of a product that are in a span, row by row.
template <class T, class F>
[[gnu::always_inline]] inline void each_run(const WeightProduct<T>& p, const TapSpan& span, const F& f) {
  std::int64_t column = p.begin % p.width, row = p.begin / p.width;
  std::int64_t h = row % p.height, d = row / p.height;
  for (std::int64_t i = 0; i < p.positions;) {
    const std::int64_t end = std::min(p.width, column + p.positions - i);
    if (h >= span.first[1] && h < span.last[1] && d >= span.first[0] && d < span.last[0]) {
      const std::int64_t first = std::max(column, span.first[2]), last = std::min(end, span.last[2]);
      if (first < last) f(i + first - column, last - first);
    }
    i += end - column;
    column = 0;
    if (++h == p.height) {
      h = 0;
      ++d;
    }
  }
}

/// Returns the span of all positions that any of n taps from `tap` on reads.
template <class T>
TapSpan joint_span(const WeightProduct<T>& p, std::int64_t tap, std::int64_t n) {
  TapSpan all = p.spans[tap];
  for (std::int64_t k = 1; k < std::min(n, p.taps); ++k)
    for (int axis = 0; axis < 3; ++axis) {
      const TapSpan& other = p.spans[(tap + k) % p.taps];
      all.first[axis] = std::min(all.first[axis], other.first[axis]);
      all.last[axis] = std::max(all.last[axis], other.last[axis]);
    }
  return all;
}

/// Multiplies MR terms from `k` on, `step` apart, by NV packets of columns from `column` on.
template <class T, int MR, int NV>
[[gnu::noinline]] void weight_tile(const WeightProduct<T>& p, const TapSpan& span, std::int64_t k, std::int64_t step,
                                   std::int64_t column) {
  constexpr int W = kLanes<T>;
  const T* at[static_cast<std::size_t>(MR)];
  for (int m = 0; m < MR; ++m) at[m] = p.image + p.offsets[k + m * step];
  Sums<T, MR, NV> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = RawPacket<T>{};
  each_run(
      p, span, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
        const T* g = p.g + first * p.columns + column;
        const T* const end = g + count * p.columns;
        for (std::int64_t place = p.places[first]; g != end; g += p.columns, ++place) {
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
      });
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      T* const total = p.totals + (k + m * step) * p.columns + column + v * W;
      (Packet<T>::load(total) + Packet<T>(acc[m][v])).store(total);
    }
}

/// Multiplies MR rows of three neighbouring taps from `k` on by one packet of columns, at all positions: the elements
/// of a row of the image that these taps read are broadcast once for all three.
template <class T, int MR>
[[gnu::noinline]] void weight_rows(const WeightProduct<T>& p, std::int64_t k) {
  Sums<T, MR, 3> acc;
#pragma GCC unroll 4
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) acc[m][c] = RawPacket<T>{};
  const T* g = p.g;
  std::int64_t left = p.width - p.begin % p.width;
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
      T* const total = p.totals + (k + 3 * m + c) * p.columns;
      (Packet<T>::load(total) + Packet<T>(acc[m][c])).store(total);
    }
}

/// Returns whether the terms are rows of three neighbouring taps.
template <class T>
bool are_rows_of_three(const WeightProduct<T>& p) {
  for (std::int64_t k = 0; k + 2 < p.taps; k += 3)
    if (p.offsets[k + 1] != p.offsets[k] + 1 || p.offsets[k + 2] != p.offsets[k] + 2) return false;
  return p.taps % 3 == 0;
}

/// Returns the most terms of a tile with a number of packets of columns.
template <class T>
constexpr int most_terms(int packets) {
  return packets == 4 ? 6 : kTileRows<T>;
}

template <class T>
void weights(const WeightProduct<T>& p) {
  const std::int64_t all = p.channels * p.taps;
  if (p.columns == kLanes<T> && are_rows_of_three(p)) {
    constexpr int kRows = kManyRegisters ? 3 : 2;
    return equal_groups(all / 3, kRows, [&](std::int64_t row, std::int64_t n) {
      with_count<kRows>(n, [&](auto rows) { weight_rows<T, rows>(p, 3 * row); });
    });
  }
  // The terms of a tile are channels of one tap, where there are enough of them: they read the same positions.
  const bool by_taps = p.channels >= 4;
  constexpr int kMost = kManyRegisters ? 4 : 3;
  equal_groups(p.columns / kLanes<T>, kMost, [&](std::int64_t packet, std::int64_t n) {
    with_count<kMost>(n, [&](auto packets) {
      constexpr int kTerms = most_terms<T>(packets);
      for (std::int64_t tap = 0; tap < (by_taps ? p.taps : 1); ++tap)
        equal_groups(by_taps ? p.channels : all, kTerms, [&](std::int64_t k, std::int64_t size) {
          const std::int64_t first = by_taps ? k * p.taps + tap : k;
          const TapSpan span = joint_span(p, first % p.taps, by_taps ? 1 : size);
          with_count<kTerms>(size, [&](auto terms) {
            weight_tile<T, terms, packets>(p, span, first, by_taps ? p.taps : 1, packet * kLanes<T>);
          });
        });
    });
  });
}

/// Sums one part of the lanes, a packet, over rows of positions, and adds them to totals where a chain is 256 long.
template <class T, int MR, int NR>
class Dots {
 public:
  Dots(const WeightDots<T>& p, std::int64_t k, std::int64_t row, std::int64_t part)
      : p_(p), k_(k), row_(row), part_(part) {
#pragma GCC unroll 16
    for (int r = 0; r < NR; ++r)
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) totals_[r][m] = load_raw(lanes(r) + m * L);
  }

  [[gnu::noinline]] void run() {
    constexpr std::int64_t W = kLanes<T>;
    const std::int64_t groups = (p_.length + L - 1) / L;  // of all lanes
    const std::int64_t whole = (p_.length - part_ + L - W) / L, left = p_.length - part_ - whole * L;
    const Mask<T> tail = first_lanes<T>(left);
    Sums<T, MR, NR> acc;
    clear(acc);
    std::int64_t chained = 0;
    for (std::int64_t i = 0; i < p_.count; ++i) {
      const T* const image = p_.image + p_.position_rows[i].image + part_;
      const T* const g = p_.g + row_ * p_.g_row + p_.position_rows[i].g + part_;
      for (std::int64_t j = 0; j < groups;) {
        const std::int64_t n = std::min(groups - j, kBlockK - chained);
        const std::int64_t end = j + n;
        for (; j < std::min(end, whole); ++j)
          add(acc, image + j * L, g + j * L, [](const T* from) { return Packet<T>::load(from).raw; });
        if (j < end && left > 0)
          add(acc, image + j * L, g + j * L, [&](const T* from) { return or_zero(tail, Packet<T>::load(from)).raw; });
        j = end;
        chained += n;
        if (chained == kBlockK) {
          flush(acc);
          chained = 0;
        }
      }
    }
    flush(acc);
#pragma GCC unroll 16
    for (int r = 0; r < NR; ++r)
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) store_raw(lanes(r) + m * L, totals_[r][m]);
  }

 private:
  static constexpr std::int64_t L = kReductionLanes<T>;
  T* lanes(int r) const { return p_.lanes + ((row_ + r) * p_.terms + k_) * L + part_; }
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
  std::int64_t k_, row_, part_;  ///< the first term, row and lane
  Sums<T, NR, MR> totals_;
};

template <class T>
void dots(const WeightDots<T>& p) {
  constexpr int kRows = 2, kTerms = kManyRegisters ? 9 : 5;
  equal_groups(p.rows, kRows, [&](std::int64_t row, std::int64_t n) {
    with_count<kRows>(n, [&](auto rows) {
      equal_groups(p.terms, kTerms, [&](std::int64_t k, std::int64_t size) {
        with_count<kTerms>(size, [&](auto terms) {
          for (std::int64_t part = 0; part < std::min(p.length, kReductionLanes<T>); part += kLanes<T>)
            Dots<T, terms, rows>(p, k, row, part).run();
        });
      });
    });
  });
}

template <class T>
void sum_all_lanes(const T* sums, std::int64_t count, T* to) {
  constexpr std::int64_t W = kLanes<T>, L = kReductionLanes<T>;
  alignas(64) T last[static_cast<std::size_t>(W * L)] = {}, found[static_cast<std::size_t>(W)];
  const std::int64_t whole = count / W * W;
  sum_lanes(sums, whole, to);
  if (whole == count) return;
  std::copy_n(sums + whole * L, (count - whole) * L, last);
  sum_lanes(last, W, found);
  std::copy_n(found, count - whole, to + whole);
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
          .sum_lanes = sum_all_lanes<T>,
          .line = line<T>,
          .planes = planes<T>,
          .spread = spread<T>,
          .plane_dots = plane_dots<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(ConvolutionKernels, convolution_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
