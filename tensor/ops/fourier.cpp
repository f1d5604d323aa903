/// Discrete Fourier transforms. rfft and irfft are each other's adjoints, and so are the two directions of fft: their
/// gradients stay in the family.
#include <cmath>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/composing.h"
#include "ferrite/tensor/ops/detail/fft_plans.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {
namespace detail {
namespace {

void check_signal(std::string_view where, const Tensor& x) {
  check_float(x, where);
  if (x.rank() < 1) throw_shape(where, "the signal needs an axis: " + x.shape().str());
}
void check_complex(std::string_view where, const Tensor& x) {
  check_float(x, where);
  if (x.rank() < 2 || x.shape()[-1] != 2)
    throw_shape(where, "the last axis must hold real and imaginary parts, got " + x.shape().str() +
                           "; stack them along a last axis of extent 2");
}
void check_points(std::string_view where, const Shape& shape, std::int64_t n) {
  if (n < 1) throw_shape(where, "there are no points to transform: " + shape.str());
}

/// Calls f(plan, row) for every row, on several threads where that is worth it. A row's result is its own.
template <class T, class F>
void each_row(std::int64_t rows, std::int64_t n, bool real, const F& f) {
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    const FftPlan<T>& plan = fft_plan<T>(n, real);
    for (std::int64_t r = begin; r < end; ++r) f(plan, r);
  };
  constexpr std::int64_t kElements = 1 << 14;  // of a thread's share at least
  const std::int64_t each = std::max<std::int64_t>(1, kElements / n), shares = (rows + each - 1) / each;
  const double work = 3 * static_cast<double>(rows * n) * std::log2(static_cast<double>(n) + 1);
  if (shares < 2 || thread_count() == 1 || work < static_cast<double>(kWorthSharing)) return some(0, rows);
  parallel_for(shares, [&](std::int64_t i) { some(i * each, std::min(rows, (i + 1) * each)); });
}

struct RealFftAttrs {
  double scale = 1, inner = 1;
  static constexpr auto fields = attr_list(attr("scale", &RealFftAttrs::scale), attr("inner", &RealFftAttrs::inner));
};
struct InverseRealFftAttrs {
  std::int64_t n = 1;
  double scale = 1, inner = 2;
  static constexpr auto fields =
      attr_list(attr("n", &InverseRealFftAttrs::n), attr("scale", &InverseRealFftAttrs::scale),
                attr("inner", &InverseRealFftAttrs::inner));
};
/// Of a fast transform of n real points, as those of the radix 2: half of what n complex ones take.
std::int64_t products_of(std::int64_t n) {
  return n * static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(n))));
}

Tensor call_rfft(const Tensor& x, const RealFftAttrs& attrs);
Tensor call_irfft(const Tensor& x, const InverseRealFftAttrs& attrs);

struct Rfft {
  using Attributes = RealFftAttrs;
  static constexpr auto name = "rfft", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::transforms_reals;
  static constexpr auto summary =
      "scale * discrete Fourier transform of the last axis, [..., n] -> [..., n / 2 + 1, 2]; frequencies other than 0 "
      "and n / 2 times inner";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes&) {
    check_signal(name, in[0]);
    Spec s = in[0].spec();
    check_points(name, s.shape, s.shape[-1]);
    s.shape[-1] = s.shape[-1] / 2 + 1;
    s.shape.push_back(2);
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t n = x.shape()[-1], m = n / 2 + 1;
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    each_row<T>(x.numel() / n, n, true, [&](const FftPlan<T>& plan, std::int64_t r) {
      fft_in_use.of<T>().rfft(plan, from + r * n, to + 2 * r * m, {a.scale, a.inner});
    });
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    const std::int64_t n = in[0].shape[-1];
    return in[0].shape.numel() / n * products_of(n);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {call_irfft(v.grad(), {v.in_spec(0).shape[-1], a.scale, a.inner})};
  }
};

struct Irfft {
  using Attributes = InverseRealFftAttrs;
  static constexpr auto name = "irfft", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::transforms_complex;
  static constexpr auto summary =
      "scale * sum of X_k e^(2 pi i j k / n), [..., n / 2 + 1, 2] -> [..., n]; real parts, frequencies other than 0 "
      "and "
      "n / 2 times inner";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_complex(name, in[0]);
    Spec s = in[0].spec();
    if (a.n < 1 || s.shape[-2] != a.n / 2 + 1)
      throw_shape(name, std::to_string(s.shape[-2]) + " frequencies are not those of " + std::to_string(a.n) +
                            " points: " + s.shape.str());
    s.shape.erase(s.shape.rank() - 1);
    s.shape[-1] = a.n;
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t n = a.n, m = n / 2 + 1;
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    each_row<T>(out.numel() / n, n, true, [&](const FftPlan<T>& plan, std::int64_t r) {
      fft_in_use.of<T>().irfft(plan, from + 2 * r * m, to + r * n, {a.scale, a.inner});
    });
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static std::int64_t multiply_adds(std::span<const Spec>, std::span<const Spec> out, const Attributes& a) {
    return out[0].shape.numel() / a.n * products_of(a.n);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {call_rfft(v.grad(), {a.scale, a.inner})}; }
};

struct FftAttrs {
  double scale = 1;
  bool inverse = false;
  static constexpr auto fields = attr_list(attr("scale", &FftAttrs::scale), attr("inverse", &FftAttrs::inverse));
};
Tensor call_fft(const Tensor& x, const FftAttrs& attrs);

