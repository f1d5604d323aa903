#pragma once
/// Operations that cost less than the memory they read. Their records are made in their families' files; here they are
/// visible together, so that chains of them can run in registers (chain.h).
#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace ferrite::detail {

struct Add : functors::Add {
  static constexpr auto name = "add", onnx = "Add", stablehlo = "add";
  static constexpr auto summary = "a + b";
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return v.grad; });
  }
};

struct Sub : functors::Sub {
  static constexpr auto name = "sub", onnx = "Sub", stablehlo = "subtract";
  static constexpr auto summary = "a - b";
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad; });
  }
};

struct Mul : functors::Mul {
  static constexpr auto name = "mul", onnx = "Mul", stablehlo = "multiply";
  static constexpr auto summary = "a b";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * v.b; }, [&] { return v.grad * v.a; });
  }
};

struct Neg : functors::Neg {
  static constexpr auto name = "neg", onnx = "Neg", stablehlo = "negate";
  static constexpr auto summary = "-x";
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -v.grad; });
  }
};

struct Square : functors::Square {
  static constexpr auto name = "square", onnx = "", stablehlo = "";
  static constexpr auto summary = "x^2";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return 2 * (v.grad * v.a); });
  }
};

struct Relu : functors::Relu {
  static constexpr auto name = "relu", onnx = "Relu", stablehlo = "";
  static constexpr auto summary = "max(x, 0); NaN stays; gradient 0 at 0";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return relu_grad(v.grad, v.out); });
  }
};

}  // namespace ferrite::detail
