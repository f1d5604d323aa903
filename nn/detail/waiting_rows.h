#pragma once
/// Rows of one branch of a stream that wait for those of the others.
#include <algorithm>
#include <vector>

#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn::detail {

/// For each row of a batch a queue in a ring. What a step adds and takes away counts once it is committed.
class WaitingRows {
 public:
  /// At most so many wait.
  WaitingRows(const StepRows& rows, std::int64_t most)
      : bytes_(rows.width * size_of(rows.dtype)),
        places_(most + 1),
        width_(rows.width),
        dtype_(rows.dtype),
        ring_((rows.batch * places_ * bytes_ + 7) / 8),
        first_(static_cast<std::size_t>(rows.batch)),
        waiting_(static_cast<std::size_t>(rows.batch)),
        added_(static_cast<std::size_t>(rows.batch)) {}

  /// What a step gave, [B, N], of the rows that have something; null: none. Throws ValueError where too many wait, as
  /// only restored states of another stream can make them.
  void add(Step::Rows given, const void* y) {
    for (std::size_t b = 0; b < added_.size(); ++b) {
      added_[b] = given && given[b];
      if (!added_[b]) continue;
      if (waiting_[b] == places_)
        throw ValueError(
            "stream: a branch is further ahead of the others than it can be; restore states of this model");
      std::copy_n(static_cast<const std::byte*>(y) + static_cast<std::int64_t>(b) * bytes_, bytes_,
                  place(b, first_[b] + waiting_[b]));
    }
  }
  bool any(std::size_t row) const { return waiting_[row] + added_[row] > 0; }
  const std::byte* front(std::size_t row) const { return place(row, first_[row]); }
  std::int64_t bytes() const { return bytes_; }

  /// What was added waits; of these rows the first one has gone.
  void commit(Step::Rows gone) {
    for (std::size_t b = 0; b < added_.size(); ++b) {
      waiting_[b] += added_[b] - (gone[b] ? 1 : 0);
      first_[b] = (first_[b] + (gone[b] ? 1 : 0)) % places_;
    }
  }
  void reset_row(std::int64_t row) {
    first_[static_cast<std::size_t>(row)] = waiting_[static_cast<std::size_t>(row)] = 0;
  }

  /// [B, places, N], those that wait in front, and their numbers [B].
  void save(std::vector<Tensor>& states) const {
    Tensor rows = Tensor::empty(rows_spec());
    std::byte* to = ferrite::detail::Writer::raw(rows);
    for (std::size_t b = 0; b < waiting_.size(); ++b)
      for (std::int64_t i = 0; i < places_; ++i, to += bytes_) {
        if (i < waiting_[b]) {
          std::copy_n(place(b, first_[b] + i), bytes_, to);
        } else {
          std::fill_n(to, bytes_, std::byte{0});
        }
      }
    states.push_back(rows);
    states.push_back(Tensor::from(waiting_, {batch()}));
  }
  std::size_t restore(std::span<const Tensor> states) {
    if (states.size() < 2) throw ValueError("stream: fewer states than the model has");
    check(states[0], rows_spec());
    check(states[1], {{batch()}, Dtype::i64});
    const std::vector<std::int64_t> waiting = states[1].to_vector<std::int64_t>();
    for (const std::int64_t n : waiting)
      if (n < 0 || n > places_) throw ValueError("stream: " + std::to_string(n) + " rows of a branch cannot wait");
    waiting_ = waiting;
    std::fill(first_.begin(), first_.end(), 0);
    const Tensor rows = contiguous(states[0]);
    std::copy_n(rows.raw(), batch() * places_ * bytes_, place(0, 0));
    return 2;
  }

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(waiting_.size()); }
  Spec rows_spec() const { return {{batch(), places_, width_}, dtype_}; }
  static void check(const Tensor& state, const Spec& wanted) {
    if (state.spec() != wanted)
      throw ShapeError("stream: holds a state " + wanted.str() + ", got " + state.spec().str());
  }
  std::byte* place(std::size_t row, std::int64_t i) const {
    return reinterpret_cast<std::byte*>(ring_.get()) +
           (static_cast<std::int64_t>(row) * places_ + i % places_) * bytes_;
  }

  std::int64_t bytes_;   ///< of a row
  std::int64_t places_;  ///< of a ring
  std::int64_t width_;
  Dtype dtype_;
  StepMemory<double> ring_;
  std::vector<std::int64_t> first_, waiting_;
  std::vector<std::uint8_t> added_;
};

}  // namespace ferrite::nn::detail