struct Fft {
  using Attributes = FftAttrs;
  static constexpr auto name = "fft", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::transforms_complex;
  static constexpr auto summary =
      "scale * discrete Fourier transform of complex numbers, [..., n, 2] -> [..., n, 2]; inverse: with conjugate "
      "roots";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes&) {
    check_complex(name, in[0]);
    check_points(name, in[0].shape(), in[0].shape()[-2]);
    return {in[0].spec()};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t n = x.shape()[-2];
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    each_row<T>(x.numel() / (2 * n), n, false, [&](const FftPlan<T>& plan, std::int64_t r) {
      fft_in_use.of<T>().fft(plan, from + 2 * r * n, to + 2 * r * n, a.scale, a.inverse);
    });
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    const std::int64_t n = in[0].shape[-2];
    return in[0].shape.numel() / n * products_of(n);  // two numbers a point
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {call_fft(v.grad(), {a.scale, !a.inverse})}; }
};

Tensor call_rfft(const Tensor& x, const RealFftAttrs& attrs) { return call(structured<Rfft>, {{&x}}, attrs); }
Tensor call_irfft(const Tensor& x, const InverseRealFftAttrs& attrs) { return call(structured<Irfft>, {{&x}}, attrs); }
Tensor call_fft(const Tensor& x, const FftAttrs& attrs) { return call(structured<Fft>, {{&x}}, attrs); }

// ---- what the functions share ----------------------------------------------------------------------------

/// An axis moved to another place, the others in their order.
Tensor moved(const Tensor& x, int from, int to) {
  if (from == to) return x;
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(to, from);
  return permute(x, order);
}

/// An axis cut, or filled with zeros at its end.
Tensor of_length(const Tensor& x, int axis, std::int64_t n) {
  const std::int64_t extent = x.shape()[axis];
  if (extent == n) return x;
  if (extent > n) return slice(x, axis, 0, n);
  Shape before = Shape::filled(x.rank(), 0), after = before;
  after[axis] = n - extent;
  return pad(x, before, after);
}

double factor(FftNorm norm, std::int64_t n, bool inverse) {
  if (norm == FftNorm::ortho) return 1 / std::sqrt(static_cast<double>(n));
  return (norm == FftNorm::forward) != inverse ? 1 / static_cast<double>(n) : 1;
}

/// The points of a transform.
std::int64_t points(std::string_view where, const FftOptions& o, const Tensor& x, std::int64_t own) {
  if (o.n < 0)
    throw ValueError(std::string(where) + ": the number of points must be positive, got " + std::to_string(o.n));
  const std::int64_t n = o.n ? o.n : own;
  if (n < 1) throw_shape(where, "there are no points to transform: " + x.shape().str() + "; give n");
  return n;
}

Tensor complex_transform(std::string_view where, const Tensor& x, const FftOptions& o, bool inverse) {
  check_complex(where, x);
  const int axis = axis_of(o.axis, x.rank() - 1, where), last = x.rank() - 2;
  const std::int64_t n = points(where, o, x, x.shape()[axis]);
  const Tensor y = call_fft(moved(of_length(x, axis, n), axis, last), {factor(o.norm, n, inverse), inverse});
  return moved(y, last, axis);
}

struct Ifft {
  static constexpr auto name = "ifft", onnx = "";
  static constexpr auto summary = "1 / n * inverse discrete Fourier transform of complex numbers, [..., n, 2]";

  static Tensor parts(Inputs in, const NoAttrs&) { return complex_transform(name, in[0], {}, true); }
};

}  // namespace

Family fourier_family() {
  static constexpr const Primitive* list[] = {&structured<Rfft>, &structured<Irfft>, &structured<Fft>};
  return list;
}
Family composite_fourier_family() {
  static constexpr const Primitive* list[] = {&composite<Ifft>};
  return list;
}

}  // namespace detail

Tensor rfft(const Tensor& x, const FftOptions& options) {
  detail::check_signal("rfft", x);
  const int axis = axis_of(options.axis, x.rank(), "rfft"), last = x.rank() - 1;
  const std::int64_t n = detail::points("rfft", options, x, x.shape()[axis]);
  const Tensor y = detail::call_rfft(detail::moved(detail::of_length(x, axis, n), axis, last),
                                     {detail::factor(options.norm, n, false), 1});
  return detail::moved(y, last, axis);
}

Tensor irfft(const Tensor& x, const FftOptions& options) {
  detail::check_complex("irfft", x);
  const int axis = axis_of(options.axis, x.rank() - 1, "irfft"), last = x.rank() - 2;
  const std::int64_t n = detail::points("irfft", options, x, 2 * (x.shape()[axis] - 1));
  const Tensor y = detail::call_irfft(detail::moved(detail::of_length(x, axis, n / 2 + 1), axis, last),
                                      {n, detail::factor(options.norm, n, true), 2});
  return detail::moved(y, last, axis);
}

Tensor fft(const Tensor& x, const FftOptions& options) { return detail::complex_transform("fft", x, options, false); }

Tensor ifft(const Tensor& x, const FftOptions& options) {
  if (options.n == 0 && options.norm == FftNorm::backward && (options.axis == -1 || options.axis == x.rank() - 2))
    return detail::composed<detail::Ifft>({{&x}});
  return detail::complex_transform("ifft", x, options, true);
}

}  // namespace ferrite
