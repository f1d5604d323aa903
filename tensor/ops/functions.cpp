/// Functions of one number: roots, exponentials, logarithms, trigonometry, activations.
#include <numbers>

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/cheap.h"

namespace ferrite {
namespace detail {
namespace {

struct Sqrt : functors::Sqrt {
  static constexpr auto name = "sqrt", onnx = "Sqrt", stablehlo = "sqrt";
  static constexpr auto summary = "sqrt(x), correctly rounded; infinite slope at 0";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return 0.5 * v.grad / v.out; });
  }
};

struct Rsqrt : functors::Rsqrt {
  static constexpr auto name = "rsqrt", onnx = "", stablehlo = "rsqrt";
  static constexpr auto summary = "1 / sqrt(x)";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -0.5 * v.grad * (v.out * v.out * v.out); });
  }
};

struct Reciprocal : functors::Reciprocal {
  static constexpr auto name = "reciprocal", onnx = "Reciprocal", stablehlo = "";
  static constexpr auto summary = "1 / x";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -v.grad * (v.out * v.out); });
  }
};

struct Exp : functors::Exp {
  static constexpr auto name = "exp", onnx = "Exp", stablehlo = "exponential";
  static constexpr auto summary = "e^x; 0 at -inf";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * v.out; });
  }
};

struct Exp2 : functors::Exp2 {
  static constexpr auto name = "exp2", onnx = "", stablehlo = "";
  static constexpr auto summary = "2^x";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (v.out * std::numbers::ln2); });
  }
};

struct Expm1 : functors::Expm1 {
  static constexpr auto name = "expm1", onnx = "", stablehlo = "exponential_minus_one";
  static constexpr auto summary = "e^x - 1, accurate near 0";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (v.out + 1); });
  }
};

struct Log : functors::Log {
  static constexpr auto name = "log", onnx = "Log", stablehlo = "log";
  static constexpr auto summary = "ln(x); -inf at 0, NaN below";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad / v.a; });
  }
};

struct Log1p : functors::Log1p {
  static constexpr auto name = "log1p", onnx = "", stablehlo = "log_plus_one";
  static constexpr auto summary = "ln(1 + x), accurate near 0";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad / (v.a + 1); });
  }
};

struct Log2 : functors::Log2 {
  static constexpr auto name = "log2", onnx = "", stablehlo = "";
  static constexpr auto summary = "log to base 2";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad / (v.a * std::numbers::ln2); });
  }
};

struct Sin : functors::Sin {
  static constexpr auto name = "sin", onnx = "Sin", stablehlo = "sine";
  static constexpr auto summary = "sin(x), radians";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * cos(v.a.tensor()); });
  }
};

struct Cos : functors::Cos {
  static constexpr auto name = "cos", onnx = "Cos", stablehlo = "cosine";
  static constexpr auto summary = "cos(x), radians";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -v.grad * sin(v.a.tensor()); });
  }
};

/// The gradient of tanh as one operation: composed, it would cost three times as much on small tensors.
struct TanhGrad : functors::TanhGrad {
  static constexpr auto name = "tanh_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "g (1 - y^2): what a cotangent g becomes through y = tanh(x)";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) { return {in[0] * (1 - in[1] * in[1])}; }
  static Tensors vjp(const PointwiseVjp& v);
};

/// The gradient of sigmoid as one operation.
struct SigmoidGrad : functors::SigmoidGrad {
  static constexpr auto name = "sigmoid_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "g y (1 - y): what a cotangent g becomes through y = sigmoid(x)";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) { return {in[0] * (in[1] * (1 - in[1]))}; }
  static Tensors vjp(const PointwiseVjp& v);
};

Tensor tanh_grad(const Tensor& g, const Tensor& y) { return call(pointwise<TanhGrad>, {{&g, &y}}); }
Tensor sigmoid_grad(const Tensor& g, const Tensor& y) { return call(pointwise<SigmoidGrad>, {{&g, &y}}); }

Tensors TanhGrad::vjp(const PointwiseVjp& v) {
  return v.wanted([&] { return tanh_grad(v.grad, v.b.tensor()); }, [&] { return -2 * (v.grad * v.a * v.b); });
}
Tensors SigmoidGrad::vjp(const PointwiseVjp& v) {
  return v.wanted([&] { return sigmoid_grad(v.grad, v.b.tensor()); }, [&] { return v.grad * v.a * (1 - 2 * v.b); });
}

struct Tanh : functors::Tanh {
  static constexpr auto name = "tanh", onnx = "Tanh", stablehlo = "tanh";
  static constexpr auto summary = "hyperbolic tangent";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return tanh_grad(v.grad, v.out); });
  }
};

