/// Interpolation along axes: every place of the result reads up to four elements, each times its weight.
#include <algorithm>
#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/space_options.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/window_attributes.h"
#include "ferrite/tensor/windows.h"

namespace ferrite {
namespace detail {
namespace {

enum Mode : int { kNearest, kNearestExact, kLinear, kCubic };

/// PyTorch computes nearest places in f32.
std::int64_t nearest(const ResampleAttrs& a, std::int64_t place) {
  const float apart =
      a.scale > 0 ? static_cast<float>(1 / a.scale) : static_cast<float>(a.from) / static_cast<float>(a.to);
  const float at = (static_cast<float>(place) + (a.mode == kNearestExact ? 0.5F : 0.0F)) * apart;
  return std::min(static_cast<std::int64_t>(std::floor(at)), a.from - 1);
}

/// Distance of neighbouring places.
double apart(const ResampleAttrs& a) {
  if (a.align_corners) return a.to > 1 ? static_cast<double>(a.from - 1) / static_cast<double>(a.to - 1) : 0;
  return a.scale > 0 ? 1 / a.scale : static_cast<double>(a.from) / static_cast<double>(a.to);
}

/// Weights of the four elements around a place that lies t behind the second one (Keys, a = -0.75).
void cubic_weights(double t, double (&w)[ResampleTaps::kMost]) {
  constexpr double kA = -0.75;
  const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

/// Elements before, along and after an axis.
struct Layers {
  Layers(const Shape& s, int axis) {
    for (int i = 0; i < axis; ++i) before *= s[i];
    for (int i = axis + 1; i < s.rank(); ++i) after *= s[i];
  }
  std::int64_t before = 1, after = 1;
};

std::vector<ResampleTaps> all_taps(const ResampleAttrs& a) {
  std::vector<ResampleTaps> all;
  for (std::int64_t i = 0; i < a.to; ++i) all.push_back(resample_taps(a, i));
  return all;
}

void check_resample(std::string_view where, const Tensor& x, const ResampleAttrs& a, std::int64_t extent) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
  check_axis(where, a.axis, x.rank());
  if (x.shape()[a.axis] != extent || a.from < 1 || a.to < 1 || a.mode < kNearest || a.mode > kCubic)
    throw_shape(where, "axis " + std::to_string(a.axis) + " of " + x.shape().str() + " does not go from " +
                           std::to_string(a.from) + " to " + std::to_string(a.to) + " elements");
}

Tensor resample(const Tensor& x, const ResampleAttrs& a);
Tensor resample_gradient(const Tensor& y, const ResampleAttrs& a);

struct Resample {
  using Attributes = ResampleAttrs;
  static constexpr auto name = "resample", onnx = "Resize", stablehlo = "";
  static constexpr auto summary = "an axis at another extent: mode 0 nearest, 1 nearest-exact, 2 linear, 3 cubic";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_resample(name, in[0], a, a.from);
    Spec s = in[0].spec();
    s.shape[a.axis] = a.to;
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]);
    const Layers l(in[0].shape(), a.axis);
    const std::vector<ResampleTaps> taps = all_taps(a);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      const T* from = x->data<T>();
      for (std::int64_t b = 0; b < l.before; ++b, from += a.from * l.after)
        for (const ResampleTaps& t : taps) {
          row(y, from, t, l.after);
          y += l.after;
        }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {resample_gradient(v.grad(), a)}; }

 private:
  /// One place: n elements beside each other.
  template <class T>
  static void row(T* y, const T* x, const ResampleTaps& t, std::int64_t n) {
    const T* at[ResampleTaps::kMost];
    T w[ResampleTaps::kMost];
    for (int k = 0; k < t.count; ++k) {
      at[k] = x + t.at[k] * n;
      w[k] = static_cast<T>(t.weight[k]);
    }
    if (t.count == 1) {
      std::copy_n(at[0], n, y);
    } else if (t.count == 2) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(w[0] * at[0][i] + w[1] * at[1][i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = static_cast<T>(w[0] * at[0][i] + w[1] * at[1][i] + w[2] * at[2][i] + w[3] * at[3][i]);
    }
  }
};

struct ResampleGradient {
  using Attributes = ResampleAttrs;
  static constexpr auto name = "resample_gradient", onnx = "", stablehlo = "";
  static constexpr auto summary = "the adjoint of resample: every place is added to what it reads, by its weights";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_resample(name, in[0], a, a.to);
    Spec s = in[0].spec();
    s.shape[a.axis] = a.from;
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor y(in[0]);
    const Layers l(in[0].shape(), a.axis);
    const std::vector<ResampleTaps> taps = all_taps(a);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* x = Writer::data<T>(out[0]);
      const T* from = y->data<T>();
      std::fill_n(x, out[0].numel(), T(0));
      for (std::int64_t b = 0; b < l.before; ++b, x += a.from * l.after)
        for (const ResampleTaps& t : taps) {
          for (int k = 0; k < t.count; ++k) {
            T* const to = x + t.at[k] * l.after;
            const T w = static_cast<T>(t.weight[k]);
            for (std::int64_t i = 0; i < l.after; ++i) to[i] = static_cast<T>(to[i] + w * from[i]);
          }
          from += l.after;
        }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {resample(v.grad(), a)}; }
};

