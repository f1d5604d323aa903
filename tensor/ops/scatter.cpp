/// Writing elements at indices (replaced, added, compared, multiplied) and reading them from there.
#include "ferrite/tensor/scatter.h"

#include <cstring>
#include <limits>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/prod_others.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite {
namespace detail {
namespace {

/// Throws if a source differs from its index in shape, or from x in dtype.
void check_scatter(std::string_view where, Inputs in, int axis) {
  check_gather(where, in[0], in[1], axis);
  if (in[2].shape() != in[1].shape())
    throw_shape(where, "index " + in[1].shape().str() + " and source " + in[2].shape().str() + " differ");
  if (in[2].dtype() != in[0].dtype())
    throw_dtype(where, "dtypes differ: " + in[0].spec().str() + " and " + in[2].spec().str());
}

/// Calls join(place in out, element of source) for all elements of the source, in row-major order; out begins as a copy
/// of x.
template <class T, class Join>
void scatter_by(std::string_view where, Inputs in, Tensor& out, const IndexAttrs& attrs, Join&& join) {
  copy_to(Writer::raw(out), in[0]);
  const PooledVector<std::int64_t> at = positions(where, attrs, in[1], in[0].shape()[attrs.axis]);
  const RowMajor source(in[2]);
  T* to = Writer::data<T>(out);
  const T* from = source->data<T>();
  each_indexed(in[1].shape(), out.strides(), attrs.axis, at.data(), [&](std::int64_t i) { join(to[i], *from++); });
}

// ---- replacing and comparing; slices added ----------------------------------------------------------------

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

// ---- products of the elements that an index sends to one place --------------------------------------------
// The gradient of each factor is the product of the others, to any order, also where some are 0.

namespace detail {
namespace {

Tensors scatter_prod_others(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

struct ScatterProd {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "x multiplied with the source's elements at an index along an axis, in row-major order";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      scatter_by<T>(name, in, out[0], {.axis = attrs.axis}, [&](T& place, T x) {
        if constexpr (std::is_integral_v<T>) {
          place = static_cast<T>(static_cast<std::uint64_t>(place) * static_cast<std::uint64_t>(x));
        } else {
          place *= x;
        }
      });
    });
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor& index = v.in(1);
    const Tensors others = scatter_prod_others(v.in(0), attrs.axis, index, v.in(2));
    Tensors g(3);
    if (v.wants(0)) g[0] = v.grad() * others[0];
    if (v.wants(2)) g[2] = gather_known(v.grad(), attrs.axis, index) * others[1];
    return g;
  }
};

/// All factors of all places in one row, ordered by place.
class Factors {
 public:
  Factors(const Shape& x, int axis, const Tensor& index) : x_(x), source_(index.shape()), most_(source_[axis] + 1) {
    const Tensor numbers = arange(x.numel());
    const Tensor to = gather_known(reshape(numbers, x), axis, index);
    const Tensor places = joined(numbers, to);
    order_ = argsort(places);
    place_ = gather_known(places, 0, order_);
  }
  Tensor ordered(const Tensor& of_x, const Tensor& of_source) const {
    return gather_known(joined(of_x, of_source), 0, order_);
  }
  Tensors apart(const Tensor& row) const {
    const Tensor back = gather_known(row, 0, argsort(order_));
    const std::int64_t n = x_.numel();
    return {reshape(slice(back, 0, 0, n), x_), reshape(slice(back, 0, n, back.numel()), source_)};
  }
  /// Returns the most factors that a place can have.
  std::int64_t most() const { return most_; }
  /// Moves a row by n places, with `value` where the factor that arrives belongs to another place.
  Tensor moved(const Tensor& row, std::int64_t n, double value) const {
    return where(eq(place_, pad(place_, {n}, {-n}, -1)), pad(row, {n}, {-n}), value);
  }

 private:
  static Tensor joined(const Tensor& a, const Tensor& b) {
    return concat({reshape(a, {a.numel()}), reshape(b, {b.numel()})}, 0);
  }

