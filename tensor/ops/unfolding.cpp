/// Windows along the spatial axes: unfolded and folded, padded with a tensor's own elements, resampled.
#include "ferrite/tensor/windows.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/windows.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite {

// ---- windows as an axis: views, patches as columns, and columns added up where they come from -------------

namespace detail {
namespace {

Tensor unfold_windows(const Tensor& x, const UnfoldAttrs& a);
Tensor fold_windows(const Tensor& y, const UnfoldAttrs& a);

void check_unfolding(std::string_view where, const Tensor& x, const UnfoldAttrs& a) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
  const int axes = a.space.rank();
  for (const Shape* s : {&a.kernel, &a.stride, &a.before, &a.dilation, &a.size})
    if (s->rank() != axes || axes < 1 || axes > 3)
      throw_shape(where, "its constants need one number for each axis of space: " + s->str() + " for " + a.space.str());
  for (int i = 0; i < axes; ++i)
    if (a.kernel[i] < 1 || a.stride[i] < 1 || a.dilation[i] < 1 || a.size[i] < 0 || a.space[i] < 0)
      throw ValueError(std::string(where) + ": kernels, strides and dilations must be positive: " + a.kernel.str() +
                       ", " + a.stride.str() + " and " + a.dilation.str());
}

/// The spatial axes as the last ones of three; the others have one element.
struct Windows3 {
  explicit Windows3(const UnfoldAttrs& a) {
    const int rank = a.space.rank();
    for (int i = 0; i < rank; ++i)
      axis[3 - rank + i] = {a.space[i], a.size[i], a.kernel[i], a.stride[i], a.before[i], a.dilation[i]};
  }
  std::int64_t elements() const { return axis[0].n * axis[1].n * axis[2].n; }
  std::int64_t columns() const {
    return axis[0].kernel * axis[1].kernel * axis[2].kernel * axis[0].size * axis[1].size * axis[2].size;
  }
  /// Calls row(place in the columns of the first window that has its element, number of such windows, that element) for
  /// every tap and row of windows, except rows that lie outside.
  template <class F>
  void each_row(const F& row) const {
    const PoolAxis &d = axis[0], &h = axis[1], &w = axis[2];
    std::int64_t to = 0;
    for (std::int64_t td = 0; td < d.kernel; ++td)
      for (std::int64_t th = 0; th < h.kernel; ++th)
        for (std::int64_t tw = 0; tw < w.kernel; ++tw)
          for (std::int64_t i = 0; i < d.size; ++i)
            for (std::int64_t j = 0; j < h.size; ++j, to += w.size) {
              const std::int64_t p = i * d.stride + td * d.dilation - d.before;
              const std::int64_t q = j * h.stride + th * h.dilation - h.before;
              const std::int64_t at = tw * w.dilation - w.before;
              const std::int64_t first = at >= 0 ? 0 : std::min(w.size, (-at + w.stride - 1) / w.stride);
              const std::int64_t last = at >= w.n ? 0 : std::min(w.size, (w.n - 1 - at) / w.stride + 1);
              if (p < 0 || p >= d.n || q < 0 || q >= h.n || first >= last) continue;
              row(to + first, last - first, (p * h.n + q) * w.n + first * w.stride + at);
            }
  }
  PoolAxis axis[3];
};

template <class F>
void each_plane(const Tensor& columns, const UnfoldAttrs& a, const F& f) {
  const Windows3 w(a);
  const std::int64_t planes = w.columns() == 0 ? 0 : columns.numel() / w.columns();
  for (std::int64_t i = 0; i < planes; ++i) f(w, i);
}

struct UnfoldWindows {
  using Attributes = UnfoldAttrs;
  static constexpr auto name = "unfold_windows", onnx = "", stablehlo = "";
  static constexpr auto summary = "windows of x [N, C, ...] as columns [N, C elements of a window, windows]";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_unfolding(name, in[0], a);
    const Shape& x = in[0].shape();
    if (x.rank() < 3 || space_of(x) != a.space)
      throw_shape(name, "expects [N, C] and " + a.space.str() + ", got " + x.str());
    return {{{x[0], checked_mul(x[1], a.kernel.numel(), name), a.size.numel()}, in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* const to = Writer::data<T>(out[0]);
      const T* const from = x->data<T>();
      std::fill_n(to, out[0].numel(), T(0));
      each_plane(out[0], a, [&](const Windows3& w, std::int64_t plane) {
        w.each_row([&](std::int64_t column, std::int64_t n, std::int64_t element) {
          T* const y = to + plane * w.columns() + column;
          const T* const v = from + plane * w.elements() + element;
          const std::int64_t stride = w.axis[2].stride;
          if (stride == 1) {
            std::copy_n(v, n, y);
          } else {
            for (std::int64_t i = 0; i < n; ++i) y[i] = v[i * stride];
          }
        });
      });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {fold_windows(v.grad(), a)}; }
};

struct FoldWindows {
  using Attributes = UnfoldAttrs;
  static constexpr auto name = "fold_windows", onnx = "Col2Im", stablehlo = "";
  static constexpr auto summary =
      "the adjoint of unfold_windows: columns added up where they come from, taps ascending";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_unfolding(name, in[0], a);
    const Shape& y = in[0].shape();
    const std::int64_t taps = a.kernel.numel();
    if (y.rank() != 3 || y[1] % taps != 0 || y[2] != a.size.numel())
      throw_shape(name, "columns " + y.str() + " are not " + std::to_string(a.size.numel()) + " windows of " +
                            std::to_string(taps) + " elements");
    return {{pooled_shape({y[0], y[1] / taps}, a.space), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor y(in[0]);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* const to = Writer::data<T>(out[0]);
      const T* const from = y->data<T>();
      std::fill_n(to, out[0].numel(), T(0));
      each_plane(*y, a, [&](const Windows3& w, std::int64_t plane) {
        w.each_row([&](std::int64_t column, std::int64_t n, std::int64_t element) {
          const T* const v = from + plane * w.columns() + column;
          T* const x = to + plane * w.elements() + element;
          const std::int64_t stride = w.axis[2].stride;
          for (std::int64_t i = 0; i < n; ++i) x[i * stride] = static_cast<T>(x[i * stride] + v[i]);
        });
      });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {unfold_windows(v.grad(), a)}; }
};

struct UnfoldAxis {
  using Attributes = UnfoldAxisAttrs;
  static constexpr auto name = "unfold_axis", onnx = "", stablehlo = "";
  static constexpr auto summary = "windows along an axis, their elements as a new last axis; a view";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    Spec s = in[0].spec();
    check_axis(name, a.axis, s.shape.rank());
    if (a.window < 1 || a.step < 1)
      throw ValueError("unfold: size and step must be positive, got " + std::to_string(a.window) + " and " +
                       std::to_string(a.step));
    if (s.shape[a.axis] < a.window)
      throw_shape("unfold", "axis " + std::to_string(a.axis) + " of " + s.shape.str() + " has no window of " +
                                std::to_string(a.window) + " elements");
    s.shape[a.axis] = (s.shape[a.axis] - a.window) / a.step + 1;
    s.shape.push_back(a.window);
    return {s};
  }
  static bool view(const Tensor& x, const Spec&, const Attributes& a, std::size_t, Layout& layout) {
    layout.strides = x.strides();
    layout.strides.push_back(x.strides()[a.axis]);
    layout.strides[a.axis] *= a.step;
    return true;
  }
  /// The gradient treats the result as columns of one channel: [other axes, elements of a window, windows].
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const Shape& s = v.in_spec(0).shape;
    const int rank = s.rank();
    Shape order, others, back;
    std::int64_t lead = 1;
    for (int i = 0; i < rank; ++i)
      if (i != a.axis) {
        order.push_back(i);
        others.push_back(s[i]);
        lead *= s[i];
      }
    order.push_back(rank);
    order.push_back(a.axis);
    const std::int64_t n = s[a.axis], windows = (n - a.window) / a.step + 1;
    const Tensor columns = reshape(permute(v.grad(), order), {lead, a.window, windows});
    others.push_back(n);
    const Tensor rows = reshape(fold_windows(columns, {{a.window}, {a.step}, {0}, {1}, {windows}, {n}}), others);
    for (int i = 0; i < rank; ++i) back.push_back(i < a.axis ? i : i == a.axis ? rank - 1 : i - 1);
    return {permute(rows, back)};
  }
};

Tensor unfold_windows(const Tensor& x, const UnfoldAttrs& a) { return call(structured<UnfoldWindows>, {{&x}}, a); }
Tensor fold_windows(const Tensor& y, const UnfoldAttrs& a) { return call(structured<FoldWindows>, {{&y}}, a); }

UnfoldAttrs unfolding(std::string_view where, const Shape& space, const Shape& kernel, const UnfoldOptions& o) {
  const int axes = space.rank();
  if (kernel.rank() != axes)
    throw_shape(where, "the kernel needs " + std::to_string(axes) + " numbers, got " + kernel.str());
  UnfoldAttrs a{.kernel = space_numbers(where, "kernel", kernel, Shape::filled(axes, 1), 1),
                .stride = space_numbers(where, "stride", o.stride, Shape::filled(axes, 1), 1),
                .before = space_numbers(where, "padding", o.padding, Shape::filled(axes, 0), 0),
                .dilation = space_numbers(where, "dilation", o.dilation, Shape::filled(axes, 1), 1),
                .size = {},
                .space = space};
  for (int i = 0; i < axes; ++i) {
    const std::int64_t reach = checked_mul(a.kernel[i] - 1, a.dilation[i], where) + 1;
    const std::int64_t n = checked_add(space[i], checked_mul(a.before[i], 2, where), where);
    if (n < reach)
      throw_shape(where, "no window of " + std::to_string(reach) + " elements fits axis " + std::to_string(i) + " of " +
                             space.str());
    a.size.push_back((n - reach) / a.stride[i] + 1);
  }
  return a;
}

}  // namespace

}  // namespace detail

Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
  return detail::call(detail::structured<detail::UnfoldAxis>, {{&x}},
                      detail::UnfoldAxisAttrs{axis_of(axis, x.rank(), "unfold"), size, step});
}

