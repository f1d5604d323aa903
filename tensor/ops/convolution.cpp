/// Convolutions: the operations, each of which is a gradient of the others, and the public functions.
#include "ferrite/tensor/convolution.h"

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/convolution.h"
#include "ferrite/tensor/ops/detail/windows.h"

namespace ferrite {

// ---- operations: forward, transposed, and the gradient of the weights -------------------------------------

namespace detail {
namespace {

/// Returns the extents of a tensor on the spatial axes.
Shape space(const Shape& s) {
  Shape out;
  for (int i = 2; i < s.rank(); ++i) out.push_back(s[i]);
  return out;
}
Shape joined(std::int64_t a, std::int64_t b, const Shape& rest) {
  Shape s{a, b};
  for (const std::int64_t e : rest) s.push_back(e);
  return s;
}

/// Returns the geometry of a convolution; spatial axes are the last ones of three.
WindowGeometry geometry(const Shape& large, const Shape& small, const Shape& kernel, const ConvolutionAttrs& a) {
  WindowGeometry g;
  const int rank = large.rank();
  for (int i = 0; i < rank; ++i)
    g.axis[3 - rank + i] = {large[i], small[i], kernel[i], a.stride[i], a.before[i], a.dilation[i]};
  return g;
}

void check_operands(std::string_view where, Inputs in, const ConvolutionAttrs& a) {
  const int rank = in[0].rank() - 2;
  if (rank < 1 || rank > 3 || in[1].rank() != in[0].rank())
    throw_shape(where,
                "expects two operands of rank 3, 4 or 5: " + in[0].shape().str() + " and " + in[1].shape().str());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_float(in[i].dtype()))
      throw_dtype(where, "dtype " + std::string(name_of(in[i].dtype())) + " is not supported; cast to a float");
    if (in[i].dtype() != in[0].dtype())
      throw_dtype(where, "dtypes differ: " + in[0].spec().str() + " and " + in[i].spec().str() + "; cast one of them");
  }
  for (const Shape* s : {&a.stride, &a.before, &a.dilation, &a.size})
    if (s->rank() != rank)
      throw_shape(where,
                  "its constants need one number for each axis of space: " + s->str() + " for " + in[0].shape().str());
  for (int i = 0; i < rank; ++i)
    if (a.stride[i] < 1 || a.dilation[i] < 1 || a.size[i] < 0)
      throw ValueError(std::string(where) + ": strides and dilations must be positive: " + a.stride.str() + " and " +
                       a.dilation.str());
  if (a.groups < 1) throw ValueError(std::string(where) + ": groups must be positive: " + std::to_string(a.groups));
}

void check_bias(std::string_view where, Inputs in, std::int64_t channels) {
  if (in.size() > 2 && in[2].shape() != Shape{channels})
    throw_shape(where, "the bias needs one element for each channel of the result: " + in[2].shape().str() + " for " +
                           std::to_string(channels));
}

/// Returns the tangent of a convolution f, which is linear in the first operand, and in weights and bias together.
template <class F>
Tensors convolution_jvp(const Jvp& j, const ConvolutionAttrs& a, const F& f) {
  Tensor total;
  if (j.tangent(0).defined()) total = f(j.tangent(0), j.in(1), Tensor(), a);
  const bool bias = j.inputs() > 2 && j.tangent(2).defined();
  if (!j.tangent(1).defined() && !bias) return {total};
  const Tensor rest = f(j.in(0), j.tangent_or_zeros(1), bias ? j.tangent(2) : Tensor(), a);
  return {total.defined() ? total + rest : rest};
}

Tensor bias_gradient(const Tensor& grad) {
  Shape axes{0};
  for (int i = 2; i < grad.rank(); ++i) axes.push_back(i);
  return sum(grad, axes);
}

struct Convolution {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution", onnx = "Conv", stablehlo = "convolution";
  static constexpr TimeRule time = TimeRule::convolves;
  static constexpr auto summary = "x [N, C, ...] under weights [O, C / groups, ...], plus a bias: cross-correlation";
  static constexpr Reads reads{0b011, 0};

