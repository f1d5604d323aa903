#pragma once
/// Data sets of labelled sequences, and the batches of an epoch.
#include <cstdint>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::train {

/// Labelled sequences of different lengths: the frames of all of them one after another.
class SequenceSet {
 public:
  /// frames f32 [sum of lengths, D], lengths i64 [N], labels i64 [N] (i32 will do). Throws DtypeError for other dtypes,
  /// ShapeError when they do not fit each other, for a length below 1 or a label below 0.
  SequenceSet(Tensor frames, Tensor lengths, Tensor labels);

  std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t features() const { return frames_.shape()[1]; }
  /// Of one sequence: its length, its label, its frames [T, D], a view. Throw ShapeError unless 0 <= i < size().
  std::int64_t length(std::int64_t i) const;
  std::int64_t label(std::int64_t i) const;
  Tensor sequence(std::int64_t i) const;
  /// Largest label + 1.
  std::int64_t classes() const;

 private:
  Tensor frames_;
  std::vector<std::int64_t> lengths_, labels_, begins_;
};

/// Sequences made equal by zeros behind their ends.
struct Batch {
  Tensor x;        ///< [B, T, D], T the longest of them
  Tensor lengths;  ///< i64 [B]
  Tensor y;        ///< i64 [B]

  std::int64_t size() const { return x.shape()[0]; }
  nn::Context context() const { return {.lengths = lengths}; }
};

struct BatchOptions {
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  ///< every epoch has its own order; below 2^32
};

/// The batches of one pass over a set, made when asked for. The last one may be smaller.
class Batches {
 public:
  Batches(const SequenceSet& data, std::int64_t size, const BatchOptions& options);
  Batches(const SequenceSet&& data, std::int64_t size, const BatchOptions& options) = delete;

  std::int64_t count() const { return (data_->size() + size_ - 1) / size_; }
  /// Throws ShapeError unless 0 <= i < count().
  Batch operator[](std::int64_t i) const;

  class Iterator {
   public:
    Iterator(const Batches* of, std::int64_t at) : of_(of), at_(at) {}
    Batch operator*() const { return (*of_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Batches* of_;
    std::int64_t at_;
  };
  Iterator begin() const& { return {this, 0}; }
  Iterator end() const& { return {this, count()}; }

 private:
  const SequenceSet* data_;
  std::int64_t size_;
  std::vector<std::int64_t> order_;
};

/// Batches of `size` sequences. `data` must outlive them. Throws ValueError for size < 1 and for an epoch outside
/// 0..2^32 - 1.
Batches batches(const SequenceSet& data, std::int64_t size, const BatchOptions& options = {});
Batches batches(const SequenceSet&& data, std::int64_t size, const BatchOptions& options = {}) = delete;

}  // namespace ferrite::train
