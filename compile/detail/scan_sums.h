#pragma once
#include <algorithm>
#include <cstring>

#include "ferrite/tensor/detail/gemm.h"
#include "ferrite/tensor/detail/room.h"

namespace ferrite::detail {

/// Sums over rows that come a few at a time: total [A, B] = sum of a_i^T b_i over rows a_i [A], b_i [B]; without a,
/// total [B] = sum of b_i. Always in the order in which they come and in blocks of 256 (docs/numerics.md, rule 4):
/// the bits do not depend on how many come at a time.
template <class T>
class RowSums {
 public:
  RowSums(std::int64_t a_width, std::int64_t b_width)
      : A_(a_width),
        B_(b_width),
        a_(kBlock * a_width),
        b_(a_width ? kBlock * b_width : 0),
        partial_(size()),
        total_(size()) {}

  void add(const T* a, const T* b, std::int64_t rows) {
    while (rows > 0) {
      const std::int64_t n = std::min(rows, kBlock - waiting_);
      if (A_) {
        std::copy_n(a, n * A_, a_.get() + waiting_ * A_);
        std::copy_n(b, n * B_, b_.get() + waiting_ * B_);
        a += n * A_;
      } else {
        for (std::int64_t i = 0; i < n; ++i) add_row(b + i * B_, waiting_ + i == 0);
      }
      b += n * B_;
      rows -= n;
      waiting_ += n;
      if (waiting_ == kBlock) flush();
    }
  }

  /// Adds the total to `to`.
  void give(T* to) {
    if (waiting_) flush();
    if (!first_) add_to(to, total_.get());
  }

 private:
  static constexpr std::int64_t kBlock = 256;

  std::int64_t size() const { return std::max<std::int64_t>(A_, 1) * B_; }
  void add_to(T* to, const T* more) const {
    for (std::int64_t i = 0; i < size(); ++i) to[i] += more[i];
  }
  void add_row(const T* b, bool begins) {
    T* const p = partial_.get();
    if (begins) {
      std::copy_n(b, B_, p);
    } else {
      add_to(p, b);
    }
  }
  void flush() {
    T* const p = first_ && A_ ? total_.get() : partial_.get();
    if (A_) gemm<T>(A_, B_, waiting_, {a_.get(), 1, A_}, {b_.get(), B_, 1}, p, B_);
    if (!first_) {
      add_to(total_.get(), p);
    } else if (!A_) {
      std::copy_n(p, B_, total_.get());
    }
    first_ = false;
    waiting_ = 0;
  }

  std::int64_t A_, B_;
  Room<T> a_, b_, partial_, total_;
  std::int64_t waiting_ = 0;
  bool first_ = true;
};

}  // namespace ferrite::detail
