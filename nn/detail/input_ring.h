#pragma once
/// The last inputs of each row of a stream, as windows see them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/tensor/kernel/stream_sums.h"

namespace ferrite::nn::detail {

/// Rings, one for each row of the batch, of the inputs that the next window can see and the next input. That input
/// counts once the row advances; until then another one overwrites it.
class InputRing {
 public:
  InputRing(const StepRows& in, const StepWindow& window)
      : in_(in),
        taps_(window.taps),
        dilation_(window.dilation),
        row_(in.width * size_of(in.dtype)),
        ring_((window.reach() + 1) * row_),
        by_words_(row_ <= 64 && row_ % 4 == 0),
        padding_(window.padding),
        memory_((in.batch * ring_ + 7) / 8),
        next_(static_cast<std::size_t>(in.batch)) {
    for (std::int64_t b = 0; b < in_.batch; ++b) pad(place(b, 0), ring_ / row_);
  }

  /// Returns the size of an input, in bytes.
  std::int64_t row_bytes() const { return row_; }
  std::byte* next(std::int64_t row) const { return place(row, next_[static_cast<std::size_t>(row)]); }
  void write(std::int64_t row, const void* x) const { copy_row(static_cast<const std::byte*>(x), next(row)); }
  void write_padding(std::int64_t row) const { pad(next(row), 1); }
  void advance(std::int64_t row) {
    std::int64_t& at = next_[static_cast<std::size_t>(row)];
    at += row_;
    if (at == ring_) at = 0;
  }
  /// Copies the inputs under the taps of a row, the oldest first, the next one at the end.
  void copy_window(std::int64_t row, void* window) const {
    auto* to = static_cast<std::byte*>(window);
    std::int64_t at = next_[static_cast<std::size_t>(row)] + row_;  // the oldest
    if (at == ring_) at = 0;
    if (dilation_ == 1) {  // adjacent, in two pieces at most
      std::copy_n(place(row, at), ring_ - at, to);
      std::copy_n(place(row, 0), at, to + ring_ - at);
      return;
    }
    for (std::int64_t k = 0; k < taps_; ++k, to += row_) {
      copy_row(place(row, at), to);
      at += dilation_ * row_;
      if (at >= ring_) at -= ring_;
    }
  }

  /// Returns the state: the inputs before the next one, [reach, B, D], the oldest first.
  StateMemory past() const {
    return {.name = "past",
            .spec = {{ring_ / row_ - 1, in_.batch, in_.width}, in_.dtype},
            .rows = 1,
            .first = place(0, 0),
            .strides = {row_, ring_, size_of(in_.dtype)},
            .fill = padding_,
            .entries = 0,
            .at = next_.data(),
            .behind = row_,
            .ring = ring_};
  }

 private:
  void copy_row(const std::byte* from, std::byte* to) const {
    if (!by_words_) {
      std::memcpy(to, from, static_cast<std::size_t>(row_));
      return;
    }
    std::int64_t i = 0;
    for (; i + 16 <= row_; i += 16) std::memcpy(to + i, from + i, 16);
    for (; i < row_; i += 4) std::memcpy(to + i, from + i, 4);
  }
  /// Returns the address `at` bytes from the beginning of a row's ring.
  std::byte* place(std::int64_t row, std::int64_t at) const {
    return reinterpret_cast<std::byte*>(memory_.get()) + row * ring_ + at;
  }
  void pad(std::byte* at, std::int64_t inputs) const { fill_values(in_.dtype, padding_, at, inputs * row_); }

  StepRows in_;
  std::int64_t taps_, dilation_;
  std::int64_t row_;   ///< size of an input, in bytes
  std::int64_t ring_;  ///< size of a row's ring, in bytes
  bool by_words_;      ///< whether an input has so few bytes that a call of memcpy would take longer
  double padding_;
  StepMemory<double> memory_;
  std::vector<std::int64_t> next_;  ///< by row: offset of the next input in its ring, in bytes
};

/// A ring of the inputs of a single row, channel by channel. Up to kSteps steps of a channel are contiguous wherever
/// they begin, because the first kSteps of the ring are repeated after its end. Single steps wait as rows until there
/// are kSteps of them or the ring is needed: a row is one copy, while its channels touch a cache line each.
template <class T>
class ChannelRing {
 public:
  static constexpr std::int64_t kSteps = 64;  ///< maximum number of steps that are written, or read, at once

