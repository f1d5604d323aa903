/// Functions along an axis that run from its first element to its last: sums, products, extrema, linear recurrences,
/// and differences and integrals of samples.
#include "ferrite/tensor/cumulative.h"

#include <cmath>
#include <limits>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/kernel/cumulative.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace ferrite {
namespace detail {
namespace {

/// Calls f(at, lines) for all lines of a tensor: its first element, and as many lines as one thread takes.
template <class F>
void each_share_of_lines(const AlongAxis& a, bool reverse, F&& f) {
  if (a.n == 0) return;
  if (a.inner == 1) {
    in_shares(a.outer, a.n, [&](std::int64_t first, std::int64_t count) { f(first * a.n, {count, a.n, 1, reverse}); });
  } else {
    in_shares(a.outer, a.n * a.inner, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i)
        f(i * a.n * a.inner, CumulativeLines{a.inner, a.n, a.inner, reverse});
    });
  }
}

// ---- sums, products and the linear recurrence, which the gradients of all are made of ---------------------

Specs infer_running(std::string_view name, Inputs in, const RunningAttrs& attrs) {
  check_axis(name, attrs.axis, in[0].rank());
  return {{in[0].shape(), is_float(in[0].dtype()) ? in[0].dtype() : Dtype::i64}};
}

/// Sets total = f(total, element) along lines of integers, in the unsigned type, where sums may wrap; the first total
/// is the first element.
template <class F>
void run_integers(const Tensor& x, Tensor& out, const RunningAttrs& attrs, F&& f) {
  const AlongAxis a(x.shape(), attrs.axis);
  std::int64_t* to = Writer::data<std::int64_t>(out);
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    for (std::int64_t line = 0; line < a.lines(); ++line) {
      std::uint64_t total = 0;
      for (std::int64_t k = 0; k < a.n; ++k) {
        const std::int64_t at = a.first(line) + (attrs.reverse ? a.n - 1 - k : k) * a.inner;
        const auto element = static_cast<std::uint64_t>(static_cast<std::int64_t>(from[at]));
        total = k == 0 ? element : f(total, element);
        to[at] = static_cast<std::int64_t>(total);
      }
    }
  });
}

RunningAttrs running(int axis, bool reverse = false) { return {axis, reverse}; }

struct Cumsum {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumsum", onnx = "CumSum", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "sum of all elements up to each along an axis, in f64; i64 for bool and i32";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_running(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    if (!is_float(x->dtype())) return run_integers(*x, out[0], attrs, std::plus<std::uint64_t>());
    visit_float(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(AlongAxis(x->shape(), attrs.axis), attrs.reverse,
                          [&](std::int64_t at, const CumulativeLines& l) {
                            cumulative_in_use.of<T>().sum(x->data<T>() + at, y + at, l);
                          });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return {cumsum(v.grad(), attrs.axis, !attrs.reverse)}; }
};

struct LinearRecurrence {
  using Attributes = RunningAttrs;
  static constexpr auto name = "linear_recurrence", onnx = "", stablehlo = "";
  static constexpr auto summary = "y[k] = a[k] y[k-1] + b[k] along an axis, y[0] = b[0]; in f64";
  static constexpr Reads reads{0b01, 0b1};

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (!is_float(in[0].dtype()) || in[0].dtype() != in[1].dtype())
      throw_dtype(name, "takes floats of one dtype, got " + in[0].spec().str() + " and " + in[1].spec().str());
    if (in[0].shape() != in[1].shape())
      throw_shape(
          name, "shapes differ: " + in[0].shape().str() + " and " + in[1].shape().str() + "; expand one of them first");
    check_axis(name, attrs.axis, in[0].rank());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor a(in[0]), b(in[1]);
    visit_float(a->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(AlongAxis(a->shape(), attrs.axis), attrs.reverse,
                          [&](std::int64_t at, const CumulativeLines& l) {
                            cumulative_in_use.of<T>().recurrence(a->data<T>() + at, b->data<T>() + at, y + at, l);
                          });
    });
  }
  /// The cotangent of y[k] is accumulated in the other direction: l[k] = g[k] + a[k+1] l[k+1].
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor arriving = linear_recurrence(neighbours(v.in(0), attrs, 1, 0), v.grad(), attrs.axis, !attrs.reverse);
    Tensors g(2);
    if (v.wants(0)) g[0] = arriving * neighbours(v.out(), attrs, -1, 0);
    if (v.wants(1)) g[1] = arriving;
    return g;
  }
};

struct Cumprod {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumprod", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "product of all elements up to each along an axis, in f64; i64 for bool and i32";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_running(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    if (!is_float(x->dtype())) return run_integers(*x, out[0], attrs, std::multiplies<std::uint64_t>());
    visit_float(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(AlongAxis(x->shape(), attrs.axis), attrs.reverse,
                          [&](std::int64_t at, const CumulativeLines& l) {
                            cumulative_in_use.of<T>().product(x->data<T>() + at, y + at, l);
                          });
    });
  }
  /// The gradient of x[k], which is a factor of y[j] for j >= k: the product of all factors before it, y[k-1], times
  /// the sum of g[j] x[k+1] ... x[j] over those after it, which is a recurrence.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor behind = linear_recurrence(neighbours(v.in(0), attrs, 1, 0), v.grad(), attrs.axis, !attrs.reverse);
    return {neighbours(v.out(), attrs, -1, 1) * behind};
  }
};

}  // namespace

