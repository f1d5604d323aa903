/// The public convolutions: options resolved, and what does not fit refused.
#include "ferrite/tensor/convolution.h"

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/convolution_records.h"
#include "ferrite/tensor/ops/detail/space_options.h"

namespace ferrite {
namespace detail {
namespace {

void check_groups(std::string_view where, std::int64_t groups, std::int64_t in, std::int64_t out) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw ValueError(std::string(where) + ": groups must divide both numbers of channels, got " +
                     std::to_string(groups) + " groups of " + std::to_string(in) + " to " + std::to_string(out));
}

/// x with a batch axis, and whether it was added.
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

/// What stands before and after each axis.
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
