/// Sequences, and batches of them padded to one length.
#include "ferrite/train/dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ferrite::train {
namespace {

std::vector<std::int64_t> integers(const char* what, const Tensor& x) {
  if (!is_integer(x.dtype()))
    throw DtypeError("sequence set: " + std::string(what) + " must be i64 or i32, got " + x.spec().str());
  return cast(x, Dtype::i64).to_vector<std::int64_t>();
}

void check_index(const char* where, std::int64_t i, std::int64_t n) {
  if (i < 0 || i >= n)
    throw ShapeError(std::string(where) + ": index " + std::to_string(i) + " is out of range for " + std::to_string(n));
}

}  // namespace

SequenceSet::SequenceSet(Tensor frames, Tensor lengths, Tensor labels) : frames_(std::move(frames)) {
  if (frames_.rank() != 2) throw ShapeError("sequence set: frames must be [N, D], got " + frames_.shape().str());
  if (frames_.dtype() != Dtype::f32) throw DtypeError("sequence set: frames must be f32, got " + frames_.spec().str());
  if (lengths.rank() != 1 || lengths.shape() != labels.shape())
    throw ShapeError("sequence set: lengths and labels must be [N] alike, got " + lengths.shape().str() + " and " +
                     labels.shape().str());
  lengths_ = integers("lengths", lengths);
  labels_ = integers("labels", labels);
  const std::int64_t frames_there = frames_.shape()[0];
  for (const std::int64_t label : labels_)
    if (label < 0) throw ShapeError("sequence set: a label of " + std::to_string(label) + "; labels count from 0");
  std::int64_t total = 0;
  for (const std::int64_t n : lengths_) {
    if (n < 1)
      throw ShapeError("sequence set: a length of " + std::to_string(n) + "; sequences need at least one step");
    if (n > frames_there - total)
      throw ShapeError("sequence set: lengths add up to more than the " + std::to_string(frames_there) + " frames");
    begins_.push_back(total);
    total += n;
  }
  if (total != frames_there)
    throw ShapeError("sequence set: lengths add up to " + std::to_string(total) + ", there are " +
                     std::to_string(frames_there) + " frames");
}

std::int64_t SequenceSet::length(std::int64_t i) const {
  check_index("sequence set", i, size());
  return lengths_[static_cast<std::size_t>(i)];
}

std::int64_t SequenceSet::label(std::int64_t i) const {
  check_index("sequence set", i, size());
  return labels_[static_cast<std::size_t>(i)];
}

Tensor SequenceSet::sequence(std::int64_t i) const {
  const std::int64_t n = length(i), begin = begins_[static_cast<std::size_t>(i)];
  return slice(frames_, 0, begin, begin + n);
}

std::int64_t SequenceSet::classes() const {
  if (labels_.empty()) return 0;
  return ferrite::detail::checked_add(*std::max_element(labels_.begin(), labels_.end()), 1, "sequence set: classes");
}

Batches::Batches(const SequenceSet& data, std::int64_t size, const BatchOptions& options) : data_(&data), size_(size) {
  if (size < 1) throw ValueError("batches: the size must be positive, got " + std::to_string(size));
  if (!std::in_range<std::uint32_t>(options.epoch))
    throw ValueError("batches: the epoch must lie in 0..4294967295, got " + std::to_string(options.epoch));
  size_ = std::min(size, std::max<std::int64_t>(1, data.size()));
  if (options.shuffle) {
    const RandomKey key{options.seed, stream_of("batches"), static_cast<std::uint32_t>(options.epoch)};
    order_ = permutation(data.size(), key).to_vector<std::int64_t>();
  } else {
    order_.resize(static_cast<std::size_t>(data.size()));
    std::iota(order_.begin(), order_.end(), 0);
  }
}

Batch Batches::operator[](std::int64_t i) const {
  check_index("batches", i, count());
  const std::int64_t first = i * size_;
  const std::int64_t last = std::min(first + size_, data_->size());
  std::vector<std::int64_t> lengths, labels;
  for (std::int64_t k = first; k < last; ++k) {
    const std::int64_t at = order_[static_cast<std::size_t>(k)];
    lengths.push_back(data_->length(at));
    labels.push_back(data_->label(at));
  }
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  Tensors rows;
  for (std::int64_t k = first; k < last; ++k) {
    const Tensor x = data_->sequence(order_[static_cast<std::size_t>(k)]);
    rows.push_back(pad(x, {0, 0}, {longest - x.shape()[0], 0}));
  }
  const std::int64_t B = last - first;
  return {stack(std::span<const Tensor>(rows.data(), rows.size())), Tensor::from(lengths, {B}),
          Tensor::from(labels, {B})};
}

Batches batches(const SequenceSet& data, std::int64_t size, const BatchOptions& options) {
  return {data, size, options};
}

}  // namespace ferrite::train
