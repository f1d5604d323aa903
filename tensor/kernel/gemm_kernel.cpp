/// The product of matrices, on one thread.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/parts.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr std::int64_t kDirectRows = 64;  ///< up to here, packing B costs more than it saves
constexpr std::int64_t kManyRows = 512;   ///< from here on what is left over of a group of rows does not matter

/// Shape of the micro-kernel: rows and packets that fill the registers without spilling.
template <class T>
struct Tile {
  static constexpr int lanes = kLanes<T>;
  static constexpr int rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
  static constexpr int packets = 3;
  static constexpr int width = packets * lanes;
};

/// The same for very many rows under packed panels: with 16 registers a panel of two packets leaves more of the first
/// cache to the rows.
template <class T>
struct ManyRowsTile {
  static constexpr int rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 6;
  static constexpr int packets = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 3 : 2;
  static constexpr int width = packets * kLanes<T>;
};

/// Memory of this thread for packed rows or panels, n elements.
template <class T>
T* packed_memory(PackedSide side, std::int64_t n) {
  return reinterpret_cast<T*>(product_memory(side, static_cast<std::size_t>(n) * sizeof(T)));
}

/// One panel of B: `step` elements from one k to the next, columns adjacent.
template <class T>
struct Panel {
  const T* data;
  std::int64_t step;
};

/// MR rows times NV packets of columns over K steps of one block. With `add` the block is added to C.
template <class T, int MR, int NV>
inline void micro(MatrixView<T> a, Panel<T> b, std::int64_t K, T* c, std::int64_t ldc, bool add) {
  using P = RawPacket<T>;
  constexpr int W = kLanes<T>;
  P acc[static_cast<std::size_t>(MR)][static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = ei::pset1<P>(T(0));
  const T* pa = a.data;
  const T* pb = b.data;
  for (std::int64_t k = 0; k < K; ++k) {
    P bv[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) bv[v] = ei::ploadu<P>(pb + v * W);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const P x = ei::pset1<P>(pa[m * a.row]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) acc[m][v] = ei::pmadd(x, bv[v], acc[m][v]);
    }
    pa += a.col;
    pb += b.step;
  }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      T* p = c + m * ldc + v * W;
      ei::pstoreu(p, add ? ei::padd(ei::ploadu<P>(p), acc[m][v]) : acc[m][v]);
    }
}

/// The same for a panel of which only `width` columns exist: through a tile in memory.
template <class T, int MR, int NV>
inline void micro_part(MatrixView<T> a, Panel<T> b, std::int64_t K, T* c, std::int64_t ldc, bool add,
                       std::int64_t width) {
  constexpr std::size_t kTile = static_cast<std::size_t>(NV) * static_cast<std::size_t>(kLanes<T>);
  alignas(64) T tile[static_cast<std::size_t>(MR)][kTile];
  if (add)
    for (int m = 0; m < MR; ++m) std::copy_n(c + m * ldc, width, tile[m]);
  micro<T, MR, NV>(a, b, K, tile[0], static_cast<std::int64_t>(kTile), add);
  for (int m = 0; m < MR; ++m) std::copy_n(tile[m], width, c + m * ldc);
}

/// All rows of C under one panel of B.
template <class T, int NV, int MR>
void panel_rows(std::int64_t M, MatrixView<T> a, Panel<T> b, std::int64_t K, T* c, std::int64_t ldc, bool add,
                std::int64_t width) {
  const bool whole = width == NV * kLanes<T>;
  std::int64_t m = 0;
  for (; m + MR <= M; m += MR) {
    const MatrixView<T> rows{a.data + m * a.row, a.row, a.col};
    if (whole) {
      micro<T, MR, NV>(rows, b, K, c + m * ldc, ldc, add);
    } else {
      micro_part<T, MR, NV>(rows, b, K, c + m * ldc, ldc, add, width);
    }
  }
  if constexpr (MR > 1) {
    if (m < M) panel_rows<T, NV, MR / 2>(M - m, {a.data + m * a.row, a.row, a.col}, b, K, c + m * ldc, ldc, add, width);
  }
}

