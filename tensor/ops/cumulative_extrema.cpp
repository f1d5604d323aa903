/// Running extrema and the running log of a sum of exponentials along an axis.
#include <cmath>
#include <limits>

#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/cumulative_lines.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/recurrence.h"

namespace ferrite {
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

/// log(e^a + e^b) without overflow.
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
  /// x[k] receives e^(x[k] - y[k]) S[k], where S[k] = g[k] + e^(y[k] - y[k+1]) S[k+1]: y ascends, so that no
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

Family cumulative_extrema_family() {
  static constexpr const Primitive* list[] = {&structured<Cummax>, &structured<Cummin>, &structured<LogCumSumExp>};
  return list;
}

}  // namespace detail

ValuesAndIndices cummax(const Tensor& x, std::int64_t axis) { return detail::extremum<detail::Cummax>(x, axis); }
ValuesAndIndices cummin(const Tensor& x, std::int64_t axis) { return detail::extremum<detail::Cummin>(x, axis); }

Tensor logcumsumexp(const Tensor& x, std::int64_t axis) {
  return detail::call(detail::structured<detail::LogCumSumExp>, {{&x}},
                      detail::RunningAttrs{axis_of(axis, x.rank(), "logcumsumexp"), false});
}

}  // namespace ferrite
