/// Triangles and diagonals, composed of views, masks and pads.
#include <algorithm>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite {
namespace detail {
namespace {

struct OffsetAttrs {
  std::int64_t offset = 0;
  static constexpr auto fields = attr_list(attr("offset", &OffsetAttrs::offset));
};

/// Columns less rows, of a matrix [rows, columns]: i64.
Tensor above_diagonal(std::int64_t rows, std::int64_t columns) { return arange(columns) - unsqueeze(arange(rows), 1); }

/// x where the mask of its last two axes holds, else 0.
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

/// Where a diagonal of a matrix begins, and how long it is.
struct Line {
  std::int64_t row = 0, column = 0, length = 0;
};
Line line_of(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  Line line{std::max<std::int64_t>(0, -offset), std::max<std::int64_t>(0, offset)};
  line.length = std::max<std::int64_t>(0, std::min(rows - line.row, columns - line.column));
  return line;
}

/// Without two axes.
Shape without(const Shape& s, int a, int b) {
  Shape rest;
  for (int i = 0; i < s.rank(); ++i)
    if (i != a && i != b) rest.push_back(s[i]);
  return rest;
}

struct Diagonal {
  using Attributes = DiagonalAttrs;
  static constexpr auto name = "diagonal", onnx = "", summary = "x[i, i + offset] of two axes along a new last axis";

  /// A matrix in row-major order has its diagonal at equal distances.
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

  /// Rows of n + 1 elements, the first of them x's, written one after the other into rows of n.
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

/// An offset that leads out of every matrix, within what can be added without overflow.
std::int64_t bounded_offset(std::int64_t offset) {
  constexpr std::int64_t most = std::int64_t{1} << 61;
  return std::clamp(offset, -most, most);
}

}  // namespace

Family diagonal_family() {
  static constexpr const Primitive* list[] = {&composite<Tril>, &composite<Triu>, &composite<Diagonal>,
                                              &composite<DiagEmbed>, &composite<Trace>};
  return list;
}

}  // namespace detail

using namespace detail;

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

}  // namespace ferrite
