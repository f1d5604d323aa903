#pragma once
/// The sums of a stream of one row: of products with one input, or with several steps of a few channels, and what is
/// added behind them.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// A function that is cheaper than to store what it is applied to.
enum class CheapFunction : std::uint8_t { none, relu, leaky_relu };

/// What becomes of the sums of a step, in this order.
template <class T>
struct BehindSums {
  const T* bias = nullptr;     ///< [units], added where there is one
  const T* factors = nullptr;  ///< [units]: what is added is a number times these; null: it is a row like the sums
  CheapFunction function = CheapFunction::none;
  T slope{};  ///< of leaky_relu
};

/// The weights that an input of a causal convolution meets, those of all taps. Columns are the outputs [units] under
/// the last tap, then those under the tap before it, and so on.
template <class T>
struct NextWeights {
  const T* rows = nullptr;  ///< [K, columns], rows `row` apart; readable up to a packet beyond the end
  std::int64_t K = 0, row = 0, columns = 0, units = 0;
  std::int64_t outputs = 0;  ///< units that are among these columns
  BehindSums<T> behind{};
};

/// The steps of a row, channel by channel: those of one lie side by side.
template <class T>
struct ChannelRows {
  const T* const* taps;  ///< by tap: the first step of the first channel
  std::int64_t count;    ///< of taps
  std::int64_t channels;
  std::int64_t pitch;  ///< elements from one channel to the next
};

/// For f32 and f64. The bits of sums are those of a product with the inputs under all taps, up to kBlockK of them.
template <class T>
struct StreamSums {
  /// One input x [K]. By column, `sums` are what the inputs before it add to the outputs, and `next`, which may
  /// be the same memory, what they do with this one; null: there are none. A column is read `units` behind the place
  /// where it is written; behind the last one stand zeros, a packet and `units` of them. y [units] are the outputs
  /// under the last tap, in whole packets, `added` to them where it is not null.
  using Next = void (*)(const NextWeights<T>& w, const T* x, const T* sums, T* next, const T* added, T* y);
  Next next[4];  ///< by packets of columns, from one on; the last one for any number
  std::int64_t lanes;

  /// Several steps, which are the lanes: y [units, steps] of the inputs x and weights w, row-major, a row for each tap
  /// and channel. Rows of y, and of what is added, are whole packets.
  void (*channels)(const T* w, std::int64_t units, const ChannelRows<T>& x, std::int64_t steps,
                   const BehindSums<T>& behind, const T* added, T* y);

  /// y = (x[0] + x[1]) + ..., n elements in whole packets; y may be one of them.
  void (*sum)(const void* const* x, std::int64_t terms, std::int64_t n, T* y);

  Next next_of(std::int64_t columns) const {
    const auto most = static_cast<std::int64_t>(std::size(next));
    return next[std::clamp<std::int64_t>((columns + lanes - 1) / lanes, 1, most) - 1];
  }
};
extern const FloatTablesInUse<StreamSums> stream_sums_in_use;

}  // namespace ferrite::detail
