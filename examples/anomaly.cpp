// Anomaly detection in a separate process: `anomaly learn` trains a net on a machine's hum, `anomaly watch` reads
// samples from standard input and reports unexpected ones. `anomaly samples` makes some, with faults.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

/// Returns two tones and noise, f32 [n].
Tensor hum(std::int64_t n, std::uint64_t seed) {
  const Tensor t = arange(0.0, static_cast<double>(n), 1.0, Dtype::f64);
  return cast(sin(t * 0.31) + 0.5 * sin(t * 0.077), Dtype::f32) + normal({n}, {.seed = seed}, 0, 0.05);
}

int main(int argc, char** argv) try {
  std::string what, path = "hum.safetensors", out;
  CLI::App app("Learns how a machine sounds, and watches over another one's samples");
  app.add_option("WHAT", what)->required()->check(CLI::IsMember({"learn", "watch", "samples"}));
  app.add_option("NET", path)->capture_default_str(), app.add_option("--out", out, "A folder for a picture");
  CLI11_PARSE(app, argc, argv);

  const auto net = dsl::sequence(1).gru(16).linear(1).build(/*seed=*/0);
  if (what == "samples") {
    std::vector<float> samples = hum(3000, 3).to_vector<float>();
    for (const std::size_t at : {700U, 1500U, 2400U}) samples[at] += 1;
    for (const float s : samples) std::cout << s << '\n';
  } else if (what == "learn") {
    const train::DataLoader data(
        train::windows(unsqueeze(hum(4000, 1), 1), {.length = 64, .step = 16, .every_step = true}));
    nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
    train::fit(net, data, {.loss = "mse", .optimizer = &adam, .epochs = 30, .clip_norm = 1});
    const Tensor unseen = reshape(hum(2000, 2), {1, 2000, 1}), told = net(slice(unseen, 1, 0, 1999));
    const double error = std::sqrt(nn::mse_loss(slice(told, 1, 100), slice(unseen, 1, 101)).item());
    io::save(net, path, {.metadata = {{"error", std::to_string(error)}}});
    std::cout << "an error of " << error << " is usual\n";
  } else {
    io::load(net, path);
    const double usual = std::stod(io::read_safetensors(path).metadata().at("error"));
    nn::Stream stream = net.stream();
    train::Series errors{.name = "error", .x = {}, .y = {}}, alarms{.name = "alarms", .x = {}, .y = {}, .points = true};
    float sample = 0, expected = 0;
    for (std::int64_t i = 0, quiet = 100; std::cin >> sample; ++i, --quiet) {  // the first ones settle the states
      const double at = static_cast<double>(i), error = std::fabs(static_cast<double>(sample - expected));
      errors.x.push_back(at), errors.y.push_back(error);
      if (error > 6 * usual && quiet <= 0) {
        std::cout << "sample " << i << ": " << sample << ", expected " << expected << std::endl;
        alarms.x.push_back(at), alarms.y.push_back(error), quiet = 100;
      }
      stream.step(std::span(&sample, 1), std::span(&expected, 1));
    }
    std::cout << alarms.x.size() << " alarms\n";
    const train::ChartOptions chart{.title = "A machine with three faults", .x_label = "sample", .y_label = "error"};
    if (!out.empty()) train::write_line_chart(out + "/anomaly.svg", {errors, alarms}, chart);
  }
} catch (const std::exception& e) {
  std::cerr << "anomaly: " << e.what() << '\n';
  return 1;
}