Tensor resample(const Tensor& x, const ResampleAttrs& a) { return call(structured<Resample>, {{&x}}, a); }
Tensor resample_gradient(const Tensor& y, const ResampleAttrs& a) {
  return call(structured<ResampleGradient>, {{&y}}, a);
}

/// The factors of all axes, or none where sizes are given.
std::vector<double> factors(const InterpolateOptions& o, int axes) {
  std::vector<double> all = o.scale_factor;
  if (all.size() == 1) all.assign(static_cast<std::size_t>(axes), o.scale_factor[0]);
  if (!all.empty() && all.size() != static_cast<std::size_t>(axes))
    throw_shape("interpolate", "scale_factor needs one number or " + std::to_string(axes) + ", got " +
                                   std::to_string(o.scale_factor.size()));
  for (const double f : all)
    if (!(f > 0) || !std::isfinite(f))
      throw ValueError("interpolate: scale_factor must be positive and finite, got " + Scalar(f).str());
  return all;
}

void check_options(const Tensor& x, const InterpolateOptions& o) {
  const int axes = x.rank() - 2;
  if (!is_float(x.dtype()))
    throw_dtype("interpolate", "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
  if (axes < 1 || axes > 3) throw_shape("interpolate", "expects rank 3, 4 or 5, got " + x.shape().str());
  if (o.mode == Interpolation::cubic && axes != 2)
    throw_shape("interpolate", "cubic takes two axes of space, got " + x.shape().str());
  if ((o.size.rank() == 0) == o.scale_factor.empty())
    throw ValueError("interpolate: either size or scale_factor must be given, got " + o.size.str() + " and " +
                     std::to_string(o.scale_factor.size()) + " factors");
  if (o.align_corners && o.mode != Interpolation::linear && o.mode != Interpolation::cubic)
    throw ValueError("interpolate: align_corners takes linear or cubic: mode " +
                     std::to_string(static_cast<int>(o.mode)));
  if (o.recompute_scale_factor && o.size.rank() != 0)
    throw ValueError("interpolate: recompute_scale_factor takes a scale_factor: size " + o.size.str());
  for (int i = 0; i < axes; ++i)
    if (x.shape()[i + 2] < 1)
      throw_shape("interpolate", "axis " + std::to_string(i + 2) + " of " + x.shape().str() + " has no elements");
}

}  // namespace

ResampleTaps resample_taps(const ResampleAttrs& a, std::int64_t place) {
  ResampleTaps t;
  if (a.mode == kNearest || a.mode == kNearestExact) {
    t.at[0] = nearest(a, place);
    return t;
  }
  const auto i = static_cast<double>(place);
  double at = a.align_corners ? apart(a) * i : apart(a) * (i + 0.5) - 0.5;
  if (a.mode == kLinear) {
    at = std::max(at, 0.0);
    t.count = 2;
    t.at[0] = std::min(static_cast<std::int64_t>(at), a.from - 1);
    t.at[1] = std::min(t.at[0] + 1, a.from - 1);
    t.weight[1] = std::clamp(at - static_cast<double>(t.at[0]), 0.0, 1.0);
    t.weight[0] = 1 - t.weight[1];
    return t;
  }
  const double below = std::floor(at);
  t.count = 4;
  cubic_weights(at - below, t.weight);
  for (int k = 0; k < t.count; ++k)
    t.at[k] = std::clamp<std::int64_t>(static_cast<std::int64_t>(below) + k - 1, 0, a.from - 1);
  return t;
}

Family resampling_family() {
  static constexpr const Primitive* list[] = {&structured<Resample>, &structured<ResampleGradient>};
  return list;
}

}  // namespace detail

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  detail::check_options(x, o);
  const int axes = x.rank() - 2;
  const std::vector<double> factors = detail::factors(o, axes);
  Shape size;
  if (factors.empty()) {
    size = detail::space_numbers("interpolate", "size", o.size, Shape::filled(axes, 1), 1);
  } else {
    for (int i = 0; i < axes; ++i) {
      const double n = std::floor(static_cast<double>(x.shape()[i + 2]) * factors[static_cast<std::size_t>(i)]);
      if (n < 1 || n > 0x1p40)
        throw ValueError("interpolate: axis " + std::to_string(i + 2) + " of " + x.shape().str() + " would get " +
                         Scalar(n).str() + " elements");
      size.push_back(static_cast<std::int64_t>(n));
    }
  }
  if (o.mode == Interpolation::area) {
    return axes == 1   ? adaptive_avg_pool1d(x, size)
           : axes == 2 ? adaptive_avg_pool2d(x, size)
                       : adaptive_avg_pool3d(x, size);
  }
  Tensor y = x;
  for (int i = axes - 1; i >= 0; --i) {
    const double scale = factors.empty() || o.recompute_scale_factor ? 0 : factors[static_cast<std::size_t>(i)];
    y = detail::resample(y, {i + 2, x.shape()[i + 2], size[i], static_cast<int>(o.mode), o.align_corners, scale});
  }
  return y;
}

}  // namespace ferrite