/// Copies columns [0, width) of B [K, .] into a panel of `panel_width` columns, zeros beyond.
template <class T>
void pack_panel(MatrixView<T> b, std::int64_t K, std::int64_t width, std::int64_t panel_width, T* to) {
  constexpr int W = kLanes<T>;
  if (b.col == 1) {
    for (std::int64_t k = 0; k < K; ++k, to += panel_width) {
      std::memcpy(to, b.data + k * b.row, static_cast<std::size_t>(width) * sizeof(T));
      std::fill(to + width, to + panel_width, T(0));
    }
    return;
  }
  std::int64_t squares = 0;
  std::int64_t across = 0;
  if (b.row == 1 && W > 1) {
    squares = K / W * W;
    across = width / W * W;
    for (std::int64_t j = 0; j < across; j += W)
      for (std::int64_t k = 0; k < squares; k += W)
        transpose_square<T>(b.data + k + j * b.col, b.col, to + k * panel_width + j, panel_width);
  }
  for (std::int64_t k = 0; k < K; ++k) {
    T* row = to + k * panel_width;
    for (std::int64_t j = k < squares ? across : 0; j < width; ++j) row[j] = b.data[k * b.row + j * b.col];
    std::fill(row + width, row + panel_width, T(0));
  }
}

/// Copies A [M, K] so that the rows of a micro-kernel lie side by side: group g at to + g * rows * K.
template <class T>
void pack_rows(MatrixView<T> a, std::int64_t M, std::int64_t K, T* to) {
  constexpr std::int64_t R = Tile<T>::rows;
  for (std::int64_t m = 0; m < M; m += R) {
    const std::int64_t rows = std::min(R, M - m);
    if (rows == R && a.row == 1) {
      for (std::int64_t k = 0; k < K; ++k, to += R) std::memcpy(to, a.data + m + k * a.col, R * sizeof(T));
      continue;
    }
    for (std::int64_t k = 0; k < K; ++k, to += R) {
      const T* from = a.data + m * a.row + k * a.col;
      for (std::int64_t i = 0; i < rows; ++i) to[i] = from[i * a.row];
    }
  }
}

/// One block of k: C [M, N] (+)= A [M, K] . B [K, N], K at most kBlockK.
template <class T>
class BlockProduct {
 public:
  BlockProduct(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
               bool add)
      : M_(M), N_(N), K_(K), a_(a), b_(b), c_(c), ldc_(ldc), add_(add) {}

  void run() {
    if (b_.col == 1 && K_ == 1) return outer();
    if (b_.col == 1 && M_ == 1) return vector();
    if (b_.col == 1 && M_ <= kDirectRows) return direct();
    if (a_.col != 1 && M_ > 1 && N_ > Tile<T>::width) return packed_rows();
    if (M_ >= kManyRows) return packed_panels<ManyRowsTile<T>>();
    packed_panels<Tile<T>>();
  }

 private:
  template <int NV, int MR>
  void direct_panel(std::int64_t j) {
    panel_rows<T, NV, MR>(M_, a_, {b_.data + j, b_.row}, K_, c_ + j, ldc_, add_, NV * Tile<T>::lanes);
  }

