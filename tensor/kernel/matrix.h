#pragma once
/// How matrices lie in memory that products read.
#include <cstdint>

namespace ferrite::detail {

inline constexpr std::int64_t kBlockK = 256;  ///< the order of summation: never changed without changing every result

/// A matrix somewhere in memory: element (i, j) is at data[i * row + j * col].
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row;
  std::int64_t col;
};

/// A matrix [K, G * units] whose columns belong to G gates of some units: packet (unit block u, gate g) of row k is
/// at data + k * k_step + u * u_step + g * g_step. Packed or as it stands: both are read by the same loop.
template <class T>
struct GateMatrix {
  const T* data = nullptr;
  std::int64_t K = 0;
  std::int64_t units = 0;
  std::int64_t k_step = 0;
  std::int64_t u_step = 0;
  std::int64_t g_step = 0;
};

}  // namespace ferrite::detail
