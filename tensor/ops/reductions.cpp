/// Reductions along axes.
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/kernel/reduce.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/prod_others.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- the gradient of a product: that of each element is the product of the others -------------------------

namespace detail {
namespace {

/// Merges the axes of a product into one, the last of a matrix [rows, n], and splits them again.
class Folded {
 public:
  Folded(const Shape& shape, const Shape& axes) {
    std::int64_t n = 1;
    Shape last;
    for (int i = 0; i < shape.rank(); ++i) {
      bool reduced = false;
      for (const std::int64_t a : axes) reduced |= a == i;
      (reduced ? last : order_).push_back(i);
      if (reduced) n *= shape[i];
    }
    for (const std::int64_t i : last) order_.push_back(i);
    back_ = order_;
    for (int k = 0; k < order_.rank(); ++k) {
      back_[static_cast<int>(order_[k])] = k;
      permuted_.push_back(shape[static_cast<int>(order_[k])]);
    }
    matrix_ = {n ? shape.numel() / n : 0, n};
  }
  Tensor operator()(const Tensor& x) const { return reshape(permute(x, order_), matrix_); }
  Tensor unfolded(const Tensor& m) const { return permute(reshape(m, permuted_), back_); }
  std::int64_t n() const { return matrix_[1]; }

 private:
  Shape order_, back_, permuted_, matrix_;
};

/// Moves x by n places along the last axis, with `value` in the free places.
Tensor moved(const Tensor& x, std::int64_t n, double value) { return pad(x, {0, n}, {0, -n}, value); }

struct ProdOthersAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &ProdOthersAttrs::axes));
};

struct ProdOthers {
  using Attributes = ProdOthersAttrs;
  static constexpr auto name = "prod_others", onnx = "", stablehlo = "";
  static constexpr auto summary = "for each element the product of the others along axes: the gradient of prod";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes floats, got " + in[0].spec().str());
    check_axes(name, attrs.axes, in[0].rank());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const NewFrame frame;
    copy_to(Writer::raw(out[0]), reference(in, attrs)[0]);
  }
  /// The composition: the whole product without the element, where at most one is 0.
  static Tensors reference(Inputs in, const Attributes& attrs) {
    const Tensor& x = in[0];
    const Shape& axes = attrs.axes;
    const Tensor zero = eq(x, 0);
    const Tensor zeros_here = sum(zero, axes, true);
    const Tensor others = where(zero, 1, x);
    const Tensor rest = prod(others, axes, true);
    const Tensor at_zero = where(eq(zeros_here, 1), rest, 0);
    const Tensor elsewhere = where(eq(zeros_here, 0), rest / others, 0);
    return {where(zero, at_zero, elsewhere)};
  }
  /// The derivative along c of the products of the others: the same products of the numbers x + c e.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Folded fold(v.in_spec(0).shape, attrs.axes);
    const Dual x{fold(v.in(0)), fold(v.grad())};
    return {fold.unfolded(derivative_of_others(x, fold.n(), moved))};
  }
};

}  // namespace

Tensor prod_others(const Tensor& x, const Shape& axes) {
  return call(structured<ProdOthers>, {{&x}}, ProdOthersAttrs{axes});
}

// ---- sum, prod, amax, amin, argmax, argmin ----------------------------------------------------------------