  static Specs infer(Inputs in, const Attributes& a) {
    check_operands(name, in, a);
    const Shape &x = in[0].shape(), &w = in[1].shape();
    if (x[1] % a.groups != 0 || w[0] % a.groups != 0 || w[1] != x[1] / a.groups)
      throw_shape(name, "weights " + w.str() + " in " + std::to_string(a.groups) + " groups do not fit " + x.str());
    check_bias(name, in, w[0]);
    return {{joined(x[0], w[0], a.size), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]), w(in[1]), bias(in.size() > 2 ? in[2] : in[1]);
    run_convolution(*x, *w, in.size() > 2 ? &*bias : nullptr, out[0],
                    geometry(space(in[0].shape()), a.size, space(in[1].shape()), a), a.groups);
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const Attributes&) {
    return in[1].shape[0] == 0 ? 0 : out[0].shape.numel() * (in[1].shape.numel() / in[1].shape[0]);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    Tensors g(v.inputs());
    Attributes back = a;
    if (v.wants(0)) {
      back.size = space(v.in_spec(0).shape);
      g[0] = convolution_transposed(v.grad(), v.in(1), {}, back);
    }
    if (v.wants(1)) {
      back.size = space(v.in_spec(1).shape);
      g[1] = convolution_weights(v.in(0), v.grad(), back);
    }
    if (v.inputs() > 2 && v.wants(2)) g[2] = bias_gradient(v.grad());
    return g;
  }
  static Tensors jvp(const Jvp& j, const Attributes& a) { return convolution_jvp(j, a, convolution); }
};

struct ConvolutionTransposed {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution_transposed", onnx = "ConvTranspose", stablehlo = "convolution";
  static constexpr TimeRule time = TimeRule::convolves_transposed;
  static constexpr auto summary = "the adjoint of convolution by x: y [N, O, ...] under the same weights, plus a bias";
  static constexpr Reads reads{0b011, 0};

  static Specs infer(Inputs in, const Attributes& a) {
    check_operands(name, in, a);
    const Shape &y = in[0].shape(), &w = in[1].shape();
    if (w[0] != y[1] || y[1] % a.groups != 0)
      throw_shape(name, "weights " + w.str() + " in " + std::to_string(a.groups) + " groups do not fit " + y.str());
    const std::int64_t channels = checked_mul(w[1], a.groups, name);
    check_bias(name, in, channels);
    return {{joined(y[0], channels, a.size), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor y(in[0]), w(in[1]), bias(in.size() > 2 ? in[2] : in[1]);
    run_transposed(*y, *w, in.size() > 2 ? &*bias : nullptr, out[0],
                   geometry(a.size, space(in[0].shape()), space(in[1].shape()), a), a.groups);
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    return in[1].shape[0] == 0 ? 0 : in[0].shape.numel() * (in[1].shape.numel() / in[1].shape[0]);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    Tensors g(v.inputs());
    Attributes back = a;
    if (v.wants(0)) {
      back.size = space(v.in_spec(0).shape);
      g[0] = convolution(v.grad(), v.in(1), {}, back);
    }
    if (v.wants(1)) {
      back.size = space(v.in_spec(1).shape);
      g[1] = convolution_weights(v.grad(), v.in(0), back);
    }
    if (v.inputs() > 2 && v.wants(2)) g[2] = bias_gradient(v.grad());
    return g;
  }
  static Tensors jvp(const Jvp& j, const Attributes& a) { return convolution_jvp(j, a, convolution_transposed); }
};

struct ConvolutionWeights {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution_weights", onnx = "", stablehlo = "convolution";
  static constexpr auto summary = "the gradient of convolution by its weights: sums of y times what each tap reads";
  static constexpr Linearity linearity = Linearity::in_each;
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& a) {
    check_operands(name, in, a);
    const Shape &x = in[0].shape(), &y = in[1].shape();
    if (x[0] != y[0] || x[1] % a.groups != 0 || y[1] % a.groups != 0)
      throw_shape(name, y.str() + " in " + std::to_string(a.groups) + " groups does not fit " + x.str());
    return {{joined(y[1], x[1] / a.groups, a.size), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]), y(in[1]);
    run_weight_gradient(*x, *y, out[0], geometry(space(in[0].shape()), space(in[1].shape()), a.size, a), a.groups);
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const Attributes&) {
    return in[1].shape[1] == 0 ? 0 : out[0].shape.numel() * (in[1].shape.numel() / in[1].shape[1]);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    Tensors g(2);
    Attributes back = a;
    if (v.wants(0)) {
      back.size = space(v.in_spec(0).shape);
      g[0] = convolution_transposed(v.in(1), v.grad(), {}, back);
    }
    if (v.wants(1)) {
      back.size = space(v.in_spec(1).shape);
      g[1] = convolution(v.in(0), v.grad(), {}, back);
    }
    return g;
  }
};

Tensor with_bias(const Primitive& op, const Tensor& a, const Tensor& b, const Tensor& bias, const Attrs& attrs) {
  if (!bias.defined()) return call(op, {{&a, &b}}, attrs);
  return call(op, {{&a, &b, &bias}}, attrs);
}

}  // namespace

Tensor convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs) {
  return with_bias(structured<Convolution>, x, w, bias, attrs);
}
Tensor convolution_transposed(const Tensor& y, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs) {
  return with_bias(structured<ConvolutionTransposed>, y, w, bias, attrs);
}
Tensor convolution_weights(const Tensor& x, const Tensor& y, const ConvolutionAttrs& attrs) {
  return call(structured<ConvolutionWeights>, {{&x, &y}}, attrs);
}

