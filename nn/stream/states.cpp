/// Resets, saves and restores the states of a stream, by what its steps say of their memory.
#include "ferrite/nn/detail/states.h"

#include <algorithm>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::nn::detail {
namespace {

/// A walk through a state of one row, in pieces that lie side by side in memory and in what `save` gives.
class RowPieces {
 public:
  explicit RowPieces(const StateMemory& s)
      : s_(s),
        parts_(s.parts.rank() > 0 ? s.parts : s.spec.shape),
        strides_(s.strides),
        dense_(parts_.strides()),
        piece_(size_of(s.spec.dtype)),
        inner_(parts_.rank()) {
    for (int k = 0; k < dense_.rank(); ++k) dense_[k] *= piece_;
    if (strides_.rank() == 0) strides_ = dense_;
    while (inner_ > 0 && inner_ - 1 != s.rows && inner_ - 1 != s.entries && strides_[inner_ - 1] == piece_)
      piece_ *= parts_[--inner_];
  }
  /// f(where in memory, where in what `save` gives, bytes, whether it means something).
  template <class F>
  void each(std::int64_t row, const F& f) const {
    if (s_.spec.shape.numel() > 0) along(0, row, row * strides_[s_.rows], row * dense_[s_.rows], 0, f);
  }

 private:
  template <class F>
  void along(int axis, std::int64_t row, std::int64_t at, std::int64_t given, std::int64_t entry, const F& f) const {
    if (axis == inner_) {
      std::int64_t in_ring = entry * (s_.entries < 0 ? 0 : strides_[s_.entries]);
      if (s_.at) in_ring = (s_.at[row] + s_.behind + in_ring) % s_.ring;
      return f(s_.first + at + in_ring, given, piece_, !s_.made || entry < s_.made[row]);
    }
    if (axis == s_.rows) return along(axis + 1, row, at, given, entry, f);
    for (std::int64_t i = 0; i < parts_[axis]; ++i) {
      const bool counts = axis == s_.entries;
      along(axis + 1, row, at + (counts ? 0 : i * strides_[axis]), given + i * dense_[axis], counts ? i : entry, f);
    }
  }

  const StateMemory& s_;
  Shape parts_, strides_, dense_;  ///< extents, and bytes from one to the next in memory and in what `save` gives
  std::int64_t piece_;             ///< bytes
  int inner_;                      ///< the first axis inside a piece
};

std::int64_t batch_of(const StateMemory& s) { return s.spec.shape[s.rows]; }

void begin_row(const StateMemory& s, std::int64_t row) {
  if (s.made) return;
  const std::int64_t inner = s.spec.shape.strides()[s.rows] * size_of(s.spec.dtype), outer = inner * batch_of(s);
  RowPieces(s).each(row, [&](std::byte* at, std::int64_t given, std::int64_t bytes, bool) {
    if (!s.initial.defined()) return fill_values(s.spec.dtype, s.fill, at, bytes);
    std::copy_n(s.initial.raw() + given / outer * inner + given % inner, bytes, at);
  });
}

Tensor saved(const StateMemory& s) {
  Tensor t = zeros(s.spec.shape, s.spec.dtype);
  std::byte* const to = ferrite::detail::Writer::raw(t);
  const RowPieces pieces(s);
  for (std::int64_t row = 0; row < batch_of(s); ++row)
    pieces.each(row, [&](const std::byte* at, std::int64_t given, std::int64_t bytes, bool means) {
      if (means) std::copy_n(at, bytes, to + given);
    });
  return t;
}

void check(const StateMemory& s, const Tensor& given) {
  if (given.spec() != s.spec) throw ShapeError("stream: holds a state " + s.spec.str() + ", got " + given.spec().str());
  if (s.spec.dtype != Dtype::i64 || s.most == kAnyNumber) return;
  for (const std::int64_t n : given.to_vector<std::int64_t>())
    if (n < 0 || n > s.most)
      throw ValueError("stream: '" + std::string(s.name) + "' of a row cannot be " + std::to_string(n) +
                       ", which lies outside 0.." + std::to_string(s.most));
}

void take(const StateMemory& s, const Tensor& given) {
  const Tensor dense = contiguous(given);
  const RowPieces pieces(s);
  for (std::int64_t row = 0; row < batch_of(s); ++row)
    pieces.each(row, [&](std::byte* at, std::int64_t from, std::int64_t bytes, bool) {
      std::copy_n(dense.raw() + from, bytes, at);
    });
}

}  // namespace

void begin_states(Step& whole) {
  whole.each([](Step& step) {
    step.states([](const StateMemory& s) {
      for (std::int64_t row = 0; row < batch_of(s); ++row) begin_row(s, row);
    });
    step.states_changed();
  });
}

void begin_states(Step& whole, std::int64_t row) {
  whole.each([row](Step& step) {
    step.states([row](const StateMemory& s) { begin_row(s, row); });
    step.states_changed();
  });
}

void each_state(Step& whole, const Step::StateVisitor& see) {
  whole.each([&see](Step& step) { step.states(see); });
}

std::vector<Tensor> saved_states(Step& whole) {
  std::vector<Tensor> states;
  each_state(whole, [&states](const StateMemory& s) { states.push_back(saved(s)); });
  return states;
}

void restore_states(Step& whole, std::span<const Tensor> states) {
  std::size_t n = 0;
  each_state(whole, [&n](const StateMemory&) { ++n; });
  if (states.size() != n)
    throw ValueError("stream: " + std::to_string(states.size()) + " states given, the model has " + std::to_string(n));
  const Tensor* given = states.data();
  each_state(whole, [&given](const StateMemory& s) { check(s, *given++); });
  given = states.data();
  each_state(whole, [&given](const StateMemory& s) { take(s, *given++); });
  whole.each([](Step& step) { step.states_changed(); });
}

}  // namespace ferrite::nn::detail
