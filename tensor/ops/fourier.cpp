/// Discrete Fourier transforms. rfft and irfft are each other's adjoints, and so are the two directions of fft.
#include "ferrite/tensor/fft.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/kernel/fft_plan.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/reserve.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {

// ---- plans: factors of a length, roots of unity, chirps, and the plans that a thread keeps ------------------

namespace detail {

FERRITE_FLOAT_TABLES(FftKernels, fft_kernels, fft_in_use)

namespace {

/// The number e^(-2 pi i k / n), from an angle of at most pi / 4: exact where a part is 0 or 1, and symmetric.
struct Root {
  double re, im;
};
Root root_of_unity(std::int64_t k, std::int64_t n) {
  k %= n;
  const bool below = 2 * k > n;  // the lower half of the circle: the conjugate
  std::int64_t part = 2 * (below ? n - k : k), whole = 2 * n;
  const bool left = 2 * part > n;  // mirrored at the imaginary axis
  if (left) part = n - part;
  part *= 2, whole *= 2;
  const bool steep = 2 * part > n;  // mirrored at the diagonal
  if (steep) part = n - part;
  const double angle = 2 * std::numbers::pi * (static_cast<double>(part) / static_cast<double>(whole));
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, below ? s : -s};
}

/// Arrays of real and imaginary parts.
template <class T>
struct Roots {
  std::vector<T> re, im;
  void push(Root w) {
    re.push_back(static_cast<T>(w.re));
    im.push_back(static_cast<T>(w.im));
  }
  Split<const T> get() const { return {re.data(), im.data()}; }
};

/// Returns the radices of the passes, or none where a prime factor is too large for a pass.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  constexpr std::int64_t kLargest = 31;
  std::vector<std::int64_t> list;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  while (twos > 0) {
    const int bits = twos == 1 ? 1 : twos == 2 || twos == 4 ? 2 : 3;
    list.push_back(std::int64_t{1} << bits);
    twos -= bits;
  }
  for (std::int64_t p = 3; p <= kLargest; p += 2)
    for (; n % p == 0; n /= p) list.push_back(p);
  if (n > 1) list.clear();
  return list;
}

template <class T>
struct Passes {
  FftPasses<T> passes{};
  std::vector<Roots<T>> tables;

  void make(std::int64_t n, const std::vector<std::int64_t>& radices) {
    passes.n = n;
    tables.reserve(2 * radices.size());
    std::int64_t rest = n, stride = 1;
    for (const std::int64_t r : radices) {
      const std::int64_t groups = rest / r;
      Roots<T>&twiddles = tables.emplace_back(), &roots = tables.emplace_back();
      for (std::int64_t k = 1; k < r; ++k)
        for (std::int64_t p = 0; p < groups; ++p) twiddles.push(root_of_unity(p * k, rest));
      for (std::int64_t k = 0; k < r; ++k) roots.push(root_of_unity(k, r));
      passes.pass[passes.count++] = {r, groups, stride, twiddles.get(), roots.get()};
      rest = groups;
      stride *= r;
    }
  }
};

struct Chirp {
  FftChirp chirp{};
  Passes<double> passes;
  Roots<double> turns, response;

  explicit Chirp(std::int64_t n) {
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    passes.make(m, radices_of(m));
    std::int64_t square = 0;  // j^2 mod 2 n
    for (std::int64_t j = 0; j < n; ++j) {
      turns.push(root_of_unity(square, 2 * n));
      square = (square + 2 * j + 1) % (2 * n);
    }
    Roots<double> x, work;
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t from_0 = std::min(j, m - j);
      const auto at = static_cast<std::size_t>(from_0);
      x.push(from_0 < n ? Root{turns.re[at], -turns.im[at]} : Root{0, 0});
    }
    work = x;
    const Split<double> y =
        fft_in_use.of<double>().run(passes.passes, {x.re.data(), x.im.data()}, {work.re.data(), work.im.data()});
    const double length = static_cast<double>(m);
    for (std::int64_t j = 0; j < m; ++j) response.push({y.re[j] / length, y.im[j] / length});
    chirp = {n, passes.passes, turns.get(), response.get()};
  }
};

template <class T>
struct Planned {
  FftPlan<T> plan{};
  bool real;
  std::uint64_t used = 0;  ///< time of its last use
  Passes<T> passes;
  Roots<T> untangle;
  std::unique_ptr<Chirp> chirp;
  std::vector<T> work;
  std::vector<double> chirp_work;

  Planned(std::int64_t n, bool is_real) : real(is_real) {
    const bool halved = real && n % 2 == 0;
    const std::int64_t points = halved ? n / 2 : n;
    const std::vector<std::int64_t> radices = radices_of(points);
    if (radices.empty() && points > 1) {
      chirp = std::make_unique<Chirp>(points);
      chirp_work.resize(static_cast<std::size_t>(4 * chirp->passes.passes.n));
    } else {
      passes.make(points, radices);
    }
    if (halved)
      for (std::int64_t k = 0; k <= points; ++k) untangle.push(root_of_unity(k, n));
    work.resize(static_cast<std::size_t>(4 * points));
    plan = {.n = n,
            .passes = passes.passes,
            .chirp = chirp ? &chirp->chirp : nullptr,
            .untangle = halved ? untangle.get() : Split<const T>{nullptr, nullptr},
            .work = work.data(),
            .chirp_work = chirp_work.data(),
            .points = points};
  }
};

template <class T>
struct Plans {
  static constexpr std::size_t kMost = 16;
  std::vector<std::unique_ptr<Planned<T>>> list;
  std::uint64_t now = 0;

