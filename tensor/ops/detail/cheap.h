#pragma once
/// Operations that cost less than the memory they read: their records are made in their families' files; here they are
/// seen together, so that chains of them can be run in registers (chain.h).
#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/activation_gradients.h"

namespace ferrite::detail {

struct Add : functors::Add {
  static constexpr auto name = "add", onnx = "Add", stablehlo = "add";
  static constexpr auto summary = "a + b";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return a + b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return v.grad; });
  }
};

struct Sub : functors::Sub {
  static constexpr auto name = "sub", onnx = "Sub", stablehlo = "subtract";
  static constexpr auto summary = "a - b";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return a - b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad; });
  }
};

struct Mul : functors::Mul {
  static constexpr auto name = "mul", onnx = "Mul", stablehlo = "multiply";
  static constexpr auto summary = "a b";
  static constexpr Range domain{-100, 100};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double a, double b) { return a * b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * v.b; }, [&] { return v.grad * v.a; });
  }
};

struct Neg : functors::Neg {
  static constexpr auto name = "neg", onnx = "Neg", stablehlo = "negate";
  static constexpr auto summary = "-x";
  static constexpr Range domain{-100, 100};
  static double scalar(double x) { return -x; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -v.grad; });
  }
};

struct Square : functors::Square {
  static constexpr auto name = "square", onnx = "", stablehlo = "";
  static constexpr auto summary = "x^2";
  static constexpr Range domain{-100, 100};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double x) { return x * x; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return 2 * (v.grad * v.a); });
  }
};

struct Relu : functors::Relu {
  static constexpr auto name = "relu", onnx = "Relu", stablehlo = "";
  static constexpr auto summary = "max(x, 0); NaN stays; gradient 0 at 0";
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_outputs;
  static double scalar(double x) { return x > 0 ? x : std::isnan(x) ? x : 0; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return relu_grad(v.grad, v.out); });
  }
};

}  // namespace ferrite::detail
