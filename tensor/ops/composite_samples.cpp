/// Differences and integrals of samples along an axis, composed of operations.
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {
namespace {

Tensor without_first(const Tensor& x, int axis) { return slice(x, axis, 1); }
Tensor without_last(const Tensor& x, int axis) { return slice(x, axis, 0, -1); }

struct DiffAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &DiffAttrs::axis), attr("n", &DiffAttrs::n));
};

struct Diff {
  using Attributes = DiffAttrs;
  static constexpr auto name = "diff", onnx = "", summary = "the n-th difference x[k+1] - x[k] along an axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor x = in[0];
    for (std::int64_t k = 0; k < a.n && x.shape()[a.axis] > 0; ++k) {
      const Tensor later = without_first(x, a.axis), earlier = without_last(x, a.axis);
      x = x.dtype() == Dtype::boolean ? ne(later, earlier) : later - earlier;
    }
    return x;
  }
};

struct TrapezoidAttrs {
  int axis = 0;
  double dx = 1;
  static constexpr auto fields = attr_list(attr("axis", &TrapezoidAttrs::axis), attr("dx", &TrapezoidAttrs::dx));
};

/// The areas between neighbouring samples; operands y, or y and its positions.
Tensor areas(Inputs in, const TrapezoidAttrs& a) {
  const Tensor &y = in[0], pairs = without_first(y, a.axis) + without_last(y, a.axis);
  if (in.size() == 1) return pairs * (a.dx / 2);
  const int axis = in[1].rank() == 1 ? 0 : a.axis;
  Tensor width = without_first(in[1], axis) - without_last(in[1], axis);
  if (in[1].rank() == 1) {
    Shape along = Shape::filled(y.rank(), 1);
    along[a.axis] = -1;
    width = reshape(width, along);
  }
  return pairs * width / 2;
}

struct Trapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "trapezoid", onnx = "";
  static constexpr auto summary = "sum of (x[k+1] - x[k]) (y[k] + y[k+1]) / 2 along an axis, or of steps dx";

  static Tensor parts(Inputs in, const Attributes& a) { return sum(areas(in, a), {a.axis}); }
};

struct CumulativeTrapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "cumulative_trapezoid", onnx = "";
  static constexpr auto summary = "the integrals of `trapezoid` up to each sample but the first";

  static Tensor parts(Inputs in, const Attributes& a) { return cumsum(areas(in, a), a.axis); }
};

/// Both forms of an integral: checked, and with samples at positions x where x is defined.
template <class Op>
Tensor integral(const Tensor& y, const Tensor* x, double dx, std::int64_t axis) {
  if (!is_float(y.dtype())) throw_dtype(Op::name, "takes floats, got " + y.spec().str() + "; cast it first");
  const TrapezoidAttrs attrs{axis_of(axis, y.rank(), Op::name), dx};
  if (!x) return composed<Op>({{&y}}, attrs);
  if (x->dtype() != y.dtype()) throw_dtype(Op::name, "dtypes differ: " + y.spec().str() + " and " + x->spec().str());
  if (x->shape() != y.shape() && x->shape() != Shape{y.shape()[attrs.axis]})
    throw_shape(Op::name, "positions " + x->shape().str() + " do not fit samples " + y.shape().str() + " along axis " +
                              std::to_string(attrs.axis));
  return composed<Op>({{&y, x}}, attrs);
}

}  // namespace

Family composite_samples_family() {
  static constexpr const Primitive* list[] = {&composite<Diff>, &composite<Trapezoid>, &composite<CumulativeTrapezoid>};
  return list;
}

}  // namespace detail

Tensor diff(const Tensor& x, const DiffOptions& options) {
  const int axis = axis_of(options.axis, x.rank(), "diff");
  if (options.n < 0) throw ValueError("diff: n must not be negative, got " + std::to_string(options.n));
  Tensors parts;
  if (options.prepend.defined()) parts.push_back(options.prepend);
  parts.push_back(x);
  if (options.append.defined()) parts.push_back(options.append);
  const Tensor all = parts.size() == 1 ? x : concat(std::span<const Tensor>(parts.data(), parts.size()), axis);
  return detail::composed<detail::Diff>({{&all}}, {axis, options.n});
}

Tensor trapezoid(const Tensor& y, double dx, std::int64_t axis) {
  return detail::integral<detail::Trapezoid>(y, nullptr, dx, axis);
}
Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis) {
  return detail::integral<detail::Trapezoid>(y, &x, 1, axis);
}
Tensor cumulative_trapezoid(const Tensor& y, double dx, std::int64_t axis) {
  return detail::integral<detail::CumulativeTrapezoid>(y, nullptr, dx, axis);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis) {
  return detail::integral<detail::CumulativeTrapezoid>(y, &x, 1, axis);
}

}  // namespace ferrite
