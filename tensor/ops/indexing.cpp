/// Elements chosen by numbers and ranges, by a tensor of integers, or by a mask.
#include "ferrite/tensor/index.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- by numbers and ranges, as selects and slices ---------------------------------------------------------

Tensor at(const Tensor& x, std::initializer_list<Index> index) {
  if (index.size() > static_cast<std::size_t>(x.rank()))
    throw ShapeError("at: there are more indices than axes: " + std::to_string(index.size()) + " for " +
                     x.spec().str());
  Tensor y = x;
  int axis = 0;
  for (const Index& i : index) {
    if (i.element()) {
      y = select(y, axis, *i.element());
      continue;
    }
    if (i.begin() != 0 || i.end() != kEnd || i.step() != 1) y = slice(y, axis, i.begin(), i.end(), i.step());
    ++axis;
  }
  return y;
}

Tensor Tensor::element(std::int64_t i) const {
  if (rank() == 0)
    throw ShapeError("x[" + std::to_string(i) + "]: " + spec().str() + " has no axes; item() reads its value");
  if (i < -shape()[0] || i >= shape()[0])
    throw ShapeError("x[" + std::to_string(i) + "]: there is no such element along the first axis of " + spec().str());
  return select(*this, 0, i);
}

// ---- by integers ------------------------------------------------------------------------------------------

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

// ---- by a mask --------------------------------------------------------------------------------------------

namespace detail {
namespace {

struct NonzeroAttrs {
  std::int64_t size = 0, fill = -1;
  static constexpr auto fields = attr_list(attr("size", &NonzeroAttrs::size), attr("fill", &NonzeroAttrs::fill));
};

struct Nonzero {
  using Attributes = NonzeroAttrs;
  static constexpr auto name = "nonzero", onnx = "", stablehlo = "";
  static constexpr auto summary = "i64 indices of the first elements that are not 0, in row-major order, then a fill";

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (attrs.size < 0) throw ValueError("nonzero: size must not be negative, got " + std::to_string(attrs.size));
    return {{{attrs.size, in[0].rank()}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    const Shape strides = x->shape().strides();
    const int rank = x->rank();
    std::int64_t* to = Writer::data<std::int64_t>(out[0]);
    std::int64_t found = 0;
    visit_computed(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = x->data<T>();
      for (std::int64_t at = 0; at < x->numel() && found < attrs.size; ++at) {
        if (from[at] == T(0)) continue;
        std::int64_t rest = at;
        for (int k = 0; k < rank; ++k) {
          *to++ = rest / strides[k];
          rest %= strides[k];
        }
        ++found;
      }
    });
    std::fill_n(to, (attrs.size - found) * rank, attrs.fill);
  }
};

struct MaskedScatter {
  static constexpr auto name = "masked_scatter", onnx = "";
  static constexpr auto summary = "x with the source's elements, in order, where a mask holds";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor &x = in[0], &source = in[2];
    const Tensor mask = expand(in[1], x.shape()), row = reshape(mask, {-1});
    if (source.numel() == 0) {
      const Tensor none = checked(sum(row), 0, 0, "masked_scatter: the number of elements that the source must have:");
      return where(mask && gt(none, 0), 0, x);
    }
    const Tensor order = where(row, cumsum(row, 0) - 1, 0);
    const Tensor taken =
        index_select(reshape(source, {-1}), 0, order, {.who = "masked_scatter: element of the source"});
    return where(mask, reshape(taken, x.shape()), x);
  }
};

void check_mask(std::string_view where, const Tensor& mask) {
  if (mask.dtype() != Dtype::boolean) throw_dtype(where, "the mask must be bool, got " + mask.spec().str());
}

std::int64_t count_nonzero(const Tensor& x) {
  const NewFrame frame;
  const Tensor plain = x.unmarked();
  return sum(x.dtype() == Dtype::boolean ? plain : ne(plain, 0)).item<std::int64_t>();
}

}  // namespace

Family selection_family() {
  static constexpr const Primitive* list[] = {&structured<Nonzero>};
  return list;
}
Family masked_scatter_family() {
  static constexpr const Primitive* list[] = {&composite<MaskedScatter>};
  return list;
}

}  // namespace detail

Tensor nonzero(const Tensor& x, const NonzeroOptions& options) {
  if (!options.size) detail::check_values_known("nonzero", x, "give a size");
  const std::int64_t size = options.size ? *options.size : detail::count_nonzero(x);
  return detail::call(detail::structured<detail::Nonzero>, {{&x}}, detail::NonzeroAttrs{size, options.fill});
}

Tensor masked_select(const Tensor& x, const Tensor& mask, const MaskedSelectOptions& options) {
  detail::check_mask("masked_select", mask);
  if (!options.size) detail::check_values_known("masked_select", mask, "give a size");
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const Tensor row = reshape(expand(x, shape), {-1}), holds = reshape(expand(mask, shape), {-1});
  if (!options.size) return index_select(row, 0, squeeze(nonzero(holds), 1));
  const Tensor places = squeeze(nonzero(holds, {.size = options.size}), 1);
  if (row.numel() == 0) return full(places.shape(), options.fill, x.dtype());
  return where(ge(places, 0), index_select(row, 0, maximum(places, 0)), options.fill);
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  detail::check_mask("masked_scatter", mask);
  if (x.dtype() != source.dtype())
    detail::throw_dtype("masked_scatter", "dtypes differ: " + x.spec().str() + " and " + source.spec().str());
  if (broadcast(x.shape(), mask.shape(), "masked_scatter") != x.shape())
    detail::throw_shape("masked_scatter", "mask " + mask.shape().str() + " does not broadcast to " + x.shape().str());
  return detail::composed<detail::MaskedScatter>({{&x, &mask, &source}});
}

}  // namespace ferrite
