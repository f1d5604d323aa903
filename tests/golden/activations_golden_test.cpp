// Activation functions compared with PyTorch 2.13: values, gradients (also at kinks) and second derivatives.
#include "ferrite/tensor/activations.h"

#include "golden/elementwise_cases.h"

using namespace ferrite;

namespace {

using In = const Tensors&;

/// Returns the cases of functions of one tensor: at random points, at kinks and far out.
golden::Functions with_ends(const golden::Functions& table) {
  golden::Functions all = table;
  for (const auto& [name, f] : table) {
    all[name + "_kinks"] = f;
    if (name != "mish" && name != "hardswish") all[name + "_far"] = f;
  }
  return all;
}

golden::Functions functions() {
  golden::Functions table = with_ends({
      {"leaky_relu", [](In x) { return leaky_relu(x[0]); }},
      {"leaky_relu_slope", [](In x) { return leaky_relu(x[0], -0.3); }},
      {"elu", [](In x) { return elu(x[0]); }},
      {"elu_alpha", [](In x) { return elu(x[0], 0.7); }},
      {"selu", [](In x) { return selu(x[0]); }},
      {"celu", [](In x) { return celu(x[0]); }},
      {"celu_alpha", [](In x) { return celu(x[0], 0.5); }},
      {"rrelu", [](In x) { return rrelu(x[0]); }},
      {"hardtanh", [](In x) { return hardtanh(x[0]); }},
      {"hardtanh_bounds", [](In x) { return hardtanh(x[0], -0.5, 3); }},
      {"relu6", [](In x) { return relu6(x[0]); }},
      {"hardsigmoid", [](In x) { return hardsigmoid(x[0]); }},
      {"hardswish", [](In x) { return hardswish(x[0]); }},
      {"mish", [](In x) { return mish(x[0]); }},
      {"softshrink", [](In x) { return softshrink(x[0]); }},
      {"softshrink_lambda", [](In x) { return softshrink(x[0], 1); }},
      {"hardshrink", [](In x) { return hardshrink(x[0]); }},
      {"hardshrink_lambda", [](In x) { return hardshrink(x[0], 1); }},
      {"tanhshrink", [](In x) { return tanhshrink(x[0]); }},
      {"threshold", [](In x) { return threshold(x[0], 0.5, -3); }},
  });
  table.merge(golden::Functions{
      {"softmin", [](In x) { return softmin(x[0]); }},
      {"softmin_axis0", [](In x) { return softmin(x[0], 0); }},
      {"glu", [](In x) { return glu(x[0]); }},
      {"glu_axis0", [](In x) { return glu(x[0], 0); }},
      {"prelu", [](In x) { return prelu(x[0], x[1]); }},
      {"prelu_one", [](In x) { return prelu(x[0], x[1]); }},
      {"prelu_vector", [](In x) { return prelu(x[0], x[1]); }},
      {"prelu_matrix", [](In x) { return prelu(x[0], x[1]); }},
  });
  return table;
}

const bool registered = golden::register_cases("elementwise.safetensors", "activations", functions());

}  // namespace
