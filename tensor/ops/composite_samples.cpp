/// Differences and integrals of samples along an axis, composed of operations.
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/groups.h"

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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const bool logic = in[0].dtype == Dtype::boolean;
    Dense x = in[0];
    for (std::int64_t k = 0; k < a.n && x.shape[a.axis] > 0; ++k) {
      Spec s{x.shape, x.dtype};
      --s.shape[a.axis];
      Dense y(s);
      for_each_index(y.shape, [&](const Shape& i) {
        Shape next = i;
        ++next[a.axis];
        y.at(i) = logic ? static_cast<double>(x.at(next) != x.at(i)) : x.at(next) - x.at(i);
      });
      x = y;
    }
    out[0].values = x.values;
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = DiffAttrs{1, 1}},
            {.inputs = {{{4, 2}}}, .attrs = DiffAttrs{0, 2}},
            {.inputs = {{{3, 2}}}, .attrs = DiffAttrs{1, 3}},
            {.inputs = {{{2, 0}}}, .attrs = DiffAttrs{1, 1}},
            {.inputs = {{{3}}}, .attrs = DiffAttrs{0, 0}},
            {.inputs = {{{4}, Dtype::boolean}}, .attrs = DiffAttrs{0, 1}, .indices = {1, 0, 0, 1}},
            {.inputs = {{{4}, Dtype::i64}}, .attrs = DiffAttrs{0, 2}, .indices = {1, 5, 2, 7}}};
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

/// Gives f the areas of each line, as doubles.
template <class F>
void each_line_of_areas(std::span<const Dense> in, const TrapezoidAttrs& a, F&& f) {
  for_each_group(in[0], {a.axis}, [&](const Shape& at, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (std::size_t k = 0; k + 1 < members.size(); ++k) {
      const auto position = [&](const Shape& i) {
        return in[1].shape.rank() == 1 ? in[1].at({i[a.axis]}) : in[1].at(i);
      };
      const double width = in.size() == 1 ? a.dx : position(members[k + 1]) - position(members[k]);
      v.push_back(width * (in[0].at(members[k]) + in[0].at(members[k + 1])) / 2);
    }
    f(at, v);
  });
}

std::vector<Sample> integrals() {
  return {{.inputs = {{{3, 5}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{4, 2}}}, .attrs = TrapezoidAttrs{0, 0.25}},
          {.inputs = {{{2, 4}}, {{4}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{2, 4, 3}}, {{2, 4, 3}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{4, 3}}, {{4}}}, .attrs = TrapezoidAttrs{0, 1}},
          {.inputs = {{{3, 1}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{3, 0}}}, .attrs = TrapezoidAttrs{1, 1}}};
}

struct Trapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "trapezoid", onnx = "";
  static constexpr auto summary = "sum of (x[k+1] - x[k]) (y[k] + y[k+1]) / 2 along an axis, or of steps dx";

  static Tensor parts(Inputs in, const Attributes& a) { return sum(areas(in, a), {a.axis}); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::size_t next = 0;
    each_line_of_areas(in, a, [&](const Shape&, const std::vector<double>& v) {
      double total = 0;
      for (const double area : v) total += area;
      out[0].values[next++] = total;
    });
  }
  static std::vector<Sample> samples() { return integrals(); }
};

struct CumulativeTrapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "cumulative_trapezoid", onnx = "";
  static constexpr auto summary = "the integrals of `trapezoid` up to each sample but the first";

  static Tensor parts(Inputs in, const Attributes& a) { return cumsum(areas(in, a), a.axis); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_line_of_areas(in, a, [&](const Shape& at, const std::vector<double>& v) {
      double total = 0;
      for (std::size_t k = 0; k < v.size(); ++k) {
        Shape to = at;
        to[a.axis] = static_cast<std::int64_t>(k);
        out[0].at(to) = total += v[k];
      }
    });
  }
  static std::vector<Sample> samples() { return integrals(); }
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
