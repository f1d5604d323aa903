// A net learns the motion of a damped oscillator from its equation alone: without data, but with the net's second
// derivative.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

// u'' + 2 d u' + w^2 u = 0 with u(0) = 1, u'(0) = 0, for 0 <= t <= 1.
constexpr double kDamping = 2, kFrequency = 20;

Tensor motion(const Tensor& t) {
  const double w = std::sqrt(kFrequency * kFrequency - kDamping * kDamping);
  return exp(-kDamping * t) * (cos(w * t) + (kDamping / w) * sin(w * t));
}

int main(int argc, char** argv) try {
  int rounds = 40;
  std::uint64_t seed = 0;
  CLI::App app("Solves the equation of a damped oscillator and fails where the net is off by more than 0.001");
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber), app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);

  const auto net =
      dsl::features(1).linear(24).activation("sin").linear(24).activation("sin").linear(1).build(seed, Dtype::f64);
  const Tensor t = reshape(linspace(0, 1, 101, Dtype::f64), {101, 1});
  // The conditions at t = 0 hold for every net.
  const auto solution = [&](const Tensor& time) { return 1 + square(time) * net(8 * time - 4) * 10; };

  const auto residual = compile([&](const Tensor& times) {
    Tape tape;
    const Tensor time = tape.watch(times), u = solution(time);
    const Tensor du = tape.grad(sum(u), {time}, {.create_graph = true})[0];
    const Tensor ddu = tape.grad(sum(du), {time}, {.create_graph = true})[0];
    const Tensor loss = mean(square((ddu + 2 * kDamping * du) / (kFrequency * kFrequency) + u));
    Tensors all = tape.grad(loss, net.parameters());
    all.push_back(loss);
    return all;
  });
  nn::Lbfgs lbfgs(net.parameters(),
                  {.most_iterations = 100, .gradient_tolerance = 1e-12, .change_tolerance = 0, .strong_wolfe = true});
  for (int round = 1; round <= rounds; ++round) {
    const double before = lbfgs.step([&] {
      Tensors grads = residual(t);
      const double loss = grads[grads.size() - 1].item<double>();
      grads.pop_back();
      return nn::LossAndGradients{loss, grads};
    });
    if (round % 10 == 1) std::cout << "round " << round << ": residual " << before << '\n';
  }
  const double error = amax(abs(solution(t) - motion(t))).item<double>();
  std::cout << "largest error against the closed form " << error << '\n';
  return error <= 1e-3 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "oscillator: " << e.what() << '\n';
  return 1;
}
