#pragma once
// Operations that a program defines, one of each kind: docs/own-operations.md. The conformance suite tests them like
// those of the library.
#include <ferrite/ferrite.h>
#include <ferrite/tensor/define.h>

#include <cmath>

namespace own {

using ferrite::Inputs;
using ferrite::Specs;
using ferrite::Tensor;
using ferrite::Tensors;
namespace define = ferrite::define;

/// x / (1 + |x|): a function of one number.
struct Softsign {
  static constexpr auto name = "own_softsign", onnx = "Softsign", stablehlo = "";
  static constexpr auto summary = "x / (1 + |x|)";
  static constexpr std::size_t arity = 1;
  static constexpr define::Types types = define::Types::floats;
  static constexpr define::Range domain{-20, 20};
  static constexpr double kinks[] = {0};  // the second derivative jumps there
  static constexpr define::Reads reads = define::reads_inputs;

  template <class T>
  static T of(T x) {
    return x / (1 + std::abs(x));
  }
  static double scalar(double x) { return x / (1 + std::fabs(x)); }
  static Tensors vjp(const define::PointwiseVjp& v) { return {v.grad / square(1 + abs(v.a.tensor()))}; }
};
inline Tensor softsign(const Tensor& x) { return define::pointwise_call<Softsign>(x); }

/// Cumulative sums along the last axis: an operation with a loop and a constant.
struct Cumsum {
  struct Attributes {
    bool reverse = false;
    static constexpr auto fields = ferrite::attr_list(ferrite::attr("reverse", &Attributes::reverse));
  };
  static constexpr auto name = "own_cumsum", onnx = "", stablehlo = "";
  static constexpr auto summary = "y_i = x_0 + ... + x_i along the last axis, or from the end";

  static Specs infer(Inputs in, const Attributes&) {
    const ferrite::Spec x = in[0].spec();
    if (!is_float(x.dtype)) throw ferrite::DtypeError("own_cumsum: needs floats, got " + x.str());
    if (x.shape.rank() == 0) throw ferrite::ShapeError("own_cumsum: needs an axis, got " + x.str());
    return {x};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const Tensor x = define::dense(in[0]);
    if (x.dtype() == ferrite::Dtype::f32) {
      sum_rows<float>(x, out[0], a.reverse);
    } else {
      sum_rows<double>(x, out[0], a.reverse);
    }
  }
  static Tensors vjp(const ferrite::Vjp& v, const Attributes& a) {
    return {define::call(define::structured<Cumsum>, {{&v.grad()}}, Attributes{!a.reverse})};
  }
  static void oracle(std::span<const define::Dense> in, std::span<define::Dense> out, const Attributes& a) {
    define::for_each_index(in[0].shape, [&](const ferrite::Shape& i) {
      ferrite::Shape from = i;
      const int last = i.rank() - 1;
      const auto adds = [&] { return a.reverse ? from[last] >= i[last] : from[last] <= i[last]; };
      for (from[last] = 0; from[last] < in[0].shape[last]; ++from[last])
        if (adds()) out[0].at(i) += in[0].at(from);
    });
  }
  static std::vector<define::Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = Attributes{}},
            {.inputs = {{{2, 3, 4}}}, .attrs = Attributes{true}},
            {.inputs = {{{0, 3}}}, .attrs = Attributes{}}};
  }

 private:
  template <class T>
  static void sum_rows(const Tensor& x, Tensor& out, bool reverse) {
    const std::int64_t n = x.shape()[x.rank() - 1];
    const T* from = x.data<T>();
    T* to = define::Writer::data<T>(out);
    for (std::int64_t row = 0; n > 0 && row < x.numel() / n; ++row, from += n, to += n) {
      T total = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = reverse ? n - 1 - k : k;
        to[i] = total += from[i];
      }
    }
  }
};
inline Tensor cumsum(const Tensor& x, bool reverse = false) {
  return define::call(define::structured<Cumsum>, {{&x}}, Cumsum::Attributes{reverse});
}

/// The diagonal of a square matrix: a view, which shares the elements of its operand.
struct Diagonal {
  static constexpr auto name = "own_diagonal", onnx = "", stablehlo = "", summary = "the diagonal of a square matrix";

  static Specs infer(Inputs in, const ferrite::NoAttrs&) {
    const ferrite::Spec x = in[0].spec();
    if (x.shape.rank() != 2 || x.shape[0] != x.shape[1])
      throw ferrite::ShapeError("own_diagonal: needs a square matrix, got " + x.str());
    return {{{x.shape[0]}, x.dtype}};
  }
  static bool view(const Tensor& x, const ferrite::Spec&, define::Layout& layout) {
    layout.strides.push_back(x.strides()[0] + x.strides()[1]);
    return true;
  }
  static Tensors vjp(const ferrite::Vjp& v, const ferrite::NoAttrs&) {
    return {ferrite::eye(v.in_spec(0).shape[0], -1, v.in_spec(0).dtype) * unsqueeze(v.grad(), 1)};
  }
  static void oracle(std::span<const define::Dense> in, std::span<define::Dense> out, const ferrite::NoAttrs&) {
    for (std::int64_t i = 0; i < in[0].shape[0]; ++i) out[0].at({i}) = in[0].at({i, i});
  }
  static std::vector<define::Sample> samples() { return {{.inputs = {{{3, 3}}}}, {.inputs = {{{1, 1}}}}}; }
};
inline Tensor diagonal(const Tensor& x) { return define::call(define::structured<Diagonal>, {{&x}}); }

/// ln cosh(x) without overflow: a function composed of operations, with a record of facts.
struct LogCosh {
  static constexpr auto name = "own_log_cosh", onnx = "";
  static constexpr auto summary = "ln cosh(x)";

  static Tensor parts(Inputs in, const ferrite::NoAttrs&) {
    return abs(in[0]) + ferrite::softplus(-2.0 * abs(in[0])) - std::log(2.0);
  }
  static void oracle(std::span<const define::Dense> in, std::span<define::Dense> out, const ferrite::NoAttrs&) {
    for (std::size_t i = 0; i < out[0].values.size(); ++i) out[0].values[i] = std::log(std::cosh(in[0].values[i]));
  }
  static std::vector<define::Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .range = {-20, 20}, .smooth_at_ties = false}};  // |x| has no derivative at 0
  }
};
inline Tensor log_cosh(const Tensor& x) { return define::composed<LogCosh>({{&x}}); }

}  // namespace own
