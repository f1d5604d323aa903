#pragma once
/// Operations that cost less than the memory they read: their records are made in their families' files; here they are
/// seen together, so that chains of them can be run in registers (chain.h).
#include <cmath>

#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

struct Add {
  static constexpr auto name = "add", onnx = "Add", stablehlo = "add";
  static constexpr auto summary = "a + b";
  static constexpr std::size_t arity = 2;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static auto f(const auto& a, const auto& b) { return a + b; }
  static double scalar(double a, double b) { return a + b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return v.grad; });
  }
};

struct Sub {
  static constexpr auto name = "sub", onnx = "Sub", stablehlo = "subtract";
  static constexpr auto summary = "a - b";
  static constexpr std::size_t arity = 2;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static auto f(const auto& a, const auto& b) { return a - b; }
  static double scalar(double a, double b) { return a - b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad; });
  }
};

struct Mul {
  static constexpr auto name = "mul", onnx = "Mul", stablehlo = "multiply";
  static constexpr auto summary = "a b";
  static constexpr std::size_t arity = 2;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static constexpr Reads reads = reads_inputs;
  static auto f(const auto& a, const auto& b) { return a * b; }
  static double scalar(double a, double b) { return a * b; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * v.b; }, [&] { return v.grad * v.a; });
  }
};

struct Neg {
  static constexpr auto name = "neg", onnx = "Neg", stablehlo = "negate";
  static constexpr auto summary = "-x";
  static constexpr std::size_t arity = 1;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static auto f(const auto& x) { return -x; }
  static double scalar(double x) { return -x; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return -v.grad; });
  }
};

struct Square {
  static constexpr auto name = "square", onnx = "", stablehlo = "";
  static constexpr auto summary = "x^2";
  static constexpr std::size_t arity = 1;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static constexpr Reads reads = reads_inputs;
  static auto f(const auto& x) { return x * x; }
  static double scalar(double x) { return x * x; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return 2 * (v.grad * v.a); });
  }
};

struct Relu {
  static constexpr auto name = "relu", onnx = "Relu", stablehlo = "";
  static constexpr auto summary = "max(x, 0); NaN stays; gradient 0 at 0";
  static constexpr std::size_t arity = 1;
  static constexpr auto types = Types::numeric;
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_outputs;
  /// In packets the machine's own maximum, which keeps a NaN that is its first operand; the sum makes 0 of -0.
  static auto f(const auto& x) {
    using V = std::remove_cvref_t<decltype(x)>;
    if constexpr (requires { x.raw; }) {
      return V(ei::pmax(x.raw, V(0).raw)) + V(0);
    } else {
      return max(x, V(0));
    }
  }
  static double scalar(double x) { return x > 0 ? x : std::isnan(x) ? x : 0; }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return where(gt(v.out, 0), v.grad, 0); });
  }
};

}  // namespace ferrite::detail