  ChannelRing(std::int64_t channels, const StepWindow& window)
      : channels_(channels),
        taps_(window.taps),
        dilation_(window.dilation),
        size_(window.reach() + kSteps),
        pitch_(size_ + 2 * kSteps),  // packets are read beyond the last step
        memory_(channels * pitch_),
        rows_(kSteps * channels),
        from_(static_cast<std::size_t>(taps_)) {}
  ChannelRing(const ChannelRing&) = default;
  ChannelRing& operator=(const ChannelRing&) = delete;

  /// Writes the next input, which counts once the ring advances.
  void write(const T* x) const { std::copy_n(x, channels_, rows_.get() + waiting_ * channels_); }
  void advance() {
    if (++waiting_ == kSteps) settle();
  }
  /// Writes the next n inputs, whose channels are `pitch` elements apart; `advance(n)` follows.
  void write(std::int64_t n, const T* x, std::int64_t pitch) {
    settle();
    for (std::int64_t c = 0; c < channels_; ++c) write_channel(c, n, x + c * pitch);
  }
  void advance(std::int64_t n) {
    next_ += n * kBytes;
    if (next_ >= size_ * kBytes) next_ -= size_ * kBytes;
  }
  /// Moves the rows that wait into the ring.
  void settle() {
    std::array<T, static_cast<std::size_t>(kSteps)> steps;
    for (std::int64_t c = 0; c < channels_ && waiting_ > 0; ++c) {
      for (std::int64_t t = 0; t < waiting_; ++t) steps[static_cast<std::size_t>(t)] = rows_.get()[t * channels_ + c];
      write_channel(c, waiting_, steps.data());
    }
    advance(std::exchange(waiting_, 0));
  }
  /// Returns the windows of the next outputs, as a product reads them. The ring must be settled.
  ferrite::detail::ChannelRows<T> windows() {
    std::int64_t at = next();
    for (std::int64_t k = taps_ - 1; k >= 0; --k) {
      from_[static_cast<std::size_t>(k)] = channel(0) + at;
      at -= dilation_;
      if (at < 0) at += size_;
    }
    return {from_.data(), taps_, channels_, pitch_};
  }
  /// Copies the inputs under all taps of the next output but the last, oldest first. The ring must be settled.
  void copy_window(T* to) {
    const ferrite::detail::ChannelRows<T> rows = windows();
    for (std::int64_t k = 0; k + 1 < taps_; ++k)
      for (std::int64_t c = 0; c < channels_; ++c) *to++ = rows.taps[k][c * pitch_];
  }

  /// Returns the state: the inputs before the next one, [reach, 1, D], the oldest first.
  StateMemory past() {
    settle();
    return {.name = "past",
            .spec = {{size_ - kSteps, 1, channels_}, ferrite::dtype_of<T>},
            .rows = 1,
            .first = reinterpret_cast<std::byte*>(memory_.get()),
            .strides = {kBytes, channels_ * pitch_ * kBytes, pitch_ * kBytes},
            .entries = 0,
            .at = &next_,
            .behind = kSteps * kBytes,
            .ring = size_ * kBytes};
  }
  /// Repeats the beginning of the ring after its end, once `past` was written from outside.
  void repeat() const {
    for (std::int64_t c = 0; c < channels_; ++c) std::copy_n(channel(c), kSteps, channel(c) + size_);
  }

 private:
  static constexpr std::int64_t kBytes = sizeof(T);

  T* channel(std::int64_t c) const { return memory_.get() + c * pitch_; }
  /// Writes the next n steps of one channel.
  void write_channel(std::int64_t c, std::int64_t n, const T* x) const {
    const std::int64_t at = next(), over = std::max<std::int64_t>(at + n - size_, 0);
    T* const to = channel(c);
    std::copy_n(x, n, to + at);
    std::copy_n(x + n - over, over, to);
    std::copy_n(x, std::clamp<std::int64_t>(kSteps - at, 0, n), to + size_ + at);
  }
  std::int64_t next() const { return next_ / kBytes; }

  std::int64_t channels_, taps_, dilation_;
  std::int64_t size_;   ///< number of steps in the ring
  std::int64_t pitch_;  ///< elements from one channel to the next
  StepMemory<T> memory_;
  StepMemory<T> rows_;        ///< the inputs that wait
  std::int64_t waiting_ = 0;  ///< number of inputs that wait
  std::int64_t next_ = 0;     ///< bytes from the beginning of the ring to where the next input goes
  std::vector<const T*> from_;
};

}  // namespace ferrite::nn::detail
