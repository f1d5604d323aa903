/// Elements in another shape or order, composed of views, copies and masks.
#include "ferrite/tensor/shapes.h"

#include <algorithm>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {

// ---- flattened, split, turned, reduced to a shape ---------------------------------------------------------

namespace detail {
namespace {

struct TransposeAttrs {
  int a = -2, b = -1;
  static constexpr auto fields = attr_list(attr("a", &TransposeAttrs::a), attr("b", &TransposeAttrs::b));
};

struct Transpose {
  using Attributes = TransposeAttrs;
  static constexpr auto name = "transpose", onnx = "", summary = "two axes exchanged";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape order;
    for (int i = 0; i < in[0].rank(); ++i) order.push_back(i);
    std::swap(order[a.a], order[a.b]);
    return call(*ops::permute, in, PermuteAttrs{order});
  }
};

struct SqueezeAttrs {
  std::optional<int> axis{};
  static constexpr auto fields = attr_list(attr("axis", &SqueezeAttrs::axis));
};

struct Squeeze {
  using Attributes = SqueezeAttrs;
  static constexpr auto name = "squeeze", onnx = "Squeeze", summary = "without an axis, or all axes, of extent 1";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape s;
    for (int i = 0; i < in[0].rank(); ++i)
      if (a.axis ? i != *a.axis : in[0].shape()[i] != 1) s.push_back(in[0].shape()[i]);
    return reshape(in[0], s);
  }
};

struct Unsqueeze {
  using Attributes = AxisAttrs;
  static constexpr auto name = "unsqueeze", onnx = "Unsqueeze", summary = "with an axis of extent 1 at `axis`";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape s = in[0].shape();
    s.insert(a.axis, 1);
    return reshape(in[0], s);
  }
};

struct FlattenAttrs {
  int first = 0, last = 0;
  static constexpr auto fields = attr_list(attr("first", &FlattenAttrs::first), attr("last", &FlattenAttrs::last));
};

struct Flatten {
  using Attributes = FlattenAttrs;
  static constexpr auto name = "flatten", onnx = "", summary = "the axes from first to last as one";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape s;
    std::int64_t n = 1;
    for (int i = 0; i < in[0].rank(); ++i) {
      const std::int64_t extent = in[0].shape()[i];
      if (i < a.first || i > a.last) s.push_back(extent);
      if (i >= a.first && i <= a.last) n = checked_mul(n, extent, name);
      if (i == a.last) s.push_back(n);
    }
    return reshape(in[0], in[0].rank() == 0 ? Shape{1} : s);
  }
};

struct AxesAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &AxesAttrs::axes));
};

struct Flip {
  using Attributes = AxesAttrs;
  static constexpr auto name = "flip", onnx = "", summary = "the elements backwards along axes";

  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (const std::int64_t axis : a.axes) y = slice(y, axis, kEnd, kEnd, -1);
    return y;
  }
};

struct ChunkAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &ChunkAttrs::axis), attr("n", &ChunkAttrs::n));
};

struct Chunk {
  using Attributes = ChunkAttrs;
  static constexpr auto name = "chunk", onnx = "",
                        summary = "at most n pieces of equal size along an axis, the last may be smaller";

  static std::int64_t size(std::int64_t extent, std::int64_t n) {
    return std::max<std::int64_t>(1, extent / n + (extent % n != 0));
  }
  static Tensors parts(Inputs in, const Attributes& a) {
    return split(in[0], size(in[0].shape()[a.axis], a.n), a.axis);
  }
};

struct SumTo {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "sum_to", onnx = "",
                        summary = "sums over what broadcasting repeats: the adjoint of expand";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const int lead = x.rank() - a.shape.rank();
    Shape axes;
    for (int i = 0; i < x.rank(); ++i) {
      const bool summed = i < lead || (a.shape[i - lead] == 1 && x.shape()[i] != 1);
      if (summed && x.shape()[i] != 1) axes.push_back(i);
    }
    return reshape(axes.rank() ? sum(x, axes) : x, a.shape);
  }
};

}  // namespace

}  // namespace detail

using namespace detail;

Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) {
  const int i = axis_of(a, x.rank(), "transpose");
  return composed<detail::Transpose>({{&x}}, {i, axis_of(b, x.rank(), "transpose")});
}

Tensor squeeze(const Tensor& x, std::int64_t axis) {
  const int at = axis_of(axis, x.rank(), "squeeze");
  if (x.shape()[at] != 1)
    detail::throw_shape("squeeze", "axis " + std::to_string(axis) + " of " + x.shape().str() + " is not of extent 1");
  return composed<detail::Squeeze>({{&x}}, {at});
}

