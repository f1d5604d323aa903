/// Nested lists of numbers in JSON: reading with their shapes, and writing.
#include "ferrite/io/json/json_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io::detail {

bool NumberShape::add(Item item) {
  if (depth_ == 0) return true;
  const auto in = static_cast<std::size_t>(depth_ - 1);
  if (items_[in] == Item::none) items_[in] = item;
  ++counts_[in];
  return items_[in] == item;
}

bool NumberShape::open() {
  if (!add(Item::list) || depth_ == Shape::kMaxRank) return false;
  counts_[static_cast<std::size_t>(depth_)] = 0;
  rank_ = std::max(rank_, ++depth_);
  return true;
}

bool NumberShape::close() {
  const auto at = static_cast<std::size_t>(--depth_);
  if (depth_ < closed_) {
    closed_ = depth_;
    extents_[at] = counts_[at];
  }
  return extents_[at] == counts_[at];
}

Shape NumberShape::shape() const { return Shape(std::span(extents_.data(), static_cast<std::size_t>(rank_))); }

void FloatStore::push(float value) {
  const std::size_t block = size_ / kBlock;
  if (block == blocks_.size()) blocks_.emplace_back(new float[kBlock]);
  blocks_[block][size_++ % kBlock] = value;
}

void FloatStore::copy(std::size_t first, std::span<float> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t at = (first + done) % kBlock;
    const std::size_t n = std::min(kBlock - at, to.size() - done);
    std::copy_n(&blocks_[(first + done) / kBlock][at], n, to.data() + done);
    done += n;
  }
}

void FloatStore::clear() {
  blocks_.resize(std::min<std::size_t>(blocks_.size(), 1));
  size_ = 0;
}

void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at) {
  if (shape.rank() == 0) {
    const float v = values[at++];
    if (!std::isfinite(v)) refuse("json", "a weight is " + Scalar(v).str() + ", which JSON cannot hold");
    if (v == 0 && std::signbit(v)) {
      out += "-0.0";  // "-0" is read as an integer, which has no sign
      return;
    }
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), v).ptr;
    out.append(std::begin(digits), end);
    return;
  }
  Shape rest;
  for (int i = 1; i < shape.rank(); ++i) rest.push_back(shape[i]);
  out += '[';
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    if (i) out += ", ";
    append_numbers(out, values, rest, at);
  }
  out += ']';
}

}  // namespace ferrite::io::detail