  /// One term each: rows of C are multiples of the one row of B, which stays in registers.
  void outer() {
    std::int64_t j = 0;
    outer_columns<8>(j);
    outer_columns<2>(j);
    outer_columns<1>(j);
    if (j == N_) return;
    const Packet<T> b = Packet<T>::load(b_.data + j);
    for (std::int64_t m = 0; m < M_; ++m) {
      T* const to = c_ + m * ldc_ + j;
      const Packet<T> term = fma(Packet<T>(a_.data[m * a_.row]), b, T(0));
      put(to, add_ ? Packet<T>::load(to) + term : term, N_ - j);
    }
  }
  template <int NV>
  void outer_columns(std::int64_t& j) {
    constexpr int W = Tile<T>::lanes;
    for (; j + NV * W <= N_; j += NV * W) {
      Packet<T> b[static_cast<std::size_t>(NV)];
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) b[v] = Packet<T>::load(b_.data + j + v * W);
      for (std::int64_t m = 0; m < M_; ++m) {
        const Packet<T> x = a_.data[m * a_.row];
        T* const to = c_ + m * ldc_ + j;
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) {
          const Packet<T> term = fma(x, b[v], T(0));
          (add_ ? Packet<T>::load(to + v * W) + term : term).store(to + v * W);
        }
      }
    }
  }

  /// One row: panels as wide as the registers allow, so that the chains hide their latency.
  void vector() {
    std::int64_t j = 0;
    wide<12>(j);
    wide<8>(j);
    wide<6>(j);
    wide<4>(j);
    wide<2>(j);
    wide<1>(j);
    if (j < N_) direct_tail(j);
  }
  template <int NV>
  void wide(std::int64_t& j) {
    for (; j + NV * Tile<T>::lanes <= N_; j += NV * Tile<T>::lanes) direct_panel<NV, 1>(j);
  }

  /// Few rows: B is read in place.
  void direct() {
    std::int64_t j = 0;
    if (M_ < Tile<T>::rows)
      for (; j + 2 * Tile<T>::width <= N_; j += 2 * Tile<T>::width)
        direct_panel<2 * Tile<T>::packets, Tile<T>::rows / 2>(j);
    for (; j + Tile<T>::width <= N_; j += Tile<T>::width) direct_panel<Tile<T>::packets, Tile<T>::rows>(j);
    for (; j + 2 * Tile<T>::lanes <= N_; j += 2 * Tile<T>::lanes) direct_panel<2, Tile<T>::rows>(j);
    for (; j + Tile<T>::lanes <= N_; j += Tile<T>::lanes) direct_panel<1, Tile<T>::rows>(j);
    if (j < N_) direct_tail(j);
  }

  /// The last columns, fewer than a packet: read with what stands behind them, of which nothing is stored.
  void direct_tail(std::int64_t j) {
    if (a_.col == 1) {
      const GateMatrix<T> rest{b_.data + j, K_, N_ - j, b_.row, Tile<T>::lanes, 0};
      return each_unit<T, 1>(rest, M_, a_.data, a_.row,
                             [&](std::int64_t m, std::int64_t, std::int64_t n, const Packet<T>* sums) {
                               T* const to = c_ + m * ldc_ + j;
                               put(to, add_ ? Packet<T>::load(to) + sums[0] : sums[0], n);
                             });
    }
    panel_rows<T, 1, Tile<T>::rows>(M_, a_, {b_.data + j, b_.row}, K_, c_ + j, ldc_, add_, N_ - j);
  }

  /// A few panels are packed together; the rows that meet them are taken in groups that stay in the second cache.
  template <class Shape>
  void packed_panels() {
    constexpr std::int64_t kWidth = Shape::width;
    constexpr std::int64_t kPanels = 24 / Shape::packets;
    constexpr std::int64_t kGroup = 12 * Shape::rows;
    T* packed = packed_memory<T>(PackedSide::panels, kPanels * kBlockK * kWidth);
    for (std::int64_t j0 = 0; j0 < N_; j0 += kPanels * kWidth) {
      const std::int64_t columns = std::min(kPanels * kWidth, N_ - j0);
      for (std::int64_t j = 0; j < columns; j += kWidth)
        pack_panel<T>({b_.data + (j0 + j) * b_.col, b_.row, b_.col}, K_, std::min(kWidth, columns - j), kWidth,
                      packed + j * K_);
      for (std::int64_t m = 0; m < M_; m += kGroup)
        for (std::int64_t j = 0; j < columns; j += kWidth)
          packed_rows_of<Shape>(std::min(kGroup, M_ - m), {a_.data + m * a_.row, a_.row, a_.col}, packed + j * K_,
                                std::min(kWidth, columns - j), c_ + m * ldc_ + j0 + j);
    }
  }

  /// Some rows under one packed panel; the last panel is computed no wider than it need be.
  template <class Shape>
  void packed_rows_of(std::int64_t M, MatrixView<T> a, const T* panel, std::int64_t width, T* c) {
    constexpr std::int64_t kWidth = Shape::width;
    constexpr int kRows = Shape::rows;
    if (Shape::packets > 2 && width > 2 * Tile<T>::lanes) {
      panel_rows<T, 3, kRows>(M, a, {panel, kWidth}, K_, c, ldc_, add_, width);
    } else if (width > Tile<T>::lanes) {
      panel_rows<T, 2, kRows>(M, a, {panel, kWidth}, K_, c, ldc_, add_, width);
    } else {
      panel_rows<T, 1, kRows>(M, a, {panel, kWidth}, K_, c, ldc_, add_, width);
    }
  }

  /// Rows of A that are not contiguous are packed as well, in groups that stay in the second cache.
  void packed_rows() {
    constexpr std::int64_t R = Tile<T>::rows;
    constexpr std::int64_t kGroup = 32 * R;
    T* rows = packed_memory<T>(PackedSide::rows, kGroup * kBlockK);
    for (std::int64_t m = 0; m < M_; m += kGroup) {
      const std::int64_t n = std::min(kGroup, M_ - m);
      pack_rows<T>({a_.data + m * a_.row, a_.row, a_.col}, n, K_, rows);
      packed_groups(n, rows, c_ + m * ldc_);
    }
  }

  void packed_groups(std::int64_t M, const T* rows, T* c) {
    constexpr std::int64_t R = Tile<T>::rows;
    constexpr std::int64_t kWidth = Tile<T>::width;
    T* panel = packed_memory<T>(PackedSide::panels, kBlockK * kWidth);
    for (std::int64_t j = 0; j < N_; j += kWidth) {
      const std::int64_t width = std::min(kWidth, N_ - j);
      pack_panel<T>({b_.data + j * b_.col, b_.row, b_.col}, K_, width, kWidth, panel);
      for (std::int64_t m = 0; m < M; m += R)
        packed_rows_of<Tile<T>>(std::min(R, M - m), {rows + m * K_, 1, R}, panel, width, c + m * ldc_ + j);
    }
  }

  std::int64_t M_, N_, K_;
  MatrixView<T> a_, b_;
  T* c_;
  std::int64_t ldc_;
  bool add_;
};

