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

/// f(channel of the large side, channel of the small side, position of the large side, position of the small side,
/// index of the weight) for everything that meets in one image.
template <class F>
void each_meeting(const Shape& large, const Shape& small, const Shape& kernel, const ConvolutionAttrs& a, const F& f) {
  const std::int64_t inner = large[1] / a.groups, outer = small[1] / a.groups;
  for_each_index(small, [&](const Shape& to) {
    for_each_index(joined(1, inner, kernel), [&](const Shape& k) {
      Shape from{to[0], to[1] / outer * inner + k[1]};
      Shape weight{to[1], k[1]};
      for (int i = 2; i < to.rank(); ++i) {
        const std::int64_t at = to[i] * a.stride[i - 2] + k[i] * a.dilation[i - 2] - a.before[i - 2];
        if (at < 0 || at >= large[i]) return;
        from.push_back(at);
        weight.push_back(k[i]);
      }
      f(from, to, weight);
    });
  });
}

void add_bias(std::span<const Dense> in, Dense& out) {
  if (in.size() > 2) for_each_index(out.shape, [&](const Shape& at) { out.at(at) += in[2].at({at[1]}); });
}

struct Convolution {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution", onnx = "Conv", stablehlo = "convolution";
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        in[0].shape, out[0].shape, space(in[1].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(to) += in[0].at(from) * in[1].at(w); });
    add_bias(in, out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}, {{4, 3, 3}}, {{4}}}, .attrs = Attributes{{1}, {1}, {1}, {9}}},
            {.inputs = {{{1, 4, 11}}, {{6, 2, 3}}}, .attrs = Attributes{{2}, {2}, {2}, {6}, 2}},
            {.inputs = {{{2, 2, 5, 6}}, {{3, 2, 3, 2}}, {{3}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {5, 2}}},
            {.inputs = {{{1, 3, 7, 7}}, {{3, 1, 3, 3}}}, .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {7, 7}, 3}},
            {.inputs = {{{1, 2, 4, 3, 5}}, {{2, 2, 2, 1, 3}}, {{2}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {2, 5, 5}}},
            {.inputs = {{{1, 30, 20}}, {{9, 30, 9}}}, .attrs = Attributes{{1}, {-1}, {1}, {10}}, .range = {-1, 1}},
            {.inputs = {{{2, 3, 4}}, {{2, 3, 2}}}, .attrs = Attributes{{3}, {0}, {1}, {2}}},
            {.inputs = {{{0, 2, 4}}, {{3, 2, 2}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}},
            {.inputs = {{{1, 0, 4}}, {{3, 0, 2}}, {{3}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}}};
  }
};

struct ConvolutionTransposed {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution_transposed", onnx = "ConvTranspose", stablehlo = "convolution";
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        out[0].shape, in[0].shape, space(in[1].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(from) += in[0].at(to) * in[1].at(w); });
    add_bias(in, out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 4, 9}}, {{4, 3, 3}}, {{3}}}, .attrs = Attributes{{1}, {1}, {1}, {9}}},
            {.inputs = {{{1, 6, 6}}, {{6, 2, 3}}, {{4}}}, .attrs = Attributes{{2}, {2}, {2}, {11}, 2}},
            {.inputs = {{{2, 3, 5, 2}}, {{3, 2, 3, 2}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {5, 6}}},
            {.inputs = {{{1, 3, 7, 7}}, {{3, 1, 3, 3}}}, .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {7, 7}, 3}},
            {.inputs = {{{1, 2, 2, 5, 5}}, {{2, 2, 2, 1, 3}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {4, 3, 5}}},
            {.inputs = {{{1, 1, 3}}, {{1, 2, 2}}, {{2}}}, .attrs = Attributes{{4}, {1}, {1}, {13}}},
            {.inputs = {{{1, 2, 0}}, {{2, 1, 2}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}}};
  }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        in[0].shape, in[1].shape, space(out[0].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(w) += in[0].at(from) * in[1].at(to); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}, {{2, 4, 9}}}, .attrs = Attributes{{1}, {1}, {1}, {3}}},
            {.inputs = {{{1, 4, 11}}, {{1, 6, 6}}}, .attrs = Attributes{{2}, {2}, {2}, {3}, 2}},
            {.inputs = {{{2, 2, 5, 6}}, {{2, 9, 5, 2}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {3, 2}}},
            {.inputs = {{{2, 3, 4, 20}}, {{2, 3, 4, 20}}},
             .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {3, 3}, 3},
             .range = {-1, 1}},
            {.inputs = {{{1, 2, 4, 3, 5}}, {{1, 2, 2, 5, 5}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {2, 1, 3}}},
            {.inputs = {{{0, 2, 4}}, {{0, 3, 3}}}, .attrs = Attributes{{1}, {0}, {1}, {2}}}};
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