namespace {

Specs infer_reduction(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  Specs out;
  Spec& s = out.emplace_back();
  s.dtype = in[0].dtype();
  check_axes(name, attrs.axes, in[0].rank());
  s.shape = reduced_shape(in[0].shape(), attrs.axes, attrs.keepdim);
  return out;
}

/// Infers the types of sums and products, which are i64 for bool and i32.
Specs infer_total(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  Specs s = infer_reduction(name, in, attrs);
  if (!is_float(s[0].dtype)) s[0].dtype = Dtype::i64;
  return s;
}

/// Returns a result or its gradient in a shape that broadcasts to the operand's: with the reduced axes as extents of 1.
/// If only leading axes were dropped, broadcasting does that itself.
Tensor kept(const Tensor& y, const Vjp& v, const ReductionAttrs& attrs) {
  const Shape& axes = attrs.axes;
  if (attrs.keepdim) return y;
  bool leading = true;
  for (int k = 0; k < axes.rank(); ++k) leading = leading && is_reduced(axes, k);
  if (leading) return y;
  return reshape(y, reduced_shape(v.in_spec(0).shape, attrs.axes, true));
}

struct Sum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "sum", onnx = "ReduceSum", stablehlo = "reduce";
  static constexpr TimeRule time = TimeRule::reduces;
  static constexpr auto summary = "sum over axes; i64 for bool and i32; 0 for no elements";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_total(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(sum_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(sum_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    return {expand(kept(v.grad(), v, attrs), v.in_spec(0).shape)};
  }
};

struct Prod {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "prod", onnx = "ReduceProd", stablehlo = "reduce";
  static constexpr TimeRule time = TimeRule::reduces;
  static constexpr auto summary = "product over axes; i64 for bool and i32; 1 for no elements";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_total(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(prod_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(prod_in_use, t); }
  /// The gradient is the product of the other elements, also where one or more of them are 0.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Shape& axes = attrs.axes;
    if (axes.rank() == 0) return {v.grad()};
    return {kept(v.grad(), v, attrs) * prod_others(v.in(0), axes)};
  }
};

Specs infer_extremum(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
  const Specs out = infer_reduction(name, in, attrs);
  if (in[0].numel() == 0 && out[0].shape.numel() != 0)
    throw_shape(name, "no elements to choose from: " + in[0].shape().str());
  return out;
}

/// Returns the gradient of an extremum; ties share it evenly.
Tensors extremum_vjp(const Vjp& v, const ReductionAttrs& attrs) {
  const Tensor chosen = cast(eq(v.in(0), kept(v.out(), v, attrs)), v.grad().dtype());
  const Tensor ties = sum(chosen, attrs.axes, true);
  return {kept(v.grad(), v, attrs) * (chosen / (attrs.axes.rank() ? ties : chosen))};
}

struct Amax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amax", onnx = "ReduceMax", stablehlo = "reduce";
  static constexpr TimeRule time = TimeRule::reduces;
  static constexpr auto summary = "largest element; NaN if there is one; ties share the gradient evenly";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_extremum(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(max_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(max_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return extremum_vjp(v, attrs); }
};

struct Amin {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amin", onnx = "ReduceMin", stablehlo = "reduce";
  static constexpr TimeRule time = TimeRule::reduces;
  static constexpr auto summary = "smallest element; NaN if there is one; ties share the gradient evenly";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_extremum(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(min_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(min_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return extremum_vjp(v, attrs); }
};

/// Writes the index of the first element that `better` prefers to all before it; a NaN beats every number.
template <class Better>
void arg_extremum(const Tensor& x, int axis, Tensor& out, Better better) {
  Shape shape = x.shape();
  Shape strides = x.strides();
  const std::int64_t n = shape[axis];
  const std::int64_t step = strides[axis];
  shape.erase(axis);
  strides.erase(axis);
  std::int64_t* to = Writer::data<std::int64_t>(out);
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_offset(shape, strides, [&](std::int64_t at) {
      const T* p = x.data<T>() + at;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n; ++i) {
        const T a = p[i * step];
        const T b = p[best * step];
        if (better(a, b) || (a != a && b == b)) best = i;
      }
      *to++ = best;
    });
  });
}

Specs infer_arg(std::string_view name, Inputs in, const ArgAttrs& attrs) {
  const Shape& s = in[0].shape();
  const int axis = attrs.axis;
  check_axis(name, axis, s.rank());
  if (s[axis] == 0) throw_shape(name, "no elements to choose from: axis " + std::to_string(axis) + " of " + s.str());
  return {{reduced_shape(s, {axis}, attrs.keepdim), Dtype::i64}};
}

struct Argmax {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmax", onnx = "ArgMax", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "i64 index of the first largest element; a NaN counts as largest";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_arg(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    arg_extremum(in[0], axis, out[0], [](auto a, auto b) { return a > b; });
  }
};

struct Argmin {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmin", onnx = "ArgMin", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "i64 index of the first smallest element; a NaN counts as smallest";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_arg(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    arg_extremum(in[0], axis, out[0], [](auto a, auto b) { return a < b; });
  }
};

Tensor reduce_call(const Primitive& op, const Tensor& x, const Shape& axes, bool keepdim) {
  return call(op, {{&x}}, ReductionAttrs{axes_of(axes, x.rank(), op.name), keepdim});
}

Tensor arg_call(const Primitive& op, const Tensor& x, std::int64_t axis, bool keepdim) {
  return call(op, {{&x}}, ArgAttrs{axis_of(axis, x.rank(), op.name), keepdim});
}

}  // namespace

