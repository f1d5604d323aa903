/// Rolling, repeating, grids and axes, composed of views and copies.
#include <algorithm>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite {
namespace detail {
namespace {

struct RollAttrs {
  Shape shifts{}, axes{};
  static constexpr auto fields = attr_list(attr("shifts", &RollAttrs::shifts), attr("axes", &RollAttrs::axes));
};

/// b in 0..n - 1 that a is of modulo n.
std::int64_t modulo(std::int64_t a, std::int64_t n) { return n == 0 ? 0 : (a % n + n) % n; }

struct Roll {
  using Attributes = RollAttrs;
  static constexpr auto name = "roll", onnx = "", summary = "elements moved along axes, around the end";

  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (int k = 0; k < a.axes.rank(); ++k) {
      const auto axis = a.axes[k];
      const std::int64_t n = y.shape()[static_cast<int>(axis)];
      const std::int64_t first = n - modulo(a.shifts[k], n);
      if (first != n) y = concat({slice(y, axis, first), slice(y, axis, 0, first)}, axis);
    }
    return y;
  }
};

struct Rot90Attrs {
  std::int64_t k = 1;
  Shape axes{0, 1};
  static constexpr auto fields = attr_list(attr("k", &Rot90Attrs::k), attr("axes", &Rot90Attrs::axes));
};

struct Rot90 {
  using Attributes = Rot90Attrs;
  static constexpr auto name = "rot90", onnx = "", summary = "k quarter turns in the plane of two axes";

  static Tensor parts(Inputs in, const Attributes& a) {
    switch (modulo(a.k, 4)) {
      case 1: return transpose(flip(in[0], {a.axes[1]}), a.axes[0], a.axes[1]);
      case 2: return flip(in[0], a.axes);
      case 3: return flip(transpose(in[0], a.axes[0], a.axes[1]), {a.axes[1]});
      default: return in[0];
    }
  }
};

struct CountsAttrs {
  Shape counts{};
  static constexpr auto fields = attr_list(attr("counts", &CountsAttrs::counts));
};

/// With leading axes of extent 1 up to a rank.
Shape led(const Shape& s, int rank) {
  Shape out = Shape::filled(std::max(0, rank - s.rank()), 1);
  for (const std::int64_t e : s) out.push_back(e);
  return out;
}

/// The shape as [all before an axis, repeated, the axis and all behind it].
Shape around(const Shape& s, int axis, std::int64_t n, std::string_view where) {
  std::int64_t before = 1, behind = 1;
  for (int i = 0; i < axis; ++i) before = checked_mul(before, s[i], where);
  for (int i = axis; i < s.rank(); ++i) behind = checked_mul(behind, s[i], where);
  return {before, n, behind};
}

struct Tile {
  using Attributes = CountsAttrs;
  static constexpr auto name = "tile", onnx = "Tile", summary = "the whole of x, so many times along each axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    const int rank = std::max(a.counts.rank(), in[0].rank());
    const Shape counts = led(a.counts, rank);
    Tensor y = reshape(in[0], led(in[0].shape(), rank));
    for (int k = 0; k < rank; ++k) {
      if (counts[k] == 1) continue;
      Shape s = y.shape();
      const Tensor rows = expand(reshape(y, around(s, k, 1, name)), around(s, k, counts[k], name));
      s[k] = checked_mul(s[k], counts[k], name);
      y = reshape(rows, s);
    }
    return y;
  }
};

struct InterleaveAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &InterleaveAttrs::axis), attr("n", &InterleaveAttrs::n));
};

struct RepeatInterleave {
  using Attributes = InterleaveAttrs;
  static constexpr auto name = "repeat_interleave", onnx = "", summary = "every element n times in a row along an axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape s = in[0].shape();
    Shape narrow = around(s, a.axis + 1, 1, name), wide = around(s, a.axis + 1, a.n, name);
    s[a.axis] = checked_mul(s[a.axis], a.n, name);
    return reshape(expand(reshape(in[0], narrow), wide), s);
  }
};

struct MeshgridAttrs {
  bool xy = false;
  static constexpr auto fields = attr_list(attr("xy", &MeshgridAttrs::xy));
};

struct Meshgrid {
  using Attributes = MeshgridAttrs;
  static constexpr auto name = "meshgrid", onnx = "",
                        summary = "coordinates of a grid, of n vectors n tensors of rank n";

  /// The axis of the result along which vector k of n runs.
  static int axis(std::size_t k, std::size_t n, const Attributes& a) {
    return static_cast<int>(a.xy && n > 1 && k < 2 ? 1 - k : k);
  }
  static Tensors parts(Inputs in, const Attributes& a) {
    const Shape ones = Shape::filled(static_cast<int>(in.size()), 1);
    Shape grid = ones;
    for (std::size_t k = 0; k < in.size(); ++k) grid[axis(k, in.size(), a)] = in[k].numel();
    Tensors out;
    for (std::size_t k = 0; k < in.size(); ++k) {
      Shape along = ones;
      along[axis(k, in.size(), a)] = in[k].numel();
      out.push_back(expand(reshape(in[k], along), grid));
    }
    return out;
  }
};

struct MovedimAttrs {
  Shape from{}, to{};
  static constexpr auto fields = attr_list(attr("from", &MovedimAttrs::from), attr("to", &MovedimAttrs::to));
};