Tensor unfold(const Tensor& x, const Shape& kernel, const UnfoldOptions& options) {
  if (x.rank() < 3 || x.rank() > 5) detail::throw_shape("unfold", "expects rank 3, 4 or 5, got " + x.shape().str());
  return detail::unfold_windows(x, detail::unfolding("unfold", detail::space_of(x.shape()), kernel, options));
}

Tensor fold(const Tensor& x, const Shape& size, const Shape& kernel, const UnfoldOptions& options) {
  if (size.rank() < 1 || size.rank() > 3)
    detail::throw_shape("fold", "the size needs one, two or three numbers, got " + size.str());
  return detail::fold_windows(x, detail::unfolding("fold", size, kernel, options));
}

// ---- padding, and channels and pixels in another order: composed of views and copies ----------------------

namespace detail {
namespace {

struct PaddingModeAttrs {
  Shape before{}, after{};
  int mode = 0;
  static constexpr auto fields =
      attr_list(attr("before", &PaddingModeAttrs::before), attr("after", &PaddingModeAttrs::after),
                attr("mode", &PaddingModeAttrs::mode));
};

/// Returns the elements [begin, end) of an axis as padding.
Tensor margin(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) { return slice(x, axis, begin, end); }

Tensor padded_axis(const Tensor& x, int axis, std::int64_t before, std::int64_t after, PaddingMode mode) {
  const std::int64_t n = x.shape()[axis];
  const auto repeated = [&](std::int64_t at, std::int64_t count) {
    Shape shape = x.shape();
    shape[axis] = count;
    return expand(margin(x, axis, at, at + 1), shape);
  };
  Tensors parts;
  if (before > 0)
    parts.push_back(mode == PaddingMode::reflect     ? flip(margin(x, axis, 1, before + 1), {axis})
                    : mode == PaddingMode::replicate ? repeated(0, before)
                                                     : margin(x, axis, n - before, n));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(mode == PaddingMode::reflect     ? flip(margin(x, axis, n - 1 - after, n - 1), {axis})
                    : mode == PaddingMode::replicate ? repeated(n - 1, after)
                                                     : margin(x, axis, 0, after));
  return parts.size() == 1 ? x : concat(std::span<const Tensor>(parts.data(), parts.size()), axis);
}

struct PadMode {
  using Attributes = PaddingModeAttrs;
  static constexpr auto name = "pad_mode", onnx = "Pad";
  static constexpr auto summary = "x with its own elements around: mode 1 mirrored, 2 the ends repeated, 3 cyclic";

  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (int i = 0; i < y.rank(); ++i) y = padded_axis(y, i, a.before[i], a.after[i], static_cast<PaddingMode>(a.mode));
    return y;
  }
};

/// Constants of `pixel_shuffle`, `pixel_unshuffle` and `channel_shuffle`.
struct ShuffleFactorAttrs {
  std::int64_t factor = 1;
  static constexpr auto fields = attr_list(attr("factor", &ShuffleFactorAttrs::factor));
};

/// Reshapes x [..., a, b, c] to [lead, a, b, c]; `like` returns a shape with x's leading axes and other last ones.
Tensor as_planes(const Tensor& x) { return reshape(x, {-1, x.shape()[-3], x.shape()[-2], x.shape()[-1]}); }
Shape like(const Shape& s, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Shape out = s;
  out[-3] = channels;
  out[-2] = height;
  out[-1] = width;
  return out;
}

struct PixelShuffle {
  using Attributes = ShuffleFactorAttrs;
  static constexpr auto name = "pixel_shuffle", onnx = "DepthToSpace";
  static constexpr auto summary = "channels [..., C r^2, H, W] as blocks of pixels [..., C, H r, W r]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t r = a.factor, C = s[-3] / (r * r), H = s[-2], W = s[-1];
    const Shape out = like(s, C, H * r, W * r);
    if (in[0].numel() == 0) return reshape(in[0], out);
    const Tensor split = reshape(as_planes(in[0]), {-1, C, r, r, H, W});
    return reshape(permute(split, {0, 1, 4, 2, 5, 3}), out);
  }
};