/// 1 / (1 + e^-x). Saturates at both ends without overflow.
struct Sigmoid : functors::Sigmoid {
  static constexpr auto name = "sigmoid", onnx = "Sigmoid", stablehlo = "logistic";
  static constexpr auto summary = "1 / (1 + e^-x)";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return sigmoid_grad(v.grad, v.out); });
  }
};

struct Erf : functors::Erf {
  static constexpr auto name = "erf", onnx = "Erf", stablehlo = "";
  static constexpr auto summary = "2 / sqrt(pi) times the integral of e^-t^2 from 0 to x";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (2 * std::numbers::inv_sqrtpi * exp(-square(v.a.tensor()))); });
  }
};

/// x Phi(x) = x erfc(-x / sqrt 2) / 2: no cancellation on the negative side.
struct Gelu : functors::Gelu {
  static constexpr auto name = "gelu", onnx = "", stablehlo = "";
  static constexpr auto summary = "x Phi(x), Phi the normal distribution function (arXiv 1606.08415)";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {gelu_grad(v.grad, v.a.tensor())}; }
};

/// max(x, 0) + log1p(e^-|x|).
struct Softplus : functors::Softplus {
  static constexpr auto name = "softplus", onnx = "Softplus", stablehlo = "";
  static constexpr auto summary = "ln(1 + e^x), without overflow";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return softplus_grad(v.grad, v.a.tensor()); });
  }
};

struct Softsign : functors::Softsign {
  static constexpr auto name = "softsign", onnx = "Softsign", stablehlo = "";
  static constexpr auto summary = "x / (1 + |x|); the second derivative jumps at 0";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) { return {in[0] / (1 + abs(in[0]))}; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return softsign_grad(v.grad, v.a.tensor()); });
  }
};

}  // namespace

namespace ops {
constinit const Primitive* const relu = &pointwise<Relu>;
}  // namespace ops

Family functions_family() {
  static constexpr const Primitive* list[] = {
      &pointwise<Sqrt>,  &pointwise<Rsqrt>, &pointwise<Reciprocal>, &pointwise<Exp>,         &pointwise<Exp2>,
      &pointwise<Expm1>, &pointwise<Log>,   &pointwise<Log1p>,      &pointwise<Log2>,        &pointwise<Sin>,
      &pointwise<Cos>,   &pointwise<Tanh>,  &pointwise<TanhGrad>,   &pointwise<SigmoidGrad>, &pointwise<Sigmoid>,
      &pointwise<Relu>,  &pointwise<Erf>,   &pointwise<Gelu>,       &pointwise<Softplus>,    &pointwise<Softsign>};
  return list;
}

const Primitive* elementwise_operation(std::string_view name) {
  for (const Family& family : {activation_family(), functions_family(), arithmetic_family()})
    for (const Primitive* const op : family)
      if (op->name == name) return op;
  return nullptr;
}

Tensor gelu_exact(const Tensor& x) { return pointwise_call<Gelu>(x); }

}  // namespace detail

Tensor softsign(const Tensor& x) { return detail::pointwise_call<detail::Softsign>(x); }
Tensor sqrt(const Tensor& x) { return detail::pointwise_call<detail::Sqrt>(x); }
Tensor rsqrt(const Tensor& x) { return detail::pointwise_call<detail::Rsqrt>(x); }
Tensor reciprocal(const Tensor& x) { return detail::pointwise_call<detail::Reciprocal>(x); }
Tensor exp(const Tensor& x) { return detail::pointwise_call<detail::Exp>(x); }
Tensor exp2(const Tensor& x) { return detail::pointwise_call<detail::Exp2>(x); }
Tensor expm1(const Tensor& x) { return detail::pointwise_call<detail::Expm1>(x); }
Tensor log(const Tensor& x) { return detail::pointwise_call<detail::Log>(x); }
Tensor log1p(const Tensor& x) { return detail::pointwise_call<detail::Log1p>(x); }
Tensor log2(const Tensor& x) { return detail::pointwise_call<detail::Log2>(x); }
Tensor sin(const Tensor& x) { return detail::pointwise_call<detail::Sin>(x); }
Tensor cos(const Tensor& x) { return detail::pointwise_call<detail::Cos>(x); }
Tensor tanh(const Tensor& x) { return detail::pointwise_call<detail::Tanh>(x); }
Tensor sigmoid(const Tensor& x) { return detail::pointwise_call<detail::Sigmoid>(x); }
Tensor relu(const Tensor& x) { return detail::pointwise_call<detail::Relu>(x); }
Tensor erf(const Tensor& x) { return detail::pointwise_call<detail::Erf>(x); }
Tensor softplus(const Tensor& x) { return detail::pointwise_call<detail::Softplus>(x); }

}  // namespace ferrite