struct Movedim {
  using Attributes = MovedimAttrs;
  static constexpr auto name = "movedim", onnx = "",
                        summary = "axes `from` become axes `to`, the others keep their order";

  /// The axis that comes to stand at each place.
  static Shape order(int rank, const Attributes& a) {
    Shape places = Shape::filled(rank, -1), left = Shape::filled(rank, 1);
    for (int k = 0; k < a.from.rank(); ++k) {
      places[static_cast<int>(a.to[k])] = a.from[k];
      left[static_cast<int>(a.from[k])] = 0;
    }
    int next = 0;
    for (int i = 0; i < rank; ++i) {
      if (places[i] >= 0) continue;
      while (left[next] == 0) ++next;
      places[i] = next++;
    }
    return places;
  }
  static Tensor parts(Inputs in, const Attributes& a) { return permute(in[0], order(in[0].rank(), a)); }
};

}  // namespace

Family arrangement_family() {
  static constexpr const Primitive* list[] = {&composite<Roll>,     &composite<Rot90>,
                                              &composite<Tile>,     &composite<RepeatInterleave>,
                                              &composite<Meshgrid>, &composite<Movedim>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes) {
  if (axes.rank() == 0) {
    if (shifts.rank() != 1) throw ValueError("roll: without axes one shift is needed, got " + shifts.str());
    return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape());
  }
  if (shifts.rank() != axes.rank())
    throw ValueError("roll: one shift for each axis is needed, got " + shifts.str() + " for axes " + axes.str());
  Shape resolved;
  for (const std::int64_t a : axes) resolved.push_back(axis_of(a, x.rank(), "roll"));
  return composed<Roll>({{&x}}, {shifts, resolved});
}

Tensor rot90(const Tensor& x, std::int64_t k, const Shape& axes) {
  if (axes.rank() != 2) throw ValueError("rot90: two axes are needed, got " + axes.str());
  const Shape plane{axis_of(axes[0], x.rank(), "rot90"), axis_of(axes[1], x.rank(), "rot90")};
  if (plane[0] == plane[1]) throw_shape("rot90", "the axes must differ: " + axes.str());
  return composed<Rot90>({{&x}}, {k, plane});
}

Tensor tile(const Tensor& x, const Shape& counts) {
  for (const std::int64_t n : counts)
    if (n < 0) throw ValueError("tile: counts must not be negative, got " + counts.str());
  return composed<Tile>({{&x}}, {counts});
}

Tensor repeat(const Tensor& x, const Shape& counts) {
  if (counts.rank() < x.rank())
    throw ValueError("repeat: a count for every axis of " + x.shape().str() + " is needed, got " + counts.str());
  for (const std::int64_t n : counts)
    if (n < 0) throw ValueError("repeat: counts must not be negative, got " + counts.str());
  return composed<Tile>({{&x}}, {counts});
}

Tensor repeat_interleave(const Tensor& x, std::int64_t n, std::int64_t axis) {
  if (n < 0) throw ValueError("repeat_interleave: the count must not be negative, got " + std::to_string(n));
  return composed<RepeatInterleave>({{&x}}, {axis_of(axis, x.rank(), "repeat_interleave"), n});
}
Tensor repeat_interleave(const Tensor& x, std::int64_t n) { return repeat_interleave(reshape(x, {-1}), n, 0); }
Tensor repeat_interleave(const Tensor& x, std::span<const std::int64_t> counts, std::int64_t axis) {
  const int at = axis_of(axis, x.rank(), "repeat_interleave");
  if (static_cast<std::int64_t>(counts.size()) != x.shape()[at])
    throw_shape("repeat_interleave",
                std::to_string(counts.size()) + " counts for axis " + std::to_string(axis) + " of " + x.shape().str());
  std::int64_t total = 0;
  for (const std::int64_t n : counts) {
    if (n < 0) throw ValueError("repeat_interleave: counts must not be negative, got " + std::to_string(n));
    total = checked_add(total, n, "repeat_interleave");
  }
  const Tensor index = Tensor::build<std::int64_t>({total}, [&](std::span<std::int64_t> out) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      for (std::int64_t n = 0; n < counts[i]; ++n) out[next++] = static_cast<std::int64_t>(i);
  });
  return index_select(x, at, index);
}

Tensors meshgrid(std::span<const Tensor> axes, Indexing indexing) {
  if (axes.empty()) throw ValueError("meshgrid: at least one vector is needed");
  for (const Tensor& x : axes)
    if (x.rank() > 1) throw_shape("meshgrid", "vectors are needed, got " + x.shape().str());
  return composed<Meshgrid>(OperandList(axes), {indexing == Indexing::xy});
}
Tensors meshgrid(std::initializer_list<Tensor> axes, Indexing indexing) {
  return meshgrid(std::span<const Tensor>(axes.begin(), axes.size()), indexing);
}

Tensor movedim(const Tensor& x, const Shape& from, const Shape& to) {
  if (from.rank() != to.rank())
    throw ValueError("movedim: axes " + from.str() + " and " + to.str() + " are not as many");
  Shape sources, places;
  for (const std::int64_t a : from) sources.push_back(axis_of(a, x.rank(), "movedim"));
  for (const std::int64_t a : to) places.push_back(axis_of(a, x.rank(), "movedim"));
  check_axes("movedim", sources, x.rank());
  check_axes("movedim", places, x.rank());
  return composed<Movedim>({{&x}}, {sources, places});
}

}  // namespace ferrite