Tensor neighbours(const Tensor& x, const RunningAttrs& attrs, std::int64_t n, double value) {
  const std::int64_t step = attrs.reverse ? -n : n;
  Shape before = Shape::filled(x.rank(), 0), after = before;
  if (x.shape()[attrs.axis] == 0) return x;
  before[attrs.axis] = -step;
  after[attrs.axis] = step;
  return pad(x, before, after, value);
}

}  // namespace detail

Tensor cumsum(const Tensor& x, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::Cumsum>, {{&x}},
                      detail::running(axis_of(axis, x.rank(), "cumsum"), reverse));
}
Tensor cumprod(const Tensor& x, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::Cumprod>, {{&x}},
                      detail::running(axis_of(axis, x.rank(), "cumprod"), reverse));
}
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::LinearRecurrence>, {{&a, &b}},
                      detail::running(axis_of(axis, a.rank(), "linear_recurrence"), reverse));
}

// ---- extrema, and the log of a sum of exponentials --------------------------------------------------------

namespace detail {
namespace {

template <bool Largest>
struct CumulativeExtremum {
  using Attributes = AxisAttrs;
  static constexpr auto name = Largest ? "cummax" : "cummin";
  static constexpr auto onnx = "", stablehlo = "";
  static constexpr auto summary =
      Largest ? "largest element up to each along an axis, and its index, the last of equal ones; NaN stays"
              : "smallest element up to each along an axis, and its index, the last of equal ones; NaN stays";
  static constexpr Reads reads{0, 0b10};

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    check_axis(name, attrs.axis, in[0].rank());
    return {in[0].spec(), {in[0].shape(), Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    std::int64_t* index = Writer::data<std::int64_t>(out[1]);
    visit_computed(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) {
        const ExtremaKernels& kernels = extrema_in_use.get();
        const auto run = (Largest ? kernels.largest : kernels.smallest).template of<T>();
        const T* from = x->data<T>();
        T* to = Writer::data<T>(out[0]);
        each_share_of_lines(AlongAxis(x->shape(), attrs.axis), false,
                            [&](std::int64_t at, const CumulativeLines& l) { run(from + at, to + at, index + at, l); });
      }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    return {scatter_known(v.in_spec(0), attrs.axis, v.out(1), v.grad_or_zeros(0))};
  }
};
using Cummax = CumulativeExtremum<true>;
using Cummin = CumulativeExtremum<false>;

/// Returns log(e^a + e^b) without overflow.
double log_add_exp(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return high == low && std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

struct LogCumSumExp {
  using Attributes = RunningAttrs;
  static constexpr auto name = "logcumsumexp", onnx = "", stablehlo = "";
  static constexpr auto summary = "ln of the sum of e^x up to each element along an axis, without overflow; in f64";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes floats, got " + in[0].spec().str());
    check_axis(name, attrs.axis, in[0].rank());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    const AlongAxis a(x->shape(), attrs.axis);
    const auto run = [&]<class T>(const T* from, T* to) {
      in_shares(a.lines(), 16 * a.n, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t line = first; line < first + count; ++line) {
          double total = -std::numeric_limits<double>::infinity();
          for (std::int64_t k = 0; k < a.n; ++k) {
            const std::int64_t at = a.first(line) + (attrs.reverse ? a.n - 1 - k : k) * a.inner;
            total = log_add_exp(total, static_cast<double>(from[at]));
            to[at] = static_cast<T>(total);
          }
        }
      });
    };
    x->dtype() == Dtype::f32 ? run(x->data<float>(), Writer::data<float>(out[0]))
                             : run(x->data<double>(), Writer::data<double>(out[0]));
  }
  /// The gradient of x[k] is e^(x[k] - y[k]) S[k], where S[k] = g[k] + e^(y[k] - y[k+1]) S[k+1]: y ascends, so that no
  /// exponential exceeds 1.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto share = [](const Tensor& part, const Tensor& whole) {
      return exp(where(eq(part, whole), 0, part - whole));
    };
    const Tensor& y = v.out();
    const Tensor later =
        linear_recurrence(share(y, neighbours(y, attrs, 1, infinity)), v.grad(), attrs.axis, !attrs.reverse);
    return {share(v.in(0), y) * later};
  }
};

template <class Op>
ValuesAndIndices extremum(const Tensor& x, std::int64_t axis) {
  const Tensors out = structured<Op>.apply({{&x}}, AxisAttrs{axis_of(axis, x.rank(), Op::name)});
  return {out[0], out[1]};
}

}  // namespace

}  // namespace detail

ValuesAndIndices cummax(const Tensor& x, std::int64_t axis) { return detail::extremum<detail::Cummax>(x, axis); }
ValuesAndIndices cummin(const Tensor& x, std::int64_t axis) { return detail::extremum<detail::Cummin>(x, axis); }

Tensor logcumsumexp(const Tensor& x, std::int64_t axis) {
  return detail::call(detail::structured<detail::LogCumSumExp>, {{&x}},
                      detail::RunningAttrs{axis_of(axis, x.rank(), "logcumsumexp"), false});
}

// ---- differences and integrals of samples, composed -------------------------------------------------------

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

/// Returns the areas between neighbouring samples; operands are y, or y and its positions.
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

/// Computes both forms of an integral, after checks: samples are at positions x where x is defined.
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

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family cumulative_family() {
  static constexpr const Primitive* list[] = {&structured<Cumsum>, &structured<Cumprod>, &structured<LinearRecurrence>,
                                              &structured<Cummax>, &structured<Cummin>,  &structured<LogCumSumExp>};
  return list;
}

Family composite_samples_family() {
  static constexpr const Primitive* list[] = {&composite<Diff>, &composite<Trapezoid>, &composite<CumulativeTrapezoid>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
