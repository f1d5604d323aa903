#pragma once
/// Rows of one branch of a stream that wait for those of the others.
#include <algorithm>
#include <vector>

#include "ferrite/nn/detail/stream_steps.h"

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
                  place(b, first_[b] + waiting_[b] * bytes_));
    }
  }
  bool any(std::size_t row) const { return waiting_[row] + added_[row] > 0; }
  const std::byte* front(std::size_t row) const { return place(row, first_[row]); }
  std::int64_t bytes() const { return bytes_; }

  /// What was added waits; of these rows the first one has gone.
  void commit(Step::Rows gone) {
    for (std::size_t b = 0; b < added_.size(); ++b) {
      waiting_[b] += added_[b] - (gone[b] ? 1 : 0);
      if (gone[b]) first_[b] = (first_[b] + bytes_) % (places_ * bytes_);
    }
  }
  /// [B, places, N], those that wait in front, and their numbers [B].
  void states(const Step::StateVisitor& see) {
    see({.name = "waiting",
         .spec = {{batch(), places_, width_}, dtype_},
         .first = place(0, 0),
         .entries = 1,
         .made = waiting_.data(),
         .at = first_.data(),
         .ring = places_ * bytes_});
    see({.name = "waiting rows",
         .spec = {{batch()}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(waiting_.data()),
         .most = places_});
  }

 private:
  std::int64_t batch() const { return static_cast<std::int64_t>(waiting_.size()); }
  /// The place that many bytes into a row's ring.
  std::byte* place(std::size_t row, std::int64_t at) const {
    return reinterpret_cast<std::byte*>(ring_.get()) + static_cast<std::int64_t>(row) * places_ * bytes_ +
           at % (places_ * bytes_);
  }

  std::int64_t bytes_;   ///< of a row
  std::int64_t places_;  ///< of a ring
  std::int64_t width_;
  Dtype dtype_;
  StepMemory<double> ring_;
  std::vector<std::int64_t> first_;    ///< by row: bytes from the beginning of its ring
  std::vector<std::int64_t> waiting_;  ///< how many rows wait, by row of the batch
  std::vector<std::uint8_t> added_;
};

}  // namespace ferrite::nn::detail