Family convolution_family() {
  static constexpr const Primitive* list[] = {&structured<Convolution>, &structured<ConvolutionTransposed>,
                                              &structured<ConvolutionWeights>};
  return list;
}

// ---- the public functions: they resolve options and refuse operands that do not fit ------------------------

namespace {

void check_groups(std::string_view where, std::int64_t groups, std::int64_t in, std::int64_t out) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw ValueError(std::string(where) + ": groups must divide both numbers of channels, got " +
                     std::to_string(groups) + " groups of " + std::to_string(in) + " to " + std::to_string(out));
}

/// Returns x with a batch axis; `alone` says whether it was added.
Tensor batched(std::string_view where, const Tensor& x, const Tensor& weight, int axes, bool& alone) {
  alone = x.rank() == axes + 1;
  if (!alone && x.rank() != axes + 2)
    throw_shape(where, "expects rank " + std::to_string(axes + 2) + ", or " + std::to_string(axes + 1) +
                           " without a batch, got " + x.shape().str());
  if (weight.rank() != axes + 2)
    throw_shape(where, "the weight needs rank " + std::to_string(axes + 2) + ", got " + weight.shape().str());
  for (int i = 2; i < weight.rank(); ++i)
    if (weight.shape()[i] == 0) throw_shape(where, "the kernel has no elements: " + weight.shape().str());
  return alone ? unsqueeze(x, 0) : x;
}

void check_dtypes(std::string_view where, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
  for (const Tensor* other : {&weight, &bias})
    if (other->defined() && other->dtype() != x.dtype())
      throw_dtype(where, "dtypes differ: " + x.spec().str() + " and " + other->spec().str() + "; cast one of them");
}

void check_bias(std::string_view where, const Tensor& bias, std::int64_t channels) {
  if (bias.defined() && bias.shape() != Shape{channels})
    throw_shape(where, "the bias needs " + std::to_string(channels) + " elements, got " + bias.shape().str());
}

/// The amounts of padding before and after each axis.
struct Amounts {
  Shape before, after;
};
Amounts amounts(std::string_view where, const ConvolutionOptions& o, const Shape& kernel, const Shape& stride,
                const Shape& dilation) {
  const int axes = kernel.rank();
  if (o.padding.rule == ConvolutionPadding::numbers) {
    const Shape all = space_numbers(where, "padding", o.padding.amounts, Shape::filled(axes, 0), 0);
    return {all, all};
  }
  Amounts a{Shape::filled(axes, 0), Shape::filled(axes, 0)};
  if (o.padding.rule == ConvolutionPadding::valid) return a;
  const bool causal = o.padding.rule == ConvolutionPadding::causal;
  for (int i = 0; i < axes; ++i) {
    if (stride[i] != 1 && !causal)
      throw ValueError(std::string(where) + ": padding `same` takes strides of 1, got " + stride.str());
    const std::int64_t all = checked_mul(kernel[i] - 1, dilation[i], where);
    a.before[i] = causal ? all : all / 2;
    a.after[i] = all - a.before[i];
  }
  return a;
}

