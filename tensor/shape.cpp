/// Shapes: text, broadcasting, strides.
#include "ferrite/tensor/shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite {

void detail::throw_overflow(std::string_view where, std::int64_t a, char sign, std::int64_t b) {
  throw ShapeError(std::string(where) + ": more than 64 bits can count: " + std::to_string(a) + ' ' + sign + ' ' +
                   std::to_string(b));
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) s += ", ";
    s += std::to_string((*this)[i]);
  }
  return s + "]";
}

void Shape::throw_rank() { throw ShapeError("shape: more than " + std::to_string(kMaxRank) + " axes"); }

std::int64_t Shape::checked_numel(std::string_view where) const {
  std::int64_t n = 1;
  bool empty = false;
  for (const std::int64_t e : *this) {
    if (e < 0) throw ShapeError(std::string(where) + ": negative extent: " + str());
    empty |= e == 0;
    if (e > 0 && (detail::mul_overflows(n, e, n) || n > kMostElements))
      throw ShapeError(std::string(where) + ": too many elements: " + str());
  }
  return empty ? 0 : n;
}

void Shape::insert(int at, std::int64_t e) {
  push_back(e);
  std::rotate(at_.begin() + at, at_.begin() + rank_ - 1, at_.begin() + rank_);
}

void Shape::erase(int at) {
  std::copy(at_.begin() + at + 1, at_.begin() + rank_, at_.begin() + at);
  --rank_;
}

std::string Spec::str() const { return std::string(name_of(dtype)) + shape.str(); }

Shape broadcast(const Shape& a, const Shape& b, std::string_view where) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const std::int64_t x = ia < 0 ? 1 : a[ia];
    const std::int64_t y = ib < 0 ? 1 : b[ib];
    if (x != y && x != 1 && y != 1)
      throw ShapeError(std::string(where) + ": shapes do not broadcast: " + a.str() + " with " + b.str() + "; extent " +
                       std::to_string(x) + " meets " + std::to_string(y));
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

std::optional<Shape> inferred(const Shape& shape, std::int64_t count, std::string_view where) {
  Shape s = shape;
  int unknown = -1;
  std::int64_t known = 1;
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] == -1 && unknown < 0) {
      unknown = i;
    } else {
      if (s[i] < 0) throw ShapeError(std::string(where) + ": extents must be positive, one at most -1: " + shape.str());
      known = detail::checked_mul(known, s[i], where);
    }
  }
  if (unknown < 0) return s;
  if (known == 0 || count % known != 0) return std::nullopt;
  s[unknown] = count / known;
  return s;
}

int axis_of(std::int64_t axis, int rank, std::string_view where) {
  if (axis < -rank || axis >= rank)
    throw ShapeError(std::string(where) + ": axis " + std::to_string(axis) + " is out of range for rank " +
                     std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape axes_of(const Shape& axes, int rank, std::string_view where) {
  bool used[Shape::kMaxRank] = {};
  for (const std::int64_t a : axes) {
    const int i = axis_of(a, rank, where);
    if (used[i]) throw ShapeError(std::string(where) + ": axis " + std::to_string(a) + " is given twice");
    used[i] = true;
  }
  Shape out;
  for (int i = 0; i < rank; ++i)
    if (used[i] || axes.rank() == 0) out.push_back(i);
  return out;
}

std::string Scalar::str() const {
  if (!floating_) return std::to_string(integer_);
  if (std::isnan(real_)) return "nan";  // its sign means nothing
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, real_).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

}  // namespace ferrite