struct PixelUnshuffle {
  using Attributes = ShuffleFactorAttrs;
  static constexpr auto name = "pixel_unshuffle", onnx = "SpaceToDepth";
  static constexpr auto summary = "blocks of pixels [..., C, H r, W r] as channels [..., C r^2, H, W]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t r = a.factor, C = s[-3], H = s[-2] / r, W = s[-1] / r;
    const Shape out = like(s, C * r * r, H, W);
    if (in[0].numel() == 0) return reshape(in[0], out);
    const Tensor split = reshape(as_planes(in[0]), {-1, C, H, r, W, r});
    return reshape(permute(split, {0, 1, 3, 5, 2, 4}), out);
  }
};

struct ChannelShuffle {
  using Attributes = ShuffleFactorAttrs;
  static constexpr auto name = "channel_shuffle", onnx = "";
  static constexpr auto summary = "channels in the order of groups: g K + k becomes k groups + g";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    if (in[0].numel() == 0) return in[0];
    return reshape(transpose(reshape(in[0], {s[0], a.factor, s[1] / a.factor, -1}), 1, 2), s);
  }
};

void check_planes(std::string_view where, const Tensor& x) {
  if (x.rank() < 3) throw_shape(where, "expects at least rank 3, got " + x.shape().str());
}

}  // namespace

}  // namespace detail