  const FftPlan<T>& get(std::int64_t n, bool real) {
    for (const auto& p : list)
      if (p->plan.n == n && p->real == real) {
        p->used = ++now;
        return p->plan;
      }
    auto made = std::make_unique<Planned<T>>(n, real);
    made->used = ++now;
    if (list.size() < kMost) return list.emplace_back(std::move(made))->plan;
    auto& oldest = *std::min_element(list.begin(), list.end(), [](auto& a, auto& b) { return a->used < b->used; });
    oldest = std::move(made);
    return oldest->plan;
  }
};

}  // namespace

template <class T>
const FftPlan<T>& fft_plan(std::int64_t n, bool real) {
  return kept_for_calls<Plans<T>>().get(n, real);
}
template const FftPlan<float>& fft_plan(std::int64_t, bool);
template const FftPlan<double>& fft_plan(std::int64_t, bool);

template <class T>
std::shared_ptr<const FftPlan<T>> new_fft_plan(std::int64_t n, bool real) {
  const auto made = std::make_shared<Planned<T>>(n, real);
  return {made, &made->plan};
}
template std::shared_ptr<const FftPlan<float>> new_fft_plan(std::int64_t, bool);
template std::shared_ptr<const FftPlan<double>> new_fft_plan(std::int64_t, bool);

// ---- transforms -------------------------------------------------------------------------------------------

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

/// Calls f(plan, row) for every row, on several threads where that pays. A row's result depends on that row only.
template <class T, class F>
void each_row(std::int64_t rows, std::int64_t n, bool real, const F& f) {
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    const FftPlan<T>& plan = fft_plan<T>(n, real);
    for (std::int64_t r = begin; r < end; ++r) f(plan, r);
  };
  constexpr std::int64_t kElements = 1 << 14;  // least elements of a thread's share
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
/// Returns the multiply-adds of a fast transform of n real points, as of radix 2: half of those of n complex points.
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
    return in[0].shape.numel() / n * products_of(n);  // two numbers for each point
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {call_fft(v.grad(), {a.scale, !a.inverse})}; }
};

Tensor call_rfft(const Tensor& x, const RealFftAttrs& attrs) { return call(structured<Rfft>, {{&x}}, attrs); }
Tensor call_irfft(const Tensor& x, const InverseRealFftAttrs& attrs) { return call(structured<Irfft>, {{&x}}, attrs); }
Tensor call_fft(const Tensor& x, const FftAttrs& attrs) { return call(structured<Fft>, {{&x}}, attrs); }

// ---- helpers of the functions ----------------------------------------------------------------------------

/// Moves an axis to another position; the others keep their order.
Tensor moved(const Tensor& x, int from, int to) {
  if (from == to) return x;
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(to, from);
  return permute(x, order);
}

/// Cuts an axis, or fills it with zeros at its end.
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

/// Returns the number of points of a transform.
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

// ---- the order of frequencies, and their values -----------------------------------------------------------

namespace detail {
namespace {

struct RotateAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &RotateAttrs::axes));
};

/// Cuts every axis at half its extent, rounded up or down, and exchanges the halves.
template <bool up>
struct HalfRotation {
  using Attributes = RotateAttrs;
  static constexpr auto name = up ? "fftshift" : "ifftshift", onnx = "";
  static constexpr auto summary =
      up ? "axes rotated by half their extents: index 0 goes to n / 2" : "axes rotated back: index n / 2 goes to 0";

  static std::int64_t first(std::int64_t n) { return up ? (n + 1) / 2 : n / 2; }
  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (const std::int64_t axis : a.axes) {
      const std::int64_t n = y.shape()[static_cast<int>(axis)];
      if (n > 1) y = concat({slice(y, axis, first(n)), slice(y, axis, 0, first(n))}, axis);
    }
    return y;
  }
};

Tensor frequencies(std::string_view where, std::int64_t n, double spacing, Dtype dtype, bool real) {
  if (n < 1) throw ValueError(std::string(where) + ": the number of points must be positive, got " + std::to_string(n));
  if (!std::isfinite(spacing) || spacing == 0)
    throw ValueError(std::string(where) + ": the spacing must be finite and not 0, got " + Scalar(spacing).str());
  if (!is_float(dtype)) throw_dtype(where, std::string(name_of(dtype)) + " is no float");
  const std::int64_t count = real ? n / 2 + 1 : n;
  const Tensor f = Tensor::build<double>({count}, [&](std::span<double> out) {
    for (std::int64_t k = 0; k < count; ++k)
      out[static_cast<std::size_t>(k)] =
          static_cast<double>(real || 2 * k < n ? k : k - n) / (static_cast<double>(n) * spacing);
  });
  return cast(f, dtype);
}

}  // namespace

}  // namespace detail

Tensor fftfreq(std::int64_t n, double spacing, Dtype dtype) {
  return detail::frequencies("fftfreq", n, spacing, dtype, false);
}
Tensor rfftfreq(std::int64_t n, double spacing, Dtype dtype) {
  return detail::frequencies("rfftfreq", n, spacing, dtype, true);
}

Tensor fftshift(const Tensor& x, const Shape& axes) {
  return detail::composed<detail::HalfRotation<true>>({{&x}}, {axes_of(axes, x.rank(), "fftshift")});
}
Tensor ifftshift(const Tensor& x, const Shape& axes) {
  return detail::composed<detail::HalfRotation<false>>({{&x}}, {axes_of(axes, x.rank(), "ifftshift")});
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family composite_fourier_family() {
  static constexpr const Primitive* list[] = {&composite<Ifft>, &composite<HalfRotation<true>>,
                                              &composite<HalfRotation<false>>};
  return list;
}

Family fourier_family() {
  static constexpr const Primitive* list[] = {&structured<Rfft>, &structured<Irfft>, &structured<Fft>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