Tensor squeeze(const Tensor& x) { return composed<detail::Squeeze>({{&x}}); }

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
  return composed<detail::Unsqueeze>({{&x}}, {axis_of(axis, x.rank() + 1, "unsqueeze")});
}

Tensor flatten(const Tensor& x, std::int64_t first, std::int64_t last) {
  if (x.rank() == 0) return composed<detail::Flatten>({{&x}});
  const int a = axis_of(first, x.rank(), "flatten");
  const int b = axis_of(last, x.rank(), "flatten");
  if (a > b)
    detail::throw_shape("flatten", "axes " + std::to_string(first) + " to " + std::to_string(last) + " run backwards");
  return composed<detail::Flatten>({{&x}}, {a, b});
}

Tensor flip(const Tensor& x, const Shape& axes) {
  if (axes.rank() == 0) return x;
  return composed<detail::Flip>({{&x}}, {axes_of(axes, x.rank(), "flip")});
}

Tensors chunk(const Tensor& x, std::int64_t n, std::int64_t axis) {
  if (n < 1) throw ValueError("chunk: the number of pieces must be positive, got " + std::to_string(n));
  return composed<detail::Chunk>({{&x}}, {axis_of(axis, x.rank(), "chunk"), n});
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return composed<detail::SumTo>({{&x}}, {shape});
}

// ---- thin functions of axes: masks, common shapes, least ranks, stacking ----------------------------------

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value) {
  if (mask.dtype() != Dtype::boolean) throw_dtype("masked_fill", "the mask must be bool, got " + mask.spec().str());
  if (broadcast(x.shape(), mask.shape(), "masked_fill") != x.shape())
    throw_shape("masked_fill", "mask " + mask.shape().str() + " does not broadcast to " + x.shape().str());
  if (!value.is_literal() && value.tensor().rank() != 0)
    throw_shape("masked_fill", "the value must have rank 0, got " + value.tensor().shape().str());
  return where(mask, value, x);
}

Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b) { return transpose(x, a, b); }

Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& extents) {
  const int at = axis_of(axis, x.rank(), "unflatten");
  if (extents.rank() == 0) throw ValueError("unflatten: at least one extent is needed, got []");
  std::int64_t known = 1;
  int open = -1, count = 0;
  for (int i = 0; i < extents.rank(); ++i) {
    if (extents[i] == -1) open = i, ++count;
    if (extents[i] < -1) throw_shape("unflatten", "extents must not be negative: " + extents.str());
    if (extents[i] >= 0) known *= extents[i];
  }
  const std::int64_t n = x.shape()[at];
  const bool fits = count == 0 ? known == n : count == 1 && known != 0 && n % known == 0;
  if (!fits)
    throw_shape("unflatten",
                extents.str() + " does not divide axis " + std::to_string(axis) + " of " + x.shape().str());
  Shape s;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at) s.push_back(x.shape()[i]);
    if (i == at)
      for (int k = 0; k < extents.rank(); ++k) s.push_back(k == open ? n / known : extents[k]);
  }
  return reshape(x, s);
}

Tensors broadcast_tensors(std::span<const Tensor> tensors) {
  Shape common;
  for (const Tensor& x : tensors) common = broadcast(common, x.shape(), "broadcast_tensors");
  Tensors out;
  for (const Tensor& x : tensors) out.push_back(expand(x, common));
  return out;
}
Tensors broadcast_tensors(std::initializer_list<Tensor> tensors) {
  return broadcast_tensors(std::span<const Tensor>(tensors.begin(), tensors.size()));
}

Tensor atleast_1d(const Tensor& x) { return x.rank() >= 1 ? x : reshape(x, {1}); }
Tensor atleast_2d(const Tensor& x) { return x.rank() >= 2 ? x : reshape(x, {1, x.numel()}); }
Tensor atleast_3d(const Tensor& x) {
  if (x.rank() >= 3) return x;
  return x.rank() == 2 ? unsqueeze(x, -1) : reshape(x, {1, x.numel(), 1});
}