/// a b + c as the packets round it.
template <class T>
inline T chain(T a, T b, T c) {
  if constexpr (kRoundsOnce) return std::fma(a, b, c);
  return a * b + c;
}

/// A product of a few elements, without packets: the same chains, less ceremony. K at most kBlockK.
template <class T>
void tiny(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
          bool add) {
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      T sum = 0;
      for (std::int64_t k = 0; k < K; ++k)
        sum = chain(a.data[m * a.row + k * a.col], b.data[k * b.row + n * b.col], sum);
      c[m * ldc + n] = add ? c[m * ldc + n] + sum : sum;
    }
}

}  // namespace

template <class T>
void product(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
             bool add) {
  constexpr std::int64_t kTiny = 128;  // multiply-adds
  if (K <= kBlockK && M * N * K <= kTiny) return tiny(M, N, K, a, b, c, ldc, add);
  for (std::int64_t k = 0; k < K; k += kBlockK) {
    const std::int64_t n = std::min(kBlockK, K - k);
    BlockProduct<T>(M, N, n, {a.data + k * a.col, a.row, a.col}, {b.data + k * b.row, b.row, b.col}, c, ldc,
                    add || k > 0)
        .run();
  }
}
template void product(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*,
                      std::int64_t, bool);
template void product(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>, double*,
                      std::int64_t, bool);

}  // namespace ferrite::detail::FERRITE_LEVEL
