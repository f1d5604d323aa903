#pragma once
/// The sums of a stream of one row: of products with one input, or with several steps of a few channels, and what is
/// applied to them afterwards.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// A function that costs less than storing its operands.
enum class CheapFunction : std::uint8_t { none, relu, leaky_relu };

/// The operations applied to the sums of a step, in this order.
template <class T>
struct BehindSums {
  const T* bias = nullptr;     ///< [units], added where there is one
  const T* factors = nullptr;  ///< [units]: adds a number times these; null: adds a row like the sums
  CheapFunction function = CheapFunction::none;
  T slope{};  ///< slope of leaky_relu
};

/// The weights that an input of a causal convolution meets, those of all taps. Columns are the outputs [units] under
/// the last tap, then those under the tap before it, and so on.
template <class T>
struct NextWeights {
  const T* rows = nullptr;  ///< [K, columns], rows `row` apart; readable up to a packet beyond the end
  std::int64_t K = 0, row = 0, columns = 0, units = 0;
  std::int64_t outputs = 0;  ///< number of units among these columns
  BehindSums<T> behind{};
};

/// The steps of a row, channel by channel: the steps of one channel are consecutive.
template <class T>
struct ChannelRows {
  const T* const* taps;  ///< by tap: the first step of the first channel
  std::int64_t count;    ///< number of taps
  std::int64_t channels;
  std::int64_t pitch;  ///< elements from one channel to the next
};

/// Kernels of stream sums for f32 and f64. The bits of sums are those of a product with the inputs under all taps, up
/// to kBlockK of them.
template <class T>
struct StreamSums {
  /// Processes one input x [K]. For each column, `sums` are what earlier inputs add to the outputs, and `next`, which
  /// may be the same memory, receives the sums including this one; null: there are none. A column is read `units` after
  /// the place where it is written; the last one is followed by zeros, a packet and `units` of them. y [units] are the
  /// outputs under the last tap, in whole packets, with `added` added to them where it is not null.
  using Next = void (*)(const NextWeights<T>& w, const T* x, const T* sums, T* next, const T* added, T* y);
  Next next[4];  ///< by packets of columns, starting at one; the last one takes any number
  std::int64_t lanes;

  /// Computes several steps, which are the lanes: y [units, steps] of the inputs x and weights w, row-major, a row for
  /// each tap and channel. Rows of y, and of what is added, are whole packets.
  void (*channels)(const T* w, std::int64_t units, const ChannelRows<T>& x, std::int64_t steps,
                   const BehindSums<T>& behind, const T* added, T* y);

  /// Computes y = (x[0] + x[1]) + ..., n elements in whole packets; y may be one of them.
  void (*sum)(const void* const* x, std::int64_t terms, std::int64_t n, T* y);

  Next next_of(std::int64_t columns) const {
    const auto most = static_cast<std::int64_t>(std::size(next));
    return next[std::clamp<std::int64_t>((columns + lanes - 1) / lanes, 1, most) - 1];
  }
};
extern const FloatTablesInUse<StreamSums> stream_sums_in_use;

}  // namespace ferrite::detail
