#pragma once
/// Operations of one tensor by their names in the fixtures of operations.
#include <functional>
#include <map>
#include <string>

#include "ferrite/tensor/ops.h"

namespace golden {

using Function = std::function<ferrite::Tensor(const ferrite::Tensors&)>;
using Functions = std::map<std::string, Function>;

/// Returns a table of functions with those of one tensor added.
inline Functions with_unary(Functions table) {
  using namespace ferrite;
  using In = const Tensors&;
  table.merge(Functions{
      {"abs", [](In x) { return abs(x[0]); }},
      {"sign", [](In x) { return sign(x[0]); }},
      {"square", [](In x) { return square(x[0]); }},
      {"neg", [](In x) { return -x[0]; }},
      {"sqrt", [](In x) { return sqrt(x[0]); }},
      {"rsqrt", [](In x) { return rsqrt(x[0]); }},
      {"reciprocal", [](In x) { return reciprocal(x[0]); }},
      {"exp", [](In x) { return exp(x[0]); }},
      {"exp2", [](In x) { return exp2(x[0]); }},
      {"expm1", [](In x) { return expm1(x[0]); }},
      {"log", [](In x) { return log(x[0]); }},
      {"log1p", [](In x) { return log1p(x[0]); }},
      {"log2", [](In x) { return log2(x[0]); }},
      {"sin", [](In x) { return sin(x[0]); }},
      {"cos", [](In x) { return cos(x[0]); }},
      {"tanh", [](In x) { return tanh(x[0]); }},
      {"sigmoid", [](In x) { return sigmoid(x[0]); }},
      {"relu", [](In x) { return relu(x[0]); }},
      {"erf", [](In x) { return erf(x[0]); }},
      {"gelu", [](In x) { return gelu(x[0]); }},
      {"gelu_tanh", [](In x) { return gelu(x[0], GeluForm::tanh); }},
      {"softplus", [](In x) { return softplus(x[0]); }},
      {"silu", [](In x) { return silu(x[0]); }},
      {"log_sigmoid", [](In x) { return log_sigmoid(x[0]); }},
  });
  return table;
}

}  // namespace golden