Tensor pad(const Tensor& x, const Shape& before, const Shape& after, PaddingMode mode) {
  if (before.rank() != x.rank() || after.rank() != x.rank())
    detail::throw_shape("pad", "before and after need one amount for each axis: " + before.str() + " and " +
                                   after.str() + " for " + x.shape().str());
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t n = x.shape()[i], most = std::max(before[i], after[i]);
    if (before[i] < 0 || after[i] < 0)
      throw ValueError("pad: amounts must not be negative with a mode: " + before.str() + " and " + after.str() +
                       "; crop with slice");
    if (most == 0 || mode == PaddingMode::zeros) continue;
    const bool fits = mode == PaddingMode::reflect ? most < n : mode == PaddingMode::replicate ? n > 0 : most <= n;
    if (!fits)
      detail::throw_shape("pad", "axis " + std::to_string(i) + " of " + x.shape().str() + " has too few elements for " +
                                     std::to_string(most) + " more of this mode");
  }
  if (mode == PaddingMode::zeros) return pad(x, before, after, 0);
  return detail::composed<detail::PadMode>({{&x}}, {before, after, static_cast<int>(mode)});
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  detail::check_planes("pixel_shuffle", x);
  const std::int64_t C = x.shape()[-3];
  if (factor < 1 || factor > C || C % factor != 0 || C / factor % factor != 0)
    throw ValueError("pixel_shuffle: the square of the factor must divide the channels, got " + std::to_string(factor) +
                     " for " + x.shape().str());
  return detail::composed<detail::PixelShuffle>({{&x}}, {factor});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  detail::check_planes("pixel_unshuffle", x);
  if (factor < 1 || x.shape()[-2] % factor != 0 || x.shape()[-1] % factor != 0)
    throw ValueError("pixel_unshuffle: the factor must divide height and width, got " + std::to_string(factor) +
                     " for " + x.shape().str());
  return detail::composed<detail::PixelUnshuffle>({{&x}}, {factor});
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  detail::check_planes("channel_shuffle", x);
  if (groups < 1 || x.shape()[1] % groups != 0)
    throw ValueError("channel_shuffle: groups must divide the channels, got " + std::to_string(groups) + " for " +
                     x.shape().str());
  return detail::composed<detail::ChannelShuffle>({{&x}}, {groups});
}

