#pragma once
/// The last inputs of a convolution in a stream, side by side as its taps see them.
#include <algorithm>
#include <vector>

#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn::detail {

/// Inputs `dilation` steps apart form a track; of every track the last inputs stand in a line that is longer than a
/// window: each input is written behind the one before it, and where the line ends its last inputs move to its front.
/// An input counts once the row advances; until then the next one is written over it.
template <class T>
class InputLines {
 public:
  InputLines(std::int64_t batch, std::int64_t inputs, std::int64_t taps, std::int64_t dilation)
      : batch_(batch),
        inputs_(inputs),
        taps_(taps),
        tracks_(dilation),
        line_((2 * taps - 1) * inputs),
        lines_(tracks_ * batch * line_ + 64 / static_cast<std::int64_t>(sizeof(T))),  // packets are read past the end
        places_(static_cast<std::size_t>(batch)),
        first_(lines_.get()) {}
  InputLines(const InputLines& o)
      : batch_(o.batch_),
        inputs_(o.inputs_),
        taps_(o.taps_),
        tracks_(o.tracks_),
        line_(o.line_),
        lines_(o.lines_),
        places_(o.places_),
        first_(lines_.get()) {}
  InputLines& operator=(const InputLines&) = delete;

  /// Elements of a window, and from the window of a row to that of the next where both have made as many steps.
  std::int64_t terms() const { return taps_ * inputs_; }
  std::int64_t distance() const { return line_; }

  /// The inputs of a row under the taps, the oldest first and the next one, once it is written, at the end.
  T* window(std::int64_t row) const {
    const Place& p = places_[static_cast<std::size_t>(row)];
    return line(p.track, row) + p.window * inputs_;
  }
  void write(std::int64_t row, const T* x) const { std::copy_n(x, inputs_, window(row) + terms() - inputs_); }
  void advance(std::int64_t row) {
    Place& p = places_[static_cast<std::size_t>(row)];
    if (++p.track == tracks_) {
      p.track = 0;
      if (++p.window == taps_) p.window = 0;
    }
    if (p.window == 0) begin_line(row);
  }

  void clear() {
    lines_.clear();
    std::fill(places_.begin(), places_.end(), Place{});
  }
  void clear_row(std::int64_t row) const {
    for (std::int64_t q = 0; q < tracks_; ++q) std::fill_n(line(q, row), line_, T(0));
  }
  /// Those before the next one, [reach, B, D], the oldest first.
  Spec spec() const { return {{(taps_ - 1) * tracks_, batch_, inputs_}, ferrite::dtype_of<T>}; }
  void copy_to(T* to) const {
    each_past([&](T* x) { std::copy_n(x, inputs_, to), to += inputs_; });
  }
  void copy_from(const T* from) {
    std::fill(places_.begin(), places_.end(), Place{});
    each_past([&](T* x) { std::copy_n(from, inputs_, x), from += inputs_; });
    for (std::int64_t b = 0; b < batch_; ++b) begin_line(b);
  }

 private:
  /// Where the next input of a row goes: its track, and how many windows of the line lie before its window.
  struct Place {
    std::int64_t track = 0, window = 0;
  };

  /// taps - 1 inputs, and as many as there are windows: taps.
  T* line(std::int64_t track, std::int64_t row) const { return first_ + (track * batch_ + row) * line_; }
  void begin_line(std::int64_t row) const {
    T* const w = window(row);
    std::copy_n(w + terms(), terms() - inputs_, w);
  }
  /// f(input) of those before the next one, the oldest first, row after row.
  template <class F>
  void each_past(const F& f) const {
    for (std::int64_t back = (taps_ - 1) * tracks_; back > 0; --back)
      for (std::int64_t b = 0; b < batch_; ++b) f(before(b, back));
  }
  /// The input of a row so many steps before the next one. Tracks that come later in this round have not moved their
  /// last inputs to the front; where they have, these stand at the end, too, until the next input of the track.
  T* before(std::int64_t row, std::int64_t back) const {
    const Place& p = places_[static_cast<std::size_t>(row)];
    const std::int64_t windows = back <= p.track ? 0 : (back - p.track + tracks_ - 1) / tracks_;
    const std::int64_t track = p.track - back + windows * tracks_;
    const bool at_end = p.window == 0 && windows > 0 && track >= p.track;
    return line(track, row) + (taps_ - 1 + p.window - windows + (at_end ? taps_ : 0)) * inputs_;
  }

  std::int64_t batch_, inputs_, taps_, tracks_;
  std::int64_t line_;  ///< elements
  StepMemory<T> lines_;
  std::vector<Place> places_;  ///< by row
  T* first_;
};

}  // namespace ferrite::nn::detail
