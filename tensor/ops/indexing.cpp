/// Operations that read positions from a tensor of integers.
#include <cstring>

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/slices.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

struct IndexSelect {
  using Attributes = IndexAttrs;
  static constexpr auto name = "index_select", onnx = "Gather", stablehlo = "gather";
  static constexpr TimeRule time = TimeRule::chooses;
  static constexpr auto summary = "slices of x chosen by a rank-1 index along an axis";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_index_dtype(name, in[1]);
    if (in[1].rank() != 1) throw_shape(name, "the index must have rank 1, got " + in[1].shape().str());
    Spec s = in[0].spec();
    check_axis(name, attrs.axis, s.shape.rank());
    s.shape[attrs.axis] = in[1].shape()[0];
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    copy_slices(out[0], in[0], attrs.axis, positions(name, attrs, in[1], in[0].shape()[attrs.axis]));
  }
  static Effects effects(std::span<const Spec>, const Attributes& attrs) { return effects_of_index(attrs); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const int axis = attrs.axis;
    const Spec& x = v.in_spec(0);
    Shape one_axis = Shape::filled(x.shape.rank(), 1);
    one_axis[axis] = -1;
    const Tensor index = expand(reshape(v.in(1), one_axis), v.grad().shape());
    return {scatter_known(x, axis, index, v.grad()), Tensor()};
  }
};

struct Gather {
  using Attributes = IndexAttrs;
  static constexpr auto name = "gather", onnx = "GatherElements", stablehlo = "gather";
  static constexpr auto summary = "out[i][j] = x[index[i][j]][j] for axis 0, and so on";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_gather(name, in[0], in[1], attrs.axis);
    return {{in[1].shape(), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const Tensor& x = in[0];
    const int axis = attrs.axis;
    if (names_slices(in[1], x.shape(), axis))
      return copy_slices(out[0], x, axis, slice_positions(name, attrs, in[1], x.shape()[axis]));
    const PooledVector<std::int64_t> at = positions(name, attrs, in[1], x.shape()[axis]);
    const auto copy = [&]<class Bits>(Bits) {
      const Bits* const from = reinterpret_cast<const Bits*>(x.raw());
      Bits* to = reinterpret_cast<Bits*>(Writer::raw(out[0]));
      each_indexed(in[1].shape(), x.strides(), axis, at.data(),
                   [&](std::int64_t i) { std::memcpy(to++, from + i, sizeof(Bits)); });
    };
    switch (size_of(x.dtype())) {
      case 1: return copy(std::uint8_t());
      case 4: return copy(std::uint32_t());
      default: return copy(std::uint64_t());
    }
  }
  static Effects effects(std::span<const Spec>, const Attributes& attrs) { return effects_of_index(attrs); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Spec& x = v.in_spec(0);
    return {scatter_known(x, attrs.axis, v.in(1), v.grad()), Tensor()};
  }
};

struct ScatterAdd {
  using Attributes = IndexAttrs;
  static constexpr auto name = "scatter_add", onnx = "ScatterElements", stablehlo = "scatter";
  static constexpr auto summary = "x with the source's elements added at an index along an axis, in row-major order";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_gather(name, in[0], in[1], attrs.axis);
    if (in[2].shape() != in[1].shape())
      throw_shape(name, "index " + in[1].shape().str() + " and source " + in[2].shape().str() + " differ");
    if (in[2].dtype() != in[0].dtype())
      throw_dtype(name, "dtypes differ: " + in[0].spec().str() + " and " + in[2].spec().str());
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    copy_to(Writer::raw(out[0]), in[0]);
    if (names_slices(in[1], in[0].shape(), axis))
      return add_slices(out[0], axis, slice_positions(name, attrs, in[1], in[0].shape()[axis]), *RowMajor(in[2]));
    const PooledVector<std::int64_t> at = positions(name, attrs, in[1], in[0].shape()[axis]);
    const Tensor source = contiguous(in[2]);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = Writer::data<T>(out[0]);
      const T* from = source.data<T>();
      each_indexed(in[1].shape(), out[0].strides(), axis, at.data(),
                   [&](std::int64_t i) { to[i] = static_cast<T>(to[i] + *from++); });
    });
  }
  static Effects effects(std::span<const Spec>, const Attributes& attrs) { return effects_of_index(attrs); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    Tensors g(3);
    if (v.wants(0)) g[0] = v.grad();
    if (v.wants(2)) g[2] = gather_known(v.grad(), attrs.axis, v.in(1));
    return g;
  }
};

}  // namespace

Tensor scatter_known(const Spec& x, int axis, const Tensor& index, const Tensor& source) {
  const Tensor none = zeros(x.shape, x.dtype);
  return call(structured<ScatterAdd>, {{&none, &index, &source}}, IndexAttrs{.axis = axis, .known = true});
}
Tensor gather_known(const Tensor& x, int axis, const Tensor& index) {
  return call(structured<Gather>, {{&x, &index}}, IndexAttrs{.axis = axis, .known = true});
}

namespace ops {
constinit const Primitive* const gather = &structured<Gather>;
}  // namespace ops

Family indexing_family() {
  static constexpr const Primitive* list[] = {&structured<IndexSelect>, &structured<Gather>, &structured<ScatterAdd>};
  return list;
}

}  // namespace detail

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index, const IndexOptions& options) {
  const int at = axis_of(axis, x.rank(), "index_select");
  return detail::call(detail::structured<detail::IndexSelect>, {{&x, &index}}, detail::along(at, options));
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index, const IndexOptions& options) {
  const int at = axis_of(axis, x.rank(), "gather");
  return detail::call(detail::structured<detail::Gather>, {{&x, &index}}, detail::along(at, options));
}

Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                   const IndexOptions& options) {
  const int at = axis_of(axis, x.rank(), "scatter_add");
  return detail::call(detail::structured<detail::ScatterAdd>, {{&x, &index, &source}}, detail::along(at, options));
}

}  // namespace ferrite
