#pragma once
/// The recurrences of the minimal GRU and LSTM, whose gates are known before they run: kernels over rows.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

enum class MinimalCell : std::uint8_t { gru, lstm };

/// What stands side by side for each step, H each: of the GRU c, z, of the LSTM c, f, i.
constexpr std::int64_t gates_of(MinimalCell cell) { return cell == MinimalCell::gru ? 2 : 3; }

/// One row of a batch: `steps` steps, of gates [gates * H] that lie `gates_step` apart, of h [H] `h_step` apart.
template <class T>
struct MinimalRow {
  std::int64_t steps, H, gates_step, h_step;
  const T *gates, *h0;         ///< h0: before the first step; null: zeros
  const std::uint8_t* resets;  ///< by step: whether h counts as 0 before it; or null
};

template <class T>
struct MinimalKernelsOf {
  /// h of all steps.
  void (*scan)(const MinimalRow<T>& row, T* h);
  /// Of the gates, laid out as they are, and of h0, unless null, from h and what arrives at it. `room` has 2 H numbers.
  void (*gradient)(const MinimalRow<T>& row, const T* h, const T* dh, T* dgates, T* dh0, T* room);
};

/// The kernels of one level, by cell.
struct MinimalKernels {
  MinimalKernelsOf<float> f32[2];
  MinimalKernelsOf<double> f64[2];
  template <class T>
  const MinimalKernelsOf<T>& of(MinimalCell cell) const {
    if constexpr (sizeof(T) == 4) {
      return f32[static_cast<int>(cell)];
    } else {
      return f64[static_cast<int>(cell)];
    }
  }
};

extern const ferrite::detail::TableInUse<MinimalKernels> minimal_in_use;

}  // namespace ferrite::nn::detail
