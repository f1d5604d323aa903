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
struct MinimalKernels {
  /// h of all steps.
  void (*scan)(const MinimalRow<T>& row, T* h);
  /// Of the gates, laid out as they are, and of h0, unless null, from h and what arrives at it. `room` has 2 H numbers.
  void (*gradient)(const MinimalRow<T>& row, const T* h, const T* dh, T* dgates, T* dh0, T* room);
};

extern const ferrite::detail::FloatTablesInUse<MinimalKernels> min_gru_in_use, min_lstm_in_use;
template <class T>
const MinimalKernels<T>& minimal_kernels(MinimalCell cell) {
  return cell == MinimalCell::gru ? min_gru_in_use.of<T>() : min_lstm_in_use.of<T>();
}

}  // namespace ferrite::nn::detail
