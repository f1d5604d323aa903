#pragma once
/// Parts of a kernel's domain, and how their elements are gathered from buffers and scattered into them.
#include <algorithm>
#include <cstring>

#include "ferrite/compile/fuse/kernel.h"

namespace ferrite::detail {

/// A part of the domain: whole rows, or a piece of one.
struct Tile {
  std::int64_t row;      ///< the first
  std::int64_t rows;     ///< how many
  std::int64_t column;   ///< of the first element of each
  std::int64_t columns;  ///< how many
  std::int64_t elements() const { return rows * columns; }
};

/// The rows of a tile one after another: index over the outer axes and offset under some strides.
class Rows {
 public:
  Rows(const Shape& extents, const Shape& strides, std::int64_t first) : extents_(extents), strides_(strides) {
    const int outer = extents.rank() - 1;
    for (int k = outer - 1; k >= 0; --k) {
      index_[k] = first % extents[k];
      first /= extents[k];
      offset_ += index_[k] * strides[k];
    }
  }
  std::int64_t offset() const { return offset_; }
  bool inside(const Box& box) const {
    for (int k = 0; k + 1 < extents_.rank(); ++k)
      if (index_[k] < box.begin[k] || index_[k] >= box.end[k]) return false;
    return true;
  }
  /// Rows from here to the end of the axis before the last, `step` apart.
  std::int64_t straight() const {
    const int k = extents_.rank() - 2;
    return k < 0 ? 1 : extents_[k] - index_[k];
  }
  std::int64_t step() const { return extents_.rank() < 2 ? 0 : strides_[extents_.rank() - 2]; }
  /// As many times `next`, n at most `straight`.
  void skip(std::int64_t n) {
    const int k = extents_.rank() - 2;
    if (k < 0) return;
    index_[k] += n - 1;
    offset_ += (n - 1) * strides_[k];
    next();
  }
  void next() {
    for (int k = extents_.rank() - 2; k >= 0; --k) {
      offset_ += strides_[k];
      if (++index_[k] < extents_[k]) return;
      offset_ -= strides_[k] * extents_[k];
      index_[k] = 0;
    }
  }

 private:
  const Shape& extents_;
  const Shape& strides_;
  std::int64_t index_[Shape::kMaxRank] = {};
  std::int64_t offset_ = 0;
};

template <class T>
void copy_run(T* to, const T* from, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <class T>
struct RowsOf {
  T* first;
  std::int64_t step;
};

/// So many rows at once; short ones, of whole lines, without a call for each.
template <class T>
void copy_rows(RowsOf<T> to, RowsOf<const T> from, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  const std::int64_t bytes = columns * static_cast<std::int64_t>(sizeof(T));
  if (stride != 1 || bytes % kLineBytes != 0 || bytes > 8 * kLineBytes) {
    for (std::int64_t r = 0; r < rows; ++r)
      copy_run(to.first + r * to.step, from.first + r * from.step, stride, columns);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    auto* target = reinterpret_cast<std::byte*>(to.first + r * to.step);
    const auto* source = reinterpret_cast<const std::byte*>(from.first + r * from.step);
    for (std::int64_t b = 0; b < bytes; b += kLineBytes) std::memcpy(target + b, source + b, kLineBytes);
  }
}

/// Unsigned integers stand for all element types of their size: bits are only moved.
template <class F>
void by_size(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

template <class T>
T first_of(const RepeatedLine& line) {
  T v;
  std::memcpy(&v, line.bytes, sizeof v);
  return v;
}

/// The columns of a row that lie inside a box.
struct Span {
  std::int64_t begin, end;
};
inline Span columns_inside(const Tile& t, const Box& box) {
  const std::int64_t begin = std::clamp(box.begin[-1] - t.column, std::int64_t{0}, t.columns);
  return {begin, std::clamp(box.end[-1] - t.column, begin, t.columns)};
}

template <class T>
void gather(const Shape& extents, const Kernel::Load& l, const Tile& t, const std::byte* from, std::byte* slot) {
  T* to = reinterpret_cast<T*>(slot);
  const T* source = reinterpret_cast<const T*>(from);
  const std::int64_t stride = l.strides[-1];
  Rows rows(extents, l.strides, t.row);
  if (l.whole) {
    source += t.column * stride;
    for (std::int64_t left = t.rows; left > 0;) {
      const std::int64_t n = std::min(left, rows.straight());
      copy_rows<T>({to, t.columns}, {source + rows.offset(), rows.step()}, stride, n, t.columns);
      to += n * t.columns;
      left -= n;
      rows.skip(n);
    }
    return;
  }
  const T outside = first_of<T>(l.outside);
  const Span in = columns_inside(t, l.box);
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), to += t.columns) {
    if (!rows.inside(l.box) || in.begin == in.end) {
      std::fill_n(to, t.columns, outside);
      continue;
    }
    std::fill_n(to, in.begin, outside);
    copy_run(to + in.begin, source + rows.offset() + (t.column + in.begin) * stride, stride, in.end - in.begin);
    std::fill_n(to + in.end, t.columns - in.end, outside);
  }
}

template <class T>
void fill(const Shape& extents, const Kernel::Filling& f, const Tile& t, const std::byte* from, std::byte* slot) {
  const T* source = reinterpret_cast<const T*>(from);
  T* to = reinterpret_cast<T*>(slot);
  const T outside = first_of<T>(f.outside);
  const Span in = columns_inside(t, f.box);
  Rows rows(extents, extents, t.row);
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), to += t.columns, source += t.columns) {
    if (!rows.inside(f.box)) {
      std::fill_n(to, t.columns, outside);
      continue;
    }
    std::fill_n(to, in.begin, outside);
    std::copy_n(source + in.begin, in.end - in.begin, to + in.begin);
    std::fill_n(to + in.end, t.columns - in.end, outside);
  }
}

template <class T>
void scatter(const Shape& extents, const Kernel::Store& s, const Tile& t, const std::byte* slot, std::byte* buffer) {
  const T* from = reinterpret_cast<const T*>(slot);
  T* to = reinterpret_cast<T*>(buffer);
  const std::int64_t stride = s.strides[-1];
  Rows rows(extents, s.strides, t.row);
  to += t.column * stride;
  if (stride == 1) {
    for (std::int64_t left = t.rows; left > 0;) {
      const std::int64_t n = std::min(left, rows.straight());
      copy_rows<T>({to + rows.offset(), rows.step()}, {from, t.columns}, 1, n, t.columns);
      from += n * t.columns;
      left -= n;
      rows.skip(n);
    }
    return;
  }
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), from += t.columns) {
    T* row = to + rows.offset();
    for (std::int64_t i = 0; i < t.columns; ++i) row[i * stride] = from[i];
  }
}

}  // namespace ferrite::detail
