/// Functions that give the elements of a tensor another shape or order, composed of views.
#include <algorithm>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
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

Family composite_shape_family() {
  static constexpr const Primitive* list[] = {&composite<Transpose>, &composite<Squeeze>, &composite<Unsqueeze>,
                                              &composite<Flatten>,   &composite<Flip>,    &composite<Chunk>,
                                              &composite<SumTo>};
  return list;
}

}  // namespace detail

using detail::composed;

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

}  // namespace ferrite