// ---- interpolation: every place of the result reads up to four elements, each times its weight ------------

namespace detail {
namespace {

enum Mode : int { kNearest, kNearestExact, kLinear, kCubic };

/// Returns the nearest place, computed in f32 as in PyTorch.
std::int64_t nearest(const ResampleAttrs& a, std::int64_t place) {
  const float apart =
      a.scale > 0 ? static_cast<float>(1 / a.scale) : static_cast<float>(a.from) / static_cast<float>(a.to);
  const float at = (static_cast<float>(place) + (a.mode == kNearestExact ? 0.5F : 0.0F)) * apart;
  return std::min(static_cast<std::int64_t>(std::floor(at)), a.from - 1);
}

/// Returns the distance of neighbouring places.
double apart(const ResampleAttrs& a) {
  if (a.align_corners) return a.to > 1 ? static_cast<double>(a.from - 1) / static_cast<double>(a.to - 1) : 0;
  return a.scale > 0 ? 1 / a.scale : static_cast<double>(a.from) / static_cast<double>(a.to);
}

/// Computes the weights of the four elements around a place that lies t after the second one (Keys, a = -0.75).
void cubic_weights(double t, double (&w)[ResampleTaps::kMost]) {
  constexpr double kA = -0.75;
  const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

/// The numbers of elements before and after an axis.
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
  /// Computes one place: n consecutive elements.
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

/// Returns the factors of all axes, or none where sizes are given.
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

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family unfolding_family() {
  static constexpr const Primitive* list[] = {&structured<UnfoldWindows>, &structured<FoldWindows>,
                                              &structured<UnfoldAxis>, &structured<Resample>,
                                              &structured<ResampleGradient>};
  return list;
}

Family composite_window_family() {
  static constexpr const Primitive* list[] = {&composite<PadMode>, &composite<PixelShuffle>, &composite<PixelUnshuffle>,
                                              &composite<ChannelShuffle>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
