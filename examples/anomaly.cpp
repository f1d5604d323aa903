// Anomaly detection in a process of its own: `anomaly learn NET` trains a net on a machine's hum, `anomaly watch NET`
// reads samples from its standard input, one a line, and says where they are not what the net expects. `anomaly
// samples` makes some, with three faults.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

namespace {

/// Two tones and noise.
Tensor hum(std::int64_t n, std::uint64_t seed) {
  const Tensor t = arange(0.0, static_cast<double>(n), 1.0, Dtype::f64);
  return cast(sin(t * 0.31) + 0.5 * sin(t * 0.077), Dtype::f32) + normal({n}, {.seed = seed}, 0, 0.05);
}

dsl::Network build() { return dsl::sequence(1).gru(16).linear(1).build(/*seed=*/0); }

void learn(const std::string& path) {
  const auto net = build();
  const train::DataLoader data(
      train::windows(unsqueeze(hum(4000, 1), 1), {.length = 64, .step = 16, .every_step = true}));
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  train::fit(net, data, {.loss = "mse", .optimizer = &adam, .epochs = 30, .clip_norm = 1});
  const Tensor unseen = unsqueeze(hum(2000, 2), 1), told = net(unsqueeze(slice(unseen, 0, 0, 1999), 0));
  const double error =
      std::sqrt(nn::mse_loss(slice(told, 1, 100, 1999), unsqueeze(slice(unseen, 0, 101, 2000), 0)).item<float>());
  io::save(net, path, {.metadata = {{"error", std::to_string(error)}}});
  std::cout << "an error of " << error << " is usual\n";
}

int watch(const std::string& path) {
  const auto net = build();
  io::load(net, path);
  const double usual = std::stod(io::read_safetensors(path).metadata().at("error"));
  nn::Stream stream = net.stream();
  float sample = 0, expected = 0;
  int alarms = 0;
  for (std::int64_t i = 0, quiet = 100; std::cin >> sample; ++i, --quiet) {  // the first ones settle the states
    if (std::fabs(sample - expected) > 6 * usual && quiet <= 0) {
      std::cout << "sample " << i << ": " << sample << ", expected " << expected << std::endl;
      ++alarms, quiet = 100;
    }
    stream.step(std::span(&sample, 1), std::span(&expected, 1));
  }
  std::cout << alarms << " alarms\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "", path = argc > 2 ? argv[2] : "";
  if (what == "learn" && argc == 3) return learn(path), 0;
  if (what == "watch" && argc == 3) return watch(path);
  if (what != "samples") throw ValueError("give one of: learn NET, watch NET, samples");
  std::vector<float> samples = hum(3000, 3).to_vector<float>();
  for (const std::size_t at : {700U, 1500U, 2400U}) samples[at] += 1;
  for (const float s : samples) std::cout << s << '\n';
} catch (const std::exception& e) {
  std::cerr << "anomaly: " << e.what() << '\n';
  return 1;
}
