#pragma once
/// Shapes of tensors (extents, strides, the rule of broadcasting) and specs, which are a shape with a dtype.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/tensor/dtype.h"
#include "ferrite/tensor/extents.h"

namespace ferrite {

/// The extents of a tensor, outermost first: up to kMaxRank of them, held in place. Also serves as a short list of
/// integers (strides, axes, permutations). Trivially copyable.
class Shape {
 public:
  static constexpr int kMaxRank = 8;
  /// Most elements that a shape may have, by `numel`.
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 62;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> extents) {
    for (std::int64_t e : extents) push_back(e);
  }
  explicit constexpr Shape(std::span<const std::int64_t> extents) {
    for (std::int64_t e : extents) push_back(e);
  }
  /// Returns a shape that holds one value `rank` times.
  static constexpr Shape filled(int rank, std::int64_t value) {
    Shape s;
    for (int i = 0; i < rank; ++i) s.push_back(value);
    return s;
  }

  constexpr int rank() const { return rank_; }
  /// Returns the extent of an axis; negative axes count from the end. Unchecked: see `axis_of`.
  constexpr std::int64_t operator[](int i) const& { return at_[static_cast<unsigned>(i < 0 ? i + rank_ : i)]; }
  constexpr std::int64_t operator[](int i) const&& { return at_[static_cast<unsigned>(i < 0 ? i + rank_ : i)]; }
  constexpr std::int64_t& operator[](int i) & { return at_[static_cast<unsigned>(i < 0 ? i + rank_ : i)]; }
  constexpr const std::int64_t* begin() const { return at_.data(); }
  constexpr const std::int64_t* end() const { return at_.data() + rank_; }

  /// Appends an extent. Throws ShapeError beyond kMaxRank.
  constexpr void push_back(std::int64_t e) {
    if (rank_ == kMaxRank) throw_rank();
    at_[static_cast<unsigned>(rank_++)] = e;
  }
  /// Inserts an extent before position `at`, from 0 to rank. Throws ShapeError beyond kMaxRank.
  void insert(int at, std::int64_t e);
  /// Removes the extent at a position from 0 to rank - 1.
  void erase(int at);

  constexpr bool operator==(const Shape& o) const {
    if (rank_ != o.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if ((*this)[i] != o[i]) return false;
    return true;
  }

  /// Returns the product of the extents. Throws ShapeError when an extent is negative or the product of those that are
  /// not 0 exceeds 2^62: strides and offsets of every shape that passes are below that. The message begins with
  /// `where`.
  std::int64_t numel(std::string_view where = "shape") const {
    std::int64_t n = 1;
    bool plain = true;
    for (int i = 0; i < rank_; ++i) {
      const std::int64_t e = at_[static_cast<unsigned>(i)];
      plain &= e > 0;
      plain &= !detail::mul_overflows(n, e, n);
    }
    if (!plain || n > kMostElements) [[unlikely]]
      return checked_numel(where);
    return n;
  }
  /// Returns the strides, in elements, of a contiguous row-major tensor of this shape.
  Shape strides() const {
    Shape s;
    write_strides(s);
    return s;
  }
  /// Writes the row-major strides into `out`, which saves a copy for a fresh tensor.
  void write_strides(Shape& out) const {
    out.rank_ = rank_;
    std::int64_t n = 1;
    for (int i = rank_ - 1; i >= 0; --i) {
      out.at_[static_cast<unsigned>(i)] = n;
      n *= at_[static_cast<unsigned>(i)];
    }
  }
  /// Returns the shape as text: "[2, 3]".
  std::string str() const;

 private:
  [[noreturn]] static void throw_rank();
  std::int64_t checked_numel(std::string_view where) const;

  std::array<std::int64_t, kMaxRank> at_{};
  int rank_ = 0;
};

/// The type of a tensor: shape and dtype.
struct Spec {
  Shape shape;
  Dtype dtype = Dtype::f32;
  bool operator==(const Spec&) const = default;
  /// Returns the type as text: "f32[2, 3]".
  std::string str() const;
};

/// Returns the shape to which both broadcast by NumPy's rule. Throws ShapeError, naming `where` and both shapes, where
/// there is none.
Shape broadcast(const Shape& a, const Shape& b, std::string_view where);

/// Replaces the single extent -1 of a shape, if there is one, so that the shape holds `count` elements; a shape without
/// -1 is returned unchanged, whatever it holds. Returns nothing where no extent fits or any would: [-1, 4] of 6
/// elements, [-1, 0] of none. Throws ShapeError, naming `where`, for a second -1 and any other negative extent.
std::optional<Shape> inferred(const Shape& shape, std::int64_t count, std::string_view where);

/// Returns an axis, which may be negative, as a number in [0, rank). Throws ShapeError, naming `where`, for another
/// axis.
int axis_of(std::int64_t axis, int rank, std::string_view where);

/// Returns axes, which may be negative, as numbers in [0, rank), ascending; an empty list means all axes. Throws
/// ShapeError, naming `where`, for an axis that does not exist or is given twice.
Shape axes_of(const Shape& axes, int rank, std::string_view where);

}  // namespace ferrite
