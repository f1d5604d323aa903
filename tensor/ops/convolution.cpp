/// The operations of a convolution: forward, transposed, and the gradient of the weights.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/convolution_records.h"
#include "ferrite/tensor/ops/detail/convolution_run.h"

namespace ferrite {
namespace detail {
namespace {

/// The extents of a tensor on the axes of space.
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

/// Axes of space are the last ones of three.
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

/// The gradient of a bias: sums over images and positions.
/// Linear in the first operand, and in weights and bias together: f is the operation.
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

}  // namespace detail
}  // namespace ferrite
