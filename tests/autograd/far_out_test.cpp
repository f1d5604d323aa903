// Activations and their derivatives of any order stay finite where exponentials overflow, as their limits are.
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "support/compare.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(far_out)

BOOST_AUTO_TEST_CASE(derivatives_of_activations_are_finite) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> functions{
      {"elu", [](const Tensor& x) { return elu(x, 1.5); }},
      {"celu", [](const Tensor& x) { return celu(x, 0.5); }},
      {"selu", [](const Tensor& x) { return selu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu by tanh", [](const Tensor& x) { return gelu(x, GeluForm::tanh); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& [name, f] : functions) {
      Tape tape;
      const Tensor x = tape.watch(cast(Tensor::from<double>({-1e4, -200, 200, 1e4}), dtype));
      Tensor derivative = f(x);
      for (int order = 1; order <= 3; ++order) {
        derivative = tape.grad(sum(square(derivative)), {x}, {.create_graph = true})[0];
        BOOST_TEST(all(isfinite(derivative)).item<bool>(), name << ", order " << order);
        if (derivative.tape_slot() == 0) break;  // no longer a function of x
        derivative = derivative * 1e-4;
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
