#pragma once
/// Convolutions with lanes along the channels of the results, where packets along small images would be partly empty.
/// Every sum is the same chain as that of a tile along positions.
#include <algorithm>

#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/kernel/convolution_tiles.h"
#include "ferrite/tensor/kernel/matrix.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Most packets of channels of a tile, and most positions under so many.
inline constexpr int kChannelPackets = kManyRegisters ? 4 : 2;
constexpr int most_positions(int packets) { return packets == kChannelPackets ? 6 : 8; }

/// One chain over the terms [k, end) for MR positions from `i` on and NV packets of channels from `column` on, added to
/// what the blocks of terms before have left.
template <class T, int MR, int NV>
[[gnu::noinline]] void channel_tile(const ChannelProduct<T>& p, std::int64_t i, std::int64_t column, std::int64_t k,
                                    std::int64_t end) {
  constexpr int W = kLanes<T>;
  const T* at[static_cast<std::size_t>(MR)];
  for (int m = 0; m < MR; ++m) at[m] = p.image + p.places[i + m];
  Sums<T, MR, NV> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) acc[m][v] = RawPacket<T>{};
  const std::int64_t block = p.terms * W;
  const T* row = p.weights + column / W * block + k * W;
  for (std::int64_t t = k; t < end; ++t, row += W) {
    const std::int64_t offset = p.offsets[t];
    RawPacket<T> w[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) w[v] = load_raw(row + v * block);
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
      const std::int64_t channel = column + v * W;
      T* const out = p.out + (i + m) * p.columns + channel;
      Packet<T> y = acc[m][v];
      if (k != 0) y = Packet<T>::load(out) + y;
      if (p.bias && end == p.terms) y = y + Packet<T>::load(p.bias + channel);
      y.store(out);
    }
}

template <class T>
void multiply_channels(const ChannelProduct<T>& p) {
  equal_groups(p.columns / kLanes<T>, kChannelPackets, [&](std::int64_t packet, std::int64_t n) {
    with_count<kChannelPackets>(n, [&](auto packets) {
      constexpr int NV = packets, kMost = most_positions(NV);
      for (std::int64_t k = 0; k < p.terms; k += kBlockK)
        equal_groups(p.positions, kMost, [&](std::int64_t i, std::int64_t size) {
          with_count<kMost>(size, [&](auto rows) {
            channel_tile<T, rows, NV>(p, i, packet * kLanes<T>, k, std::min(p.terms, k + kBlockK));
          });
        });
    });
  });
}

}  // namespace ferrite::detail::FERRITE_LEVEL
