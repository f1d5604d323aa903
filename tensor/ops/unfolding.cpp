/// Windows as an axis: views of one axis, patches as columns, and columns added up where they come from.
#include <algorithm>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/pooling_records.h"
#include "ferrite/tensor/ops/detail/space_options.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/windows.h"

namespace ferrite {
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

/// The axes of space as the last ones of three, others with one element.
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
  /// row(place of the first column of a row, first window that has its element, windows, the element of that one) for
  /// every tap and row of windows; none for rows that lie outside.
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
  /// As columns of one channel: [other axes, elements of a window, windows].
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

Family unfolding_family() {
  static constexpr const Primitive* list[] = {&structured<UnfoldWindows>, &structured<FoldWindows>,
                                              &structured<UnfoldAxis>};
  return list;
}

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

}  // namespace ferrite