  Shape x_, source_;
  std::int64_t most_;
  Tensor order_, place_;
};

struct ScatterProdOthers {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod_others", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "for x's elements and for the source's the product of the others in the same place: the gradient of scatter_prod";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_scatter(name, in, attrs.axis);
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes floats, got " + in[0].spec().str());
    return {in[0].spec(), in[2].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const NewFrame frame;
    const Tensors others = reference(in, attrs);
    for (std::size_t i = 0; i < out.size(); ++i) copy_to(Writer::raw(out[i]), others[i]);
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  /// The composition: the product of the factors that are not 0, without the element; 0 where another one is 0.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor &x = in[0], &index = in[1], &source = in[2];
    const auto factor = [](const Tensor& t) { return where(eq(t, 0), 1, t); };
    const auto is_zero = [&](const Tensor& t) { return cast(eq(t, 0), x.dtype()); };
    const auto taken = [&](const Tensor& t) { return gather_known(t, attrs.axis, index); };
    const Tensor plain = scatter_prod(factor(x), attrs.axis, index, factor(source));
    const Tensor zeros_here = is_zero(x) + scatter_known(x.spec(), attrs.axis, index, is_zero(source));
    const auto others = [&](const Tensor& t, const Tensor& all, const Tensor& count) {
      return where(eq(count, is_zero(t)), all / factor(t), 0);
    };
    return {others(x, plain, zeros_here), others(source, taken(plain), taken(zeros_here))};
  }
  /// The derivative along c of the products of the others: the same products of the numbers x + c e.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Factors factors(v.in_spec(0).shape, attrs.axis, v.in(1));
    const Dual x{factors.ordered(v.in(0), v.in(2)), factors.ordered(v.grad_or_zeros(0), v.grad_or_zeros(1))};
    const auto moved = [&](const Tensor& row, std::int64_t n, double value) { return factors.moved(row, n, value); };
    const Tensors g = factors.apart(derivative_of_others(x, factors.most(), moved));
    return {g[0], {}, g[1]};
  }
};

Tensors scatter_prod_others(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return structured<ScatterProdOthers>.apply(OperandList(Tensors{x, index, source}), AxisAttrs{axis});
}

}  // namespace

Tensor scatter_prod(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return call(structured<ScatterProd>, {{&x, &index, &source}}, AxisAttrs{axis});
}

// ---- composed of gathers and scatters ---------------------------------------------------------------------

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
  std::int64_t reduction = 0;  ///< number of a ScatterReduction
  bool include_self = true;
  static constexpr auto fields =
      attr_list(attr("axis", &ScatterReduceAttrs::axis), attr("reduction", &ScatterReduceAttrs::reduction),
                attr("include_self", &ScatterReduceAttrs::include_self));
  ScatterReduction kind() const { return static_cast<ScatterReduction>(reduction); }
};

/// Returns the identity of a reduction: combining it changes nothing.
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

// ---- several indices together: x[i, j, ...] ---------------------------------------------------------------

