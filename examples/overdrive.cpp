// A temporal convolutional net learns the sound of an overdriven amplifier, and then plays it sample by sample.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kRate = 16000;

/// A guitar of sorts: four plucked notes of decaying harmonics in each row, [B, T, 1].
Tensor notes(std::int64_t batch, std::int64_t length, std::uint64_t seed) {
  const Tensor pitch = uniform({batch, 4, 1}, {seed, 1, 0}, 80, 400);
  const Tensor seconds = arange(0.0, static_cast<double>(length / 4), 1.0) / static_cast<float>(kRate);
  Tensor sound = zeros({batch, 4, length / 4});
  for (const int h : {1, 2, 3, 4})
    sound = sound + 0.4 / h * exp(seconds * (-8 * h)) * sin(pitch * seconds * (6.283185307 * h));
  return reshape(sound, {batch, length, 1});
}

/// The amplifier: a high pass, a soft clipper that is not symmetric, and a low pass.
Tensor amplifier(const Tensor& dry) {
  const std::int64_t T = dry.shape()[1];
  std::vector<float> x = dry.to_vector<float>();
  double before = 0, high = 0, low = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % static_cast<std::size_t>(T) == 0) before = high = low = 0;
    high = 0.97 * (high + static_cast<double>(x[i]) - before);
    before = static_cast<double>(x[i]);
    low += 0.4 * (std::tanh(6 * high + 0.3) - std::tanh(0.3) - low);
    x[i] = static_cast<float>(low);
  }
  return Tensor::from(x, dry.shape());
}

int main(int argc, char** argv) try {
  std::int64_t epochs = 47;
  std::uint64_t seed = 0;
  CLI::App app("Learns an overdrive and fails where more than 1 % of the signal's energy is wrong");
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber), app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);

  dsl::Builder words = dsl::sequence(1).causal_conv1d(12, 3).tanh();
  for (const std::int64_t dilation : {2, 4, 8, 16, 32})
    words.residual([&](dsl::Builder& b) { b.causal_conv1d(12, 3, {.dilation = dilation}).tanh().linear(12); });
  const auto net = words.linear(1).build(seed);
  const Tensor dry = notes(64, kRate / 4, seed + 1), wet = amplifier(dry);
  const auto pieces = [](const Tensor& x) { return reshape(x, {256, kRate / 16, 1}); };
  const train::DataLoader data(train::Dataset({pieces(dry), pieces(wet)}), {.batch_size = 8, .seed = seed});
  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(epochs * data.batches()));
  train::fit(net, data,
             {.loss = [](const Tensor& y, const Tensor& t) { return nn::esr_loss(y, t); },
              .optimizer = &adam,
              .epochs = epochs,
              .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)},
              .schedule = &schedule});

  net.eval();
  const Tensor unheard = notes(4, kRate, seed + 2), played = net(unheard);
  const float error = nn::esr_loss(played, amplifier(unheard)).item();
  std::vector<float> in = select(unheard, 0, 0).to_vector<float>(), out(in.size());
  nn::Stream stream = net.stream();
  for (std::size_t t = 0; t < in.size(); ++t) stream.step(std::span(in).subspan(t, 1), std::span(out).subspan(t, 1));
  const bool same = out == select(played, 0, 0).to_vector<float>();
  io::write_wav("overdrive.wav", {Tensor::from(out, {1, std::ssize(out)}), kRate});
  std::cout << "error to signal of notes that it has not heard " << error << "; sample by sample "
            << (same ? "the same bits" : "OTHER BITS") << ", in overdrive.wav\n";
  return error <= 0.01F && same ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "overdrive: " << e.what() << '\n';
  return 1;
}