Tensor hstack(std::span<const Tensor> parts) {
  if (parts.empty()) throw ValueError("hstack: at least one tensor is needed");
  Tensors all;
  for (const Tensor& x : parts) all.push_back(atleast_1d(x));
  return concat(std::span<const Tensor>(all.data(), all.size()), all[0].rank() == 1 ? 0 : 1);
}
Tensor hstack(std::initializer_list<Tensor> parts) {
  return hstack(std::span<const Tensor>(parts.begin(), parts.size()));
}
Tensor vstack(std::span<const Tensor> parts) {
  if (parts.empty()) throw ValueError("vstack: at least one tensor is needed");
  Tensors all;
  for (const Tensor& x : parts) all.push_back(atleast_2d(x));
  return concat(std::span<const Tensor>(all.data(), all.size()), 0);
}
Tensor vstack(std::initializer_list<Tensor> parts) {
  return vstack(std::span<const Tensor>(parts.begin(), parts.size()));
}

// ---- rolling, repeating, grids and axes -------------------------------------------------------------------

namespace detail {
namespace {

struct RollAttrs {
  Shape shifts{}, axes{};
  static constexpr auto fields = attr_list(attr("shifts", &RollAttrs::shifts), attr("axes", &RollAttrs::axes));
};

/// Returns a modulo n, in 0..n - 1.
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

/// Adds leading axes of extent 1 up to a rank.
Shape led(const Shape& s, int rank) {
  Shape out = Shape::filled(std::max(0, rank - s.rank()), 1);
  for (const std::int64_t e : s) out.push_back(e);
  return out;
}

/// Returns the shape as [all before an axis, n, the axis and all after it].
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

  /// Returns the axis of the result along which vector k of n runs.
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

  /// Returns the axis that moves to each position.
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

}  // namespace detail

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

// ---- triangles and diagonals ------------------------------------------------------------------------------

namespace detail {
namespace {

struct OffsetAttrs {
  std::int64_t offset = 0;
  static constexpr auto fields = attr_list(attr("offset", &OffsetAttrs::offset));
};

/// Returns the column minus the row of each element of a matrix [rows, columns], i64.
Tensor above_diagonal(std::int64_t rows, std::int64_t columns) { return arange(columns) - unsqueeze(arange(rows), 1); }

/// Returns x where the mask of its last two axes holds, else 0.
Tensor masked_matrix(const Tensor& x, const Tensor& mask) { return where(mask, x, zeros({}, x.dtype())); }

struct Tril {
  using Attributes = OffsetAttrs;
  static constexpr auto name = "tril", onnx = "Trilu", summary = "x[.., i, j] where j <= i + offset, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    return masked_matrix(in[0], le(above_diagonal(s[-2], s[-1]), a.offset));
  }
};

struct Triu {
  using Attributes = OffsetAttrs;
  static constexpr auto name = "triu", onnx = "Trilu", summary = "x[.., i, j] where j >= i + offset, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    return masked_matrix(in[0], ge(above_diagonal(s[-2], s[-1]), a.offset));
  }
};

struct DiagonalAttrs {
  std::int64_t offset = 0;
  int axis1 = 0, axis2 = 1;
  static constexpr auto fields = attr_list(attr("offset", &DiagonalAttrs::offset), attr("axis1", &DiagonalAttrs::axis1),
                                           attr("axis2", &DiagonalAttrs::axis2));
};

/// The start of a diagonal of a matrix, and its length.
struct Line {
  std::int64_t row = 0, column = 0, length = 0;
};
Line line_of(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  Line line{std::max<std::int64_t>(0, -offset), std::max<std::int64_t>(0, offset)};
  line.length = std::max<std::int64_t>(0, std::min(rows - line.row, columns - line.column));
  return line;
}

/// Returns a shape without two axes.
Shape without(const Shape& s, int a, int b) {
  Shape rest;
  for (int i = 0; i < s.rank(); ++i)
    if (i != a && i != b) rest.push_back(s[i]);
  return rest;
}

struct Diagonal {
  using Attributes = DiagonalAttrs;
  static constexpr auto name = "diagonal", onnx = "", summary = "x[i, i + offset] of two axes along a new last axis";

  /// The diagonal of a row-major matrix has elements at equal distances.
  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t rows = s[a.axis1], columns = s[a.axis2];
    const Line line = line_of(rows, columns, a.offset);
    Shape flat = without(s, a.axis1, a.axis2);
    flat.push_back(checked_mul(rows, columns, name));
    const Tensor x = reshape(movedim(in[0], {a.axis1, a.axis2}, {-2, -1}), flat);
    if (line.length == 0) return slice(x, -1, 0, 0);
    const std::int64_t begin = line.row * columns + line.column;
    return slice(x, -1, begin, begin + (line.length - 1) * (columns + 1) + 1, columns + 1);
  }
};

