// Learns how a tank's inflow follows its valve, and writes the net as C files for CasADi (mpc.py plans with them).
#include <cmath>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/freeze_casadi.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kRows = 64, kSteps = 60;
constexpr double kDt = 0.25;

/// Sequences of the valve and the level [B, T, 2], and the level's rate of change [B, T, 1].
struct Records {
  Tensor x, y;
};

/// Simulates the tank: the inflow follows the valve after a lag, the outflow grows with the level.
Records simulated(std::mt19937_64& random) {
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<float> x, y;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double level = any(random), inflow = 0, valve = 0;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      if (t % 5 == 0) valve = any(random);
      x.insert(x.end(), {static_cast<float>(valve), static_cast<float>(level)});
      inflow += kDt * (2 * std::tanh(1.5 * valve) - inflow) / 0.6;
      const double rate = inflow - 0.8 * std::sin(level) - 0.2 * inflow * level;
      y.push_back(static_cast<float>(rate));
      level = std::clamp(level + kDt * rate, -2.0, 2.0);
    }
  }
  return {Tensor::from(x, {kRows, kSteps, 2}), Tensor::from(y, {kRows, kSteps, 1})};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const auto net = dsl::sequence(2).gru(32, "gru").linear(1, "head").build(/*seed=*/0);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  std::mt19937_64 random(0);
  float last = 0;
  for (int step = 0; step < 400; ++step) {
    const auto [x, y] = simulated(random);
    Tape tape;
    const Tensor loss = nn::mse_loss(net(x), y);
    adam.step(nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1).grads);
    last = loss.item<float>();
  }
  std::cout << "mean squared error " << last << '\n';
  for (const auto& file : exchange::freeze_casadi(exchange::step_program(net, {.batch = 1, .width = 2}),
                                                  {.name = "gru_step", .command = "examples/freeze/tank.cpp"}))
    std::ofstream(folder + "/" + file.name) << file.text;
  io::save(net, folder + "/tank.safetensors");
  return last < 0.05F ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
