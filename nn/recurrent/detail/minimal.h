#pragma once
/// Kernels of the recurrences of the minimal GRU and LSTM, whose gates are known before they run.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

enum class MinimalCell : std::uint8_t { gru, lstm };

/// Returns the number of gates of a step, H adjacent values each: c, z of the GRU; c, f, i of the LSTM.
constexpr std::int64_t gates_of(MinimalCell cell) { return cell == MinimalCell::gru ? 2 : 3; }

/// One row of a batch: `steps` steps, with gates [gates * H] that are `gates_step` apart and h [H] `h_step` apart.
template <class T>
struct MinimalRow {
  std::int64_t steps, H, gates_step, h_step;
  const T *gates, *h0;         ///< h0 is the state before the first step; null: zeros
  const std::uint8_t* resets;  ///< by step, whether h is set to 0 before it; or null
};

template <class T>
struct MinimalKernels {
  /// Computes h of all steps.
  void (*scan)(const MinimalRow<T>& row, T* h);
  /// Computes the cotangents of the gates, laid out like them, and of h0, unless null, from h and its cotangents dh.
  /// `room` has 2 H elements.
  void (*gradient)(const MinimalRow<T>& row, const T* h, const T* dh, T* dgates, T* dh0, T* room);
};

extern const ferrite::detail::FloatTablesInUse<MinimalKernels> min_gru_in_use, min_lstm_in_use;
template <class T>
const MinimalKernels<T>& minimal_kernels(MinimalCell cell) {
  return cell == MinimalCell::gru ? min_gru_in_use.of<T>() : min_lstm_in_use.of<T>();
}

}  // namespace ferrite::nn::detail
