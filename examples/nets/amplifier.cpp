// A WaveNet learns a valve amplifier from its circuit, and is written as `.nam`: `amplifier --out FILE` trains for some
// minutes; `amplifier --test FILE` plays what the net has not heard and prints how far it is from the circuit.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "circuit.h"
#include "guitar.h"
#include "signals.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kBefore = 2300, kWindow = 4096, kBatch = 4;  // samples before a window, that the net looks at

struct Sound {
  std::vector<float> dry, wet;
};

/// Returns two thirds of playing and one third of sweeps and chirps of noise, with the amplifier's answer.
Sound training_signal(double seconds, std::uint64_t seed) {
  Sound r;
  const auto append = [&](const std::vector<float>& x) { r.dry.insert(r.dry.end(), x.begin(), x.end()); };
  append(nets::playing(seconds * 0.75, nets::Amplifier::rate, seed));
  for (const double level : {0.01, 0.04, 0.15, 0.5, 1.0})
    append(nets::sweep(seconds * 0.03, nets::Amplifier::rate, level));
  nets::Draw draw(seed + 1);
  for (const double level : {0.02, 0.1, 0.5}) {
    std::vector<float> noise(static_cast<std::size_t>(seconds * 0.0333 * nets::Amplifier::rate));
    double low = 0;
    for (float& v : noise) low += 0.3 * (draw(-1, 1) - low), v = static_cast<float>(2 * level * low);
    append(noise);
  }
  r.wet = nets::Amplifier().play(r.dry);
  return r;
}

/// Two arrays of 8 and 4 channels, whose dilations reach back 2,301 samples.
nn::WavenetOptions architecture() {
  const auto units = [](std::int64_t last) {
    std::vector<nn::WavenetUnit> all;
    for (std::int64_t d = 1; d <= last; d *= 2) all.push_back({.kernel_size = 3, .dilation = d});
    return all;
  };
  nn::WavenetArray first{.channels = 8, .bottleneck = 8, .units = units(512), .head_size = 4};
  nn::WavenetArray second{
      .input_size = 8, .channels = 4, .bottleneck = 4, .units = units(64), .head_size = 1, .head_bias = true};
  return {.arrays = {first, second}, .head_scale = 0.1};
}

/// The error-to-signal ratio of windows, in which silence does not count more than sound, plus that of high
/// frequencies.
Tensor window_loss(const Tensor& y, const Tensor& target) {
  const Tensor a = slice(y, 1, kBefore, kBefore + kWindow), b = slice(target, 1, kBefore, kBefore + kWindow);
  return nn::esr_loss(a, b, {.epsilon = 0.1}) + nn::esr_loss(a, b, {.pre_emphasis = 0.85, .epsilon = 0.01});
}

void train_net(const nn::Wavenet& net, const Sound& r, std::int64_t epochs, std::uint64_t seed) {
  const auto windows = (static_cast<std::int64_t>(r.dry.size()) - kBefore) / kWindow;
  const auto part = [](const std::vector<float>& x, std::int64_t i) {
    const auto begin = x.begin() + i * kWindow;
    return Tensor::from(std::vector<float>(begin, begin + kBefore + kWindow), {kBefore + kWindow, 1});
  };
  const train::Dataset data(windows, [&, part](std::int64_t i) { return Tensors{part(r.dry, i), part(r.wet, i)}; });
  const train::DataLoader loader(data, {.batch_size = kBatch, .seed = seed, .drop_last = true});
  nn::Adam adam(net.parameters(), {.learning_rate = 6e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(epochs * loader.batches()));
  train::FitOptions options{.loss = window_loss, .optimizer = &adam, .epochs = epochs};
  options.clip_norm = 1, options.schedule = &schedule;
  options.callbacks = {train::ProgressBar(std::cout)};
  train::fit(net, loader, options);
}

std::vector<float> streamed(const nn::Layer& net, const std::vector<float>& dry) {
  nn::Stream stream = net.stream();
  std::vector<float> wet(dry.size());
  stream.steps(static_cast<std::int64_t>(dry.size()), dry, wet);
  return wet;
}

/// Prints the errors on playing that was not heard; returns whether streams give the bits of whole runs.
bool test(const nn::Layer& net, const std::vector<double>& linear) {
  std::printf("unseen               net    linear filter   (error-to-signal ratio)\n");
  const auto row = [&](const char* name, const std::vector<float>& dry) {
    const std::vector<float> wet = nets::Amplifier().play(dry);
    std::printf("%-15s %8.5f  %8.5f\n", name, nets::error_to_signal(streamed(net, dry), wet),
                nets::error_to_signal(nets::filtered(linear, dry), wet));
  };
  std::vector<float> dry = nets::playing(30, nets::Amplifier::rate, 777);
  row("playing", dry);
  for (float& v : dry) v *= 0.25F;
  row("12 dB quieter", dry);
  row("a sweep at 0.3", nets::sweep(5, nets::Amplifier::rate, 0.3));

  dry.resize(48000);
  const Tensor whole = net(Tensor::from(dry, {1, 48000, 1}));
  const bool same = streamed(net, dry) == whole.to_vector<float>();
  nn::Stream stream = net.stream();
  std::vector<float> out(64);
  double best = 1;
  for (int i = 0; i < 500; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    stream.steps(64, std::span(dry).subspan(static_cast<std::size_t>(64 * i), 64), out);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 64);
  }
  std::printf("%.0f ns per sample, %.1f %% of one core; as a stream %s\n", best * 1e9, best * 48000 * 100,
              same ? "the same bits" : "OTHER BITS");
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string out = "amplifier.nam", tested;
  std::uint64_t seed = 1;
  std::int64_t epochs = 16;
  double seconds = 120;
  CLI::App app("Trains a net that sounds as a valve amplifier, or tests one");
  app.add_option("--out", out, "The `.nam` file to write");
  app.add_option("--test", tested, "A `.nam` file to test instead");
  app.add_option("--seed", seed), app.add_option("--epochs", epochs), app.add_option("--seconds", seconds);
  CLI11_PARSE(app, argc, argv);

  std::cout << "solving the circuit for " << seconds << " s of sound\n";
  const Sound r = training_signal(seconds, seed);
  const std::vector<double> linear = nets::least_squares_filter(r.dry, r.wet, 512);
  if (!tested.empty()) return test(*io::read_nam(tested).layer, linear) ? 0 : 1;
  io::NamModel model{.layer = std::make_unique<nn::Wavenet>(architecture(), nn::Init{.seed = seed})};
  std::cout << model.layer->parameter_count() << " parameters\n";
  train_net(dynamic_cast<const nn::Wavenet&>(*model.layer), r, epochs, seed);
  model.sample_rate = nets::Amplifier::rate;
  model.metadata = R"({"name": "Two triodes", "modeled_by": "Ferrite", "gear_type": "amp_cab", "tone_type": "crunch"})";
  io::save_nam(model, out);
  return test(*model.layer, linear) ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "amplifier: " << e.what() << '\n';
  return 1;
}
