/// Operations that put elements where an index says: replacing and comparing; and slices added.
#include <cstring>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/scatter_elements.h"
#include "ferrite/tensor/ops/detail/scatters.h"
#include "ferrite/tensor/ops/detail/slices.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite {
namespace detail {
namespace {

struct Scatter {
  using Attributes = IndexAttrs;
  static constexpr auto name = "scatter", onnx = "ScatterElements", stablehlo = "";
  static constexpr auto summary = "x with the source's elements at an index along an axis; of several the last one";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    visit_computed(out[0].dtype(), [&](auto zero) {
      scatter_by<decltype(zero)>(name, in, out[0], attrs, [](auto& place, auto x) { place = x; });
    });
  }
  static Effects effects(std::span<const Spec>, const Attributes& attrs) { return effects_of_index(attrs); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor& index = v.in(1);
    Tensors g(3);
    if (v.wants(0)) g[0] = replace_known(v.grad(), attrs.axis, index, zeros(index.shape(), v.grad().dtype()));
    if (v.wants(2)) {
      const Tensor number = reshape(arange(index.numel()), index.shape());
      const Tensor placed = replace_known(zeros(v.in_spec(0).shape, Dtype::i64), attrs.axis, index, number);
      const Tensor stays = eq(gather_known(placed, attrs.axis, index), number);
      g[2] = where(stays, gather_known(v.grad(), attrs.axis, index), 0);
    }
    return g;
  }
};

struct ScatterExtremumAttrs {
  int axis = 0;
  bool largest = true;
  static constexpr auto fields =
      attr_list(attr("axis", &ScatterExtremumAttrs::axis), attr("largest", &ScatterExtremumAttrs::largest));
};

struct ScatterExtremum {
  using Attributes = ScatterExtremumAttrs;
  static constexpr auto name = "scatter_extremum", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "x with the largest (smallest) of its element and the source's at an index along an axis; ties share the "
      "gradient";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    visit_computed(out[0].dtype(), [&](auto zero) {
      scatter_by<decltype(zero)>(name, in, out[0], {.axis = attrs.axis}, [&](auto& place, auto x) {
        if (x != x || (attrs.largest ? x > place : x < place)) place = x;
      });
    });
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Dtype t = v.grad().dtype();
    const Tensor of_x = cast(eq(v.in(0), v.out()), t);
    const Tensor of_source = cast(eq(v.in(2), gather_known(v.out(), attrs.axis, v.in(1))), t);
    const Tensor ties = of_x + scatter_known(v.in_spec(0), attrs.axis, v.in(1), of_source);
    const Tensor each = v.grad() / where(eq(ties, 0), 1, ties);
    Tensors g(3);
    if (v.wants(0)) g[0] = of_x * each;
    if (v.wants(2)) g[2] = of_source * gather_known(each, attrs.axis, v.in(1));
    return g;
  }
};

struct IndexAdd {
  using Attributes = IndexAttrs;
  static constexpr auto name = "index_add", onnx = "", stablehlo = "";
  static constexpr auto summary = "x with the source's slices added at a rank-1 index along an axis, in order";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_slices(name, in[0], in[1], in[2], attrs.axis);
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    copy_to(Writer::raw(out[0]), in[0]);
    const PooledVector<std::int64_t> at = positions(name, attrs, in[1], in[0].shape()[attrs.axis]);
    add_slices(out[0], attrs.axis, at, *RowMajor(in[2]));
  }
  static Effects effects(std::span<const Spec>, const Attributes& attrs) { return effects_of_index(attrs); }
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor index = spread_index(in[1], attrs.axis, in[2].shape());
    return {scatter_add(in[0], attrs.axis, index, in[2])};
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    Tensors g(3);
    if (v.wants(0)) g[0] = v.grad();
    if (v.wants(2)) g[2] = index_select(v.grad(), attrs.axis, v.in(1));
    return g;
  }
};

}  // namespace

void check_slices(std::string_view where, const Tensor& x, const Tensor& index, const Tensor& source, int axis) {
  check_index_dtype(where, index);
  check_axis(where, axis, x.rank());
  if (index.rank() != 1) throw_shape(where, "the index must have rank 1, got " + index.shape().str());
  if (source.dtype() != x.dtype())
    throw_dtype(where, "dtypes differ: " + x.spec().str() + " and " + source.spec().str());
  Shape wanted = x.shape();
  wanted[axis] = index.shape()[0];
  if (source.shape() != wanted)
    throw_shape(where, "the source must have the shape " + wanted.str() + ", got " + source.shape().str());
}

Tensor spread_index(const Tensor& index, int axis, const Shape& shape) {
  Shape column = Shape::filled(shape.rank(), 1);
  column[axis] = index.numel();
  return expand(reshape(index, column), shape);
}

Tensor replace_known(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return call(structured<Scatter>, {{&x, &index, &source}}, IndexAttrs{.axis = axis, .known = true});
}
Tensor scatter_extremum(const Tensor& x, int axis, const Tensor& index, const Tensor& source, bool largest) {
  return call(structured<ScatterExtremum>, {{&x, &index, &source}}, ScatterExtremumAttrs{axis, largest});
}

Family scatter_family() {
  static constexpr const Primitive* list[] = {&structured<Scatter>, &structured<ScatterExtremum>,
                                              &structured<IndexAdd>};
  return list;
}

}  // namespace detail

Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
               const IndexOptions& options) {
  const int at = axis_of(axis, x.rank(), "scatter");
  const Tensor part = detail::source_for("scatter", source, index);
  return detail::call(detail::structured<detail::Scatter>, {{&x, &index, &part}}, detail::along(at, options));
}
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value, const IndexOptions& options) {
  return scatter(x, axis, index, expand(full({}, value, x.dtype()), index.shape()), options);
}
Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source, double alpha) {
  const Tensor scaled = alpha == 1 ? source : source * alpha;
  return detail::call(detail::structured<detail::IndexAdd>, {{&x, &index, &scaled}},
                      detail::along(axis_of(axis, x.rank(), "index_add"), {}));
}

}  // namespace ferrite