Tensor conv(std::string_view where, int axes, const Tensor& x, const Tensor& weight, const Tensor& bias,
            const ConvolutionOptions& o) {
  bool alone = false;
  check_dtypes(where, x, weight, bias);
  Tensor images = batched(where, x, weight, axes, alone);
  const Shape stride = space_numbers(where, "stride", o.stride, Shape::filled(axes, 1), 1);
  const Shape dilation = space_numbers(where, "dilation", o.dilation, Shape::filled(axes, 1), 1);
  const Shape& w = weight.shape();
  check_groups(where, o.groups, images.shape()[1], w[0]);
  if (w[1] != images.shape()[1] / o.groups)
    throw_shape(where, "weight " + w.str() + " in " + std::to_string(o.groups) + " groups takes " +
                           std::to_string(w[1] * o.groups) + " channels, got " + x.shape().str());
  check_bias(where, bias, w[0]);
  Shape kernel;
  for (int i = 0; i < axes; ++i) kernel.push_back(w[i + 2]);
  Amounts around = amounts(where, o, kernel, stride, dilation);
  Shape size;
  for (int i = 0; i < axes; ++i) {
    const std::int64_t reach = checked_add(checked_mul(kernel[i] - 1, dilation[i], where), 1, where);
    const std::int64_t n =
        checked_add(checked_add(images.shape()[i + 2], around.before[i], where), around.after[i], where);
    if (n < reach)
      throw_shape(where, "the kernel reaches over " + std::to_string(reach) + " elements of axis " +
                             std::to_string(x.rank() - axes + i) + ", which has " + std::to_string(n) +
                             " with its padding: " + x.shape().str());
    size.push_back((n - reach) / stride[i] + 1);
  }
  if (o.padding_mode != PaddingMode::zeros) {
    const Shape none{0, 0};
    Shape before = none, after = none;
    for (int i = 0; i < axes; ++i) {
      before.push_back(around.before[i]);
      after.push_back(around.after[i]);
    }
    images = pad(images, before, after, o.padding_mode);
    around.before = Shape::filled(axes, 0);
  }
  const Tensor y = convolution(images, weight, bias, {stride, around.before, dilation, size, o.groups});
  return alone ? squeeze(y, 0) : y;
}

Tensor transposed(std::string_view where, int axes, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const TransposedOptions& o) {
  bool alone = false;
  check_dtypes(where, x, weight, bias);
  const Tensor images = batched(where, x, weight, axes, alone);
  const Shape stride = space_numbers(where, "stride", o.stride, Shape::filled(axes, 1), 1);
  const Shape dilation = space_numbers(where, "dilation", o.dilation, Shape::filled(axes, 1), 1);
  const Shape padding = space_numbers(where, "padding", o.padding, Shape::filled(axes, 0), 0);
  const Shape more = space_numbers(where, "output_padding", o.output_padding, Shape::filled(axes, 0), 0);
  const Shape& w = weight.shape();
  if (w[0] != images.shape()[1])
    throw_shape(where, "weight " + w.str() + " takes " + std::to_string(w[0]) + " channels, got " + x.shape().str());
  if (o.groups < 1 || w[0] % o.groups != 0)
    throw ValueError(std::string(where) + ": groups must divide the number of channels, got " +
                     std::to_string(o.groups) + " groups of " + std::to_string(w[0]));
  check_bias(where, bias, checked_mul(w[1], o.groups, where));
  Shape size;
  for (int i = 0; i < axes; ++i) {
    if (more[i] >= stride[i] && more[i] >= dilation[i])
      throw ValueError(std::string(where) + ": output_padding must be less than the stride or than the dilation, got " +
                       more.str() + " with " + stride.str() + " and " + dilation.str());
    const std::int64_t reach = checked_mul(w[i + 2] - 1, dilation[i], where);
    const std::int64_t far = checked_mul(images.shape()[i + 2] - 1, stride[i], where);
    const std::int64_t n = checked_sub(checked_add(checked_add(far, reach, where), more[i] + 1, where),
                                       checked_mul(padding[i], 2, where), where);
    if (n < 1 || images.shape()[i + 2] < 1)
      throw_shape(where, "nothing is left of axis " + std::to_string(x.rank() - axes + i) + ": " + x.shape().str() +
                             " with padding " + padding.str());
    size.push_back(n);
  }
  const Tensor y = convolution_transposed(images, weight, bias, {stride, padding, dilation, size, o.groups});
  return alone ? squeeze(y, 0) : y;
}

}  // namespace

}  // namespace detail

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvolutionOptions& options) {
  return detail::conv("conv1d", 1, x, weight, bias, options);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvolutionOptions& options) {
  return detail::conv("conv2d", 2, x, weight, bias, options);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvolutionOptions& options) {
  return detail::conv("conv3d", 3, x, weight, bias, options);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const TransposedOptions& options) {
  return detail::transposed("conv_transpose1d", 1, x, weight, bias, options);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const TransposedOptions& options) {
  return detail::transposed("conv_transpose2d", 2, x, weight, bias, options);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const TransposedOptions& options) {
  return detail::transposed("conv_transpose3d", 3, x, weight, bias, options);
}

}  // namespace ferrite
