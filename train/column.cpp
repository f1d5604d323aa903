/// Columns of data sets: rows of a tensor, and sequences one behind the other.
#include <algorithm>

#include "ferrite/train/dataset.h"
#include "ferrite/train/detail/fingerprints.h"

namespace ferrite::train {
namespace {

/// Where each sequence begins, and the end of the last one.
std::vector<std::int64_t> begins_of(const Tensor& steps, const Tensor& lengths) {
  if (steps.rank() < 1) throw ShapeError("sequences: steps must be [N, ...], got " + steps.shape().str());
  if (lengths.rank() != 1) throw ShapeError("sequences: lengths must be [N], got " + lengths.shape().str());
  if (!is_integer(lengths.dtype()))
    throw DtypeError("sequences: lengths must be i64 or i32, got " + lengths.spec().str());
  const std::int64_t there = steps.shape()[0];
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t n : cast(lengths, Dtype::i64).to_vector<std::int64_t>()) {
    if (n < 0) throw ShapeError("sequences: a length of " + std::to_string(n));
    if (n > there - begins.back())
      throw ShapeError("sequences: lengths add up to more than the " + std::to_string(there) + " steps");
    begins.push_back(begins.back() + n);
  }
  if (begins.back() != there)
    throw ShapeError("sequences: lengths add up to " + std::to_string(begins.back()) + ", there are " +
                     std::to_string(there) + " steps");
  return begins;
}

}  // namespace

Column::Column(Tensor rows) : all_(std::move(rows)), size_(0) {
  if (all_.rank() < 1) throw ShapeError("data set: a column must be [N, ...], got a tensor of rank 0");
  size_ = all_.shape()[0];
}

Column::Column(Tensor steps, const Tensor& lengths, double padding)
    : all_(std::move(steps)), field_{.sequence = true, .padding = padding}, begins_(begins_of(all_, lengths)) {
  size_ = static_cast<std::int64_t>(begins_.size()) - 1;
}

std::int64_t Column::length(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return field_.sequence ? begins_[at + 1] - begins_[at] : 0;
}

Tensor Column::operator[](std::int64_t i) const {
  if (!field_.sequence) return all_[i];
  const auto at = static_cast<std::size_t>(i);
  return slice(all_, 0, begins_[at], begins_[at + 1]);
}

Tensor Column::rows(std::span<const std::int64_t> examples) const {
  const bool adjacent = std::adjacent_find(examples.begin(), examples.end(),
                                           [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == examples.end();
  if (adjacent) return slice(all_, 0, examples.front(), examples.back() + 1);
  return index_select(all_, 0,
                      Tensor::from(std::vector<std::int64_t>(examples.begin(), examples.end()),
                                   {static_cast<std::int64_t>(examples.size())}));
}

Column sequences(Tensor steps, const Tensor& lengths, double padding) { return {std::move(steps), lengths, padding}; }

Column sequences(std::span<const Tensor> each, double padding) {
  if (each.empty()) throw ValueError("sequences: there are none");
  std::vector<std::int64_t> lengths;
  for (const Tensor& x : each) {
    if (x.rank() < 1) throw ShapeError("sequences: each must be [T, ...], got a tensor of rank 0");
    lengths.push_back(x.shape()[0]);
  }
  const auto n = static_cast<std::int64_t>(lengths.size());
  return {concat(each, 0), Tensor::from(lengths, {n}), padding};
}

std::uint64_t Column::hash() const {
  const std::uint64_t h = detail::typed_hash_of(all_);
  if (!field_.sequence) return h;
  return detail::hash_of(Tensor::from(begins_, {static_cast<std::int64_t>(begins_.size())}), h);
}

}  // namespace ferrite::train