struct DiagEmbed {
  using Attributes = DiagonalAttrs;
  static constexpr auto name = "diag_embed", onnx = "", summary = "matrices with x on a diagonal, else 0";

  /// Writes rows of n + 1 elements, the first of them x's, consecutively into rows of n.
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const std::int64_t length = x.shape()[-1];
    const std::int64_t n = length + std::abs(a.offset);
    const int rank = x.rank();
    const auto padded_last = [](const Tensor& t, std::int64_t before, std::int64_t after) {
      Shape b = Shape::filled(t.rank(), 0), e = b;
      b[t.rank() - 1] = before;
      e[t.rank() - 1] = after;
      return pad(t, b, e, t.dtype() == Dtype::boolean ? Scalar(false) : Scalar(0));
    };
    Shape flat = x.shape(), square = x.shape();
    flat[rank - 1] = checked_mul(length, n + 1, name);
    square[rank - 1] = n;
    square.push_back(n);
    const std::int64_t before = a.offset > 0 ? a.offset : -a.offset * n;
    const Tensor spread = reshape(padded_last(unsqueeze(x, -1), 0, n), flat);
    const Tensor whole = padded_last(spread, before, checked_mul(n, n, name) - before - flat[rank - 1]);
    return movedim(reshape(whole, square), {-2, -1}, {a.axis1, a.axis2});
  }
};

struct Trace {
  static constexpr auto name = "trace", onnx = "", summary = "sum of the diagonal of a matrix";

  static Tensor parts(Inputs in, const NoAttrs&) { return sum(diagonal(in[0])); }
};

void check_matrix(std::string_view where, const Tensor& x) {
  if (x.rank() < 2) throw_shape(where, "at least two axes are needed, got " + x.shape().str());
}

/// Returns an offset that leads out of every matrix, small enough to be added without overflow.
std::int64_t bounded_offset(std::int64_t offset) {
  constexpr std::int64_t most = std::int64_t{1} << 61;
  return std::clamp(offset, -most, most);
}

}  // namespace

}  // namespace detail

Tensor tril(const Tensor& x, std::int64_t offset) {
  check_matrix("tril", x);
  return composed<Tril>({{&x}}, {bounded_offset(offset)});
}
Tensor triu(const Tensor& x, std::int64_t offset) {
  check_matrix("triu", x);
  return composed<Triu>({{&x}}, {bounded_offset(offset)});
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  check_matrix("diagonal", x);
  const int a = axis_of(axis1, x.rank(), "diagonal"), b = axis_of(axis2, x.rank(), "diagonal");
  if (a == b)
    throw_shape("diagonal", "the axes must differ: " + std::to_string(axis1) + " and " + std::to_string(axis2));
  return composed<detail::Diagonal>({{&x}}, {bounded_offset(offset), a, b});
}

Tensor diag_embed(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  if (x.rank() == 0) throw_shape("diag_embed", "at least one axis is needed, got []");
  const int a = axis_of(axis1, x.rank() + 1, "diag_embed"), b = axis_of(axis2, x.rank() + 1, "diag_embed");
  if (a == b)
    throw_shape("diag_embed", "the axes must differ: " + std::to_string(axis1) + " and " + std::to_string(axis2));
  return composed<DiagEmbed>({{&x}}, {bounded_offset(offset), a, b});
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  if (x.rank() != 1 && x.rank() != 2) throw_shape("diag", "a vector or a matrix is needed, got " + x.shape().str());
  return x.rank() == 1 ? diag_embed(x, offset) : diagonal(x, offset);
}

Tensor trace(const Tensor& x) {
  if (x.rank() != 2) throw_shape("trace", "a matrix is needed, got " + x.shape().str());
  return composed<Trace>({{&x}});
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family arrangement_family() {
  static constexpr const Primitive* list[] = {&composite<Tril>,      &composite<Triu>,   &composite<Diagonal>,
                                              &composite<DiagEmbed>, &composite<Trace>,  &composite<Roll>,
                                              &composite<Rot90>,     &composite<Tile>,   &composite<RepeatInterleave>,
                                              &composite<Meshgrid>,  &composite<Movedim>};
  return list;
}

Family composite_shape_family() {
  static constexpr const Primitive* list[] = {&composite<Transpose>, &composite<Squeeze>, &composite<Unsqueeze>,
                                              &composite<Flatten>,   &composite<Flip>,    &composite<Chunk>,
                                              &composite<SumTo>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