namespace ops {

constinit const Primitive* const sum = &structured<Sum>;
constinit const Primitive* const prod = &structured<Prod>;
constinit const Primitive* const amax = &structured<Amax>;
constinit const Primitive* const amin = &structured<Amin>;

}  // namespace ops

}  // namespace detail

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Sum>, x, axes, keepdim);
}
Tensor prod(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Prod>, x, axes, keepdim);
}
Tensor amax(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Amax>, x, axes, keepdim);
}
Tensor amin(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Amin>, x, axes, keepdim);
}
Tensor max(const Tensor& x, const Shape& axes, bool keepdim) { return amax(x, axes, keepdim); }
Tensor min(const Tensor& x, const Shape& axes, bool keepdim) { return amin(x, axes, keepdim); }
Tensor argmax(const Tensor& x, std::int64_t axis, bool keepdim) {
  return detail::arg_call(detail::structured<detail::Argmax>, x, axis, keepdim);
}
Tensor argmin(const Tensor& x, std::int64_t axis, bool keepdim) {
  return detail::arg_call(detail::structured<detail::Argmin>, x, axis, keepdim);
}

// ---- composed: truth values, elements that are not NaN, both extremes --------------------------------------

namespace detail {
namespace {

struct CountNonzero {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "count_nonzero", onnx = "", summary = "how many elements along axes are not 0, i64";

  static Tensor parts(Inputs in, const Attributes& a) { return sum(truth(in[0]), a.axes, a.keepdim); }
};

struct Any {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "any", onnx = "", summary = "whether an element along axes is not 0; false of none";

  static Tensor parts(Inputs in, const Attributes& a) { return gt(sum(truth(in[0]), a.axes, a.keepdim), 0); }
};

struct All {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "all", onnx = "", summary = "whether no element along axes is 0; true of none";

  static Tensor parts(Inputs in, const Attributes& a) { return eq(sum(!truth(in[0]), a.axes, a.keepdim), 0); }
};

struct Nansum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nansum", onnx = "", summary = "sum over axes of what is not NaN";

  static Tensor parts(Inputs in, const Attributes& a) {
    return sum(where(eq(in[0], in[0]), in[0], 0.0), a.axes, a.keepdim);
  }
};

struct Nanmean {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nanmean", onnx = "",
                        summary = "mean over axes of what is not NaN; NaN where there is none";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor number = eq(in[0], in[0]);
    const Tensor total = sum(where(number, in[0], 0.0), a.axes, a.keepdim);
    return total / cast(sum(number, a.axes, a.keepdim), in[0].dtype());
  }
};

struct Aminmax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "aminmax", onnx = "", summary = "the least and the largest element along axes";

  static Tensors parts(Inputs in, const Attributes& a) {
    return {amin(in[0], a.axes, a.keepdim), amax(in[0], a.axes, a.keepdim)};
  }
};

template <class Op>
auto along(const Tensor& x, const Shape& axes, bool keepdim) {
  return composed<Op>({{&x}}, {axes_of(axes, x.rank(), Op::name), keepdim});
}

}  // namespace

}  // namespace detail

using namespace detail;

Tensor count_nonzero(const Tensor& x, const Shape& axes, bool keepdim) { return along<CountNonzero>(x, axes, keepdim); }
Tensor any(const Tensor& x, const Shape& axes, bool keepdim) { return along<Any>(x, axes, keepdim); }
Tensor all(const Tensor& x, const Shape& axes, bool keepdim) { return along<All>(x, axes, keepdim); }
Tensor nansum(const Tensor& x, const Shape& axes, bool keepdim) {
  return is_float(x.dtype()) ? along<Nansum>(x, axes, keepdim) : sum(x, axes, keepdim);
}
Tensor nanmean(const Tensor& x, const Shape& axes, bool keepdim) {
  check_float(x, "nanmean");
  return along<Nanmean>(x, axes, keepdim);
}
Tensors aminmax(const Tensor& x, const Shape& axes, bool keepdim) { return along<Aminmax>(x, axes, keepdim); }

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family reduction_family() {
  static constexpr const Primitive* list[] = {&structured<Sum>,       &structured<Prod>,   &structured<Amax>,
                                              &structured<Amin>,      &structured<Argmax>, &structured<Argmin>,
                                              &structured<ProdOthers>};
  return list;
}

Family count_family() {
  static constexpr const Primitive* list[] = {&composite<CountNonzero>, &composite<Any>,     &composite<All>,
                                              &composite<Nansum>,       &composite<Nanmean>, &composite<Aminmax>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
