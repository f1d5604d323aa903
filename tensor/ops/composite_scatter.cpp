/// Reading, replacing and joining elements at indices, composed of gathers and scatters.
#include <limits>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/scatters.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite {
namespace detail {
namespace {

struct TakeAlongAxis {
  using Attributes = AxisAttrs;
  static constexpr auto name = "take_along_axis", onnx = "";
  static constexpr auto summary = "gather whose index and x broadcast on the other axes";

  static Tensor parts(Inputs in, const Attributes& a) {
    Shape x = in[0].shape(), index = in[1].shape();
    x[a.axis] = index[a.axis] = 1;
    Shape wide = broadcast(x, index, name), long_index = wide;
    wide[a.axis] = in[0].shape()[a.axis];
    long_index[a.axis] = in[1].shape()[a.axis];
    return gather(expand(in[0], wide), a.axis, expand(in[1], long_index));
  }
};

struct ScatterReduceAttrs {
  int axis = 0;
  std::int64_t reduction = 0;  ///< the number of a ScatterReduction
  bool include_self = true;
  static constexpr auto fields =
      attr_list(attr("axis", &ScatterReduceAttrs::axis), attr("reduction", &ScatterReduceAttrs::reduction),
                attr("include_self", &ScatterReduceAttrs::include_self));
  ScatterReduction kind() const { return static_cast<ScatterReduction>(reduction); }
};

/// What joins without a change.
Scalar identity_of(ScatterReduction kind, Dtype dtype) {
  if (kind == ScatterReduction::prod) return 1;
  if (kind != ScatterReduction::amax && kind != ScatterReduction::amin) return 0;
  const bool largest = kind == ScatterReduction::amax;
  return visit_computed(dtype, [&](auto zero) -> Scalar {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return largest ? -Limits::infinity() : Limits::infinity();
    return largest ? Limits::min() : Limits::max();
  });
}

struct ScatterReduce {
  using Attributes = ScatterReduceAttrs;
  static constexpr auto name = "scatter_reduce", onnx = "ScatterElements";
  static constexpr auto summary = "x with the source's elements added, multiplied, averaged or compared at an index";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &index = in[1], &source = in[2];
    const ScatterReduction kind = a.kind();
    const Tensor x = a.include_self ? in[0] : scatter(in[0], a.axis, index, identity_of(kind, in[0].dtype()));
    if (kind == ScatterReduction::prod) return scatter_prod(x, a.axis, index, source);
    if (kind == ScatterReduction::amax) return scatter_extremum(x, a.axis, index, source, true);
    if (kind == ScatterReduction::amin) return scatter_extremum(x, a.axis, index, source, false);
    const Tensor total = scatter_add(x, a.axis, index, source);
    if (kind == ScatterReduction::sum) return total;
    const Tensor one = ones(x.shape(), x.dtype());
    const Tensor self = a.include_self ? one : scatter(one, a.axis, index, 0.0);
    const Tensor count = scatter_add(self, a.axis, index, ones(index.shape(), x.dtype()));
    return total / maximum(count, 1);
  }
};

struct SlicesAttrs {
  int axis = 0;
  static constexpr auto fields = attr_list(attr("axis", &SlicesAttrs::axis));
};

struct IndexCopy {
  using Attributes = SlicesAttrs;
  static constexpr auto name = "index_copy", onnx = "";
  static constexpr auto summary = "x with slices replaced at a rank-1 index along an axis; of several the last one";

  static Tensor parts(Inputs in, const Attributes& a) {
    return scatter(in[0], a.axis, spread_index(in[1], a.axis, in[2].shape()), in[2]);
  }
};

}  // namespace

Family composite_scatter_family() {
  static constexpr const Primitive* list[] = {&composite<TakeAlongAxis>, &composite<ScatterReduce>,
                                              &composite<IndexCopy>};
  return list;
}

Tensor source_for(std::string_view where, const Tensor& source, const Tensor& index) {
  bool covers = source.rank() == index.rank();
  for (int i = 0; i < index.rank() && covers; ++i) covers = index.shape()[i] <= source.shape()[i];
  if (!covers)
    throw_shape(where, "index " + index.shape().str() + " reaches beyond the source " + source.shape().str());
  Tensor part = source;
  for (int i = 0; i < index.rank(); ++i)
    if (part.shape()[i] != index.shape()[i]) part = slice(part, i, 0, index.shape()[i]);
  return part;
}

}  // namespace detail

using detail::composed;

Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis) {
  if (index.rank() != x.rank())
    detail::throw_shape("take_along_axis", "ranks differ: " + x.shape().str() + " and " + index.shape().str());
  return composed<detail::TakeAlongAxis>({{&x, &index}}, {axis_of(axis, x.rank(), "take_along_axis")});
}
Tensor take(const Tensor& x, const Tensor& index) {
  return reshape(index_select(reshape(x, {-1}), 0, reshape(index, {-1})), index.shape());
}

Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                      ScatterReduction reduction, bool include_self) {
  const int at = axis_of(axis, x.rank(), "scatter_reduce");
  if (x.dtype() == Dtype::boolean || x.dtype() != source.dtype())
    detail::throw_dtype("scatter_reduce",
                        "takes numbers of one dtype, got " + x.spec().str() + " and " + source.spec().str());
  if (reduction == ScatterReduction::mean && !is_float(x.dtype()))
    detail::throw_dtype("scatter_reduce", "means are of floats, got " + x.spec().str() + "; cast it first");
  detail::check_gather("scatter_reduce", x, index, at);
  const Tensor part = detail::source_for("scatter_reduce", source, index);
  return composed<detail::ScatterReduce>({{&x, &index, &part}},
                                         {at, static_cast<std::int64_t>(reduction), include_self});
}

Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source) {
  const int at = axis_of(axis, x.rank(), "index_copy");
  detail::check_slices("index_copy", x, index, source, at);
  return composed<detail::IndexCopy>({{&x, &index, &source}}, {at});
}
Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value) {
  const int at = axis_of(axis, x.rank(), "index_fill");
  if (index.rank() != 1) detail::throw_shape("index_fill", "the index must have rank 1, got " + index.shape().str());
  Shape shape = x.shape();
  shape[at] = index.numel();
  return scatter(x, at, detail::spread_index(index, at, shape), value);
}

}  // namespace ferrite