namespace detail {
namespace {

/// Joins indices of the axes from `first` on, which broadcast together, into one index of these axes merged.
Tensor joined_index(Label who, const Shape& x, int first, Inputs indices) {
  Tensor all;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::int64_t n = x[first + static_cast<int>(k)];
    const Tensor i = checked(cast(indices[k], Dtype::i64), -n, n - 1, who);
    const Tensor from_front = where(lt(i, 0), i + n, i);
    all = k == 0 ? from_front : all * n + from_front;
  }
  return all;
}

/// Returns x's shape with `count` axes from `first` on replaced by others.
Shape with_axes(const Shape& x, int first, int count, const Shape& others) {
  Shape s;
  for (int i = 0; i < first; ++i) s.push_back(x[i]);
  for (const std::int64_t e : others) s.push_back(e);
  for (int i = first + count; i < x.rank(); ++i) s.push_back(x[i]);
  return s;
}

std::int64_t product(const Shape& x, int first, int count) {
  Shape part;
  for (int i = first; i < first + count; ++i) part.push_back(x[i]);
  return part.numel();
}

struct IndexPutAttrs {
  bool accumulate = false;
  static constexpr auto fields = attr_list(attr("accumulate", &IndexPutAttrs::accumulate));
};

struct IndexPut {
  using Attributes = IndexPutAttrs;
  static constexpr auto name = "index_put", onnx = "";
  static constexpr auto summary = "x with x[i, j, ...] = values, or += values: operands x, values, i, j, ...";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &values = in[1];
    InlineVector<const Tensor*, 8> pointers;
    for (std::size_t k = 2; k < in.size(); ++k) pointers.push_back(&in[k]);
    const auto count = static_cast<int>(pointers.size());
    const Tensor index = joined_index("index_put: index", x.shape(), 0, {pointers.data(), pointers.size()});
    const Tensor flat = reshape(x, with_axes(x.shape(), 0, count, {product(x.shape(), 0, count)}));
    const Tensor rows = reshape(expand(values, with_axes(x.shape(), 0, count, index.shape())),
                                with_axes(x.shape(), 0, count, {index.numel()}));
    const Tensor at = reshape(index, {index.numel()});
    return reshape(a.accumulate ? index_add(flat, 0, at, rows) : index_copy(flat, 0, at, rows), x.shape());
  }
};

void check_places(std::string_view where, const Tensor& x, int first, std::span<const Tensor> indices) {
  if (indices.empty() || first + static_cast<int>(indices.size()) > x.rank())
    throw_shape(where, std::to_string(indices.size()) + " indices from axis " + std::to_string(first) +
                           " on for a tensor of rank " + std::to_string(x.rank()) + ": " + x.shape().str());
  for (const Tensor& i : indices) check_index_dtype(where, i);
}

}  // namespace

}  // namespace detail

Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values, bool accumulate) {
  detail::check_places("index_put", x, 0, indices);
  if (values.dtype() != x.dtype())
    detail::throw_dtype("index_put", "dtypes differ: " + x.spec().str() + " and " + values.spec().str());
  InlineVector<const Tensor*, 16> operands;
  operands.push_back(&x);
  operands.push_back(&values);
  for (const Tensor& i : indices) operands.push_back(&i);
  return detail::composed<detail::IndexPut>({operands.data(), operands.size()}, {accumulate});
}
Tensor index_put(const Tensor& x, std::initializer_list<Tensor> indices, const Tensor& values, bool accumulate) {
  return index_put(x, std::span<const Tensor>(indices.begin(), indices.size()), values, accumulate);
}

Tensor index_at(const Tensor& x, std::span<const Tensor> indices, std::int64_t axis) {
  const int first = axis_of(axis, x.rank(), "index_at");
  const auto count = static_cast<int>(indices.size());
  detail::check_places("index_at", x, first, indices);
  const Tensor joined = detail::joined_index("index_at: index", x.shape(), first, OperandList(indices));
  const Tensor flat =
      reshape(x, detail::with_axes(x.shape(), first, count, {detail::product(x.shape(), first, count)}));
  const Tensor taken = index_select(flat, first, reshape(joined, {joined.numel()}));
  return reshape(taken, detail::with_axes(x.shape(), first, count, joined.shape()));
}
Tensor index_at(const Tensor& x, std::initializer_list<Tensor> indices, std::int64_t axis) {
  return index_at(x, std::span<const Tensor>(indices.begin(), indices.size()), axis);
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family scatter_family() {
  static constexpr const Primitive* list[] = {&structured<Scatter>, &structured<ScatterExtremum>, &structured<IndexAdd>,
                                              &structured<ScatterProd>, &structured<ScatterProdOthers>};
  return list;
}

Family composite_scatter_family() {
  static constexpr const Primitive* list[] = {&composite<TakeAlongAxis>, &composite<ScatterReduce>,
                                              &composite<IndexCopy>, &composite<IndexPut>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
