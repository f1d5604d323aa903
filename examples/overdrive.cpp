// A temporal convolutional net learns the sound of an overdriven amplifier, and then plays it sample by sample.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kRate = 16000;

/// A guitar of sorts: plucked notes of decaying harmonics, [B, T, 1].
Tensor notes(std::int64_t batch, std::int64_t length, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(batch * length));
  const std::vector<float> pitch = uniform({batch, 4}, {seed, 1, 0}, 80, 400).to_vector<float>();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < length; ++t)
      for (int h = 1; h <= 4; ++h) {
        const std::int64_t note = 4 * t / length, since = t - note * length / 4;
        const double seconds = static_cast<double>(since) / static_cast<double>(kRate);
        const double hertz = static_cast<double>(pitch[static_cast<std::size_t>(4 * b + note)]) * h;
        x[static_cast<std::size_t>(b * length + t)] +=
            static_cast<float>(0.4 / h * std::exp(-8 * seconds * h) * std::sin(6.283185307 * hertz * seconds));
      }
  return Tensor::from(x, {batch, length, 1});
}

/// The amplifier: a high pass, a soft clipper that is not symmetric, and a low pass.
Tensor amplifier(const Tensor& dry) {
  const std::int64_t B = dry.shape()[0], T = dry.shape()[1];
  std::vector<float> x = dry.to_vector<float>();
  for (std::int64_t b = 0; b < B; ++b) {
    double before = 0, high = 0, low = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      float& sample = x[static_cast<std::size_t>(b * T + t)];
      high = 0.97 * (high + static_cast<double>(sample) - before);
      before = static_cast<double>(sample);
      low += 0.4 * (std::tanh(6 * high + 0.3) - std::tanh(0.3) - low);
      sample = static_cast<float>(low);
    }
  }
  return Tensor::from(x, dry.shape());
}

int main(int argc, char** argv) try {
  std::int64_t steps = 1500;
  std::uint64_t seed = 0;
  CLI::App app("Learns an overdrive and fails where more than 1 % of the signal's energy is wrong");
  app.add_option("--steps", steps)->check(CLI::PositiveNumber), app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);

  dsl::Builder words = dsl::sequence(1).causal_conv1d(12, 3).tanh();
  for (const std::int64_t dilation : {2, 4, 8, 16, 32})
    words.residual([&](dsl::Builder& b) { b.causal_conv1d(12, 3, {.dilation = dilation}).tanh().linear(12); });
  const auto net = words.linear(1).build(seed);
  std::cout << net.summary() << '\n';

  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(steps));
  const auto step = compile([&](const Tensor& dry, const Tensor& wet) {
    Tape tape;
    const Tensor loss = nn::esr_loss(net(dry), wet);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  });
  const Tensor dry = notes(64, kRate / 4, seed + 1), wet = amplifier(dry);
  for (std::int64_t i = 0; i < steps; ++i) {
    const Tensor rows = randint({8}, {seed, stream_of("rows"), static_cast<std::uint64_t>(i)}, 0, 64);
    const std::int64_t from = i % 4 * kRate / 16;
    const auto piece = [&](const Tensor& all) { return slice(index_select(all, 0, rows), 1, from, from + kRate / 16); };
    const float loss = step(piece(dry), piece(wet)).item();
    schedule.advance();
    if ((i + 1) % (steps / 5) == 0) std::cout << "step " << i + 1 << ": error to signal " << loss << '\n';
  }

  net.eval();
  const Tensor unheard = notes(4, kRate, seed + 2), played = net(unheard);
  const float error = nn::esr_loss(played, amplifier(unheard)).item();
  std::vector<float> in = select(unheard, 0, 0).to_vector<float>(), out(in.size());
  nn::Stream stream = net.stream();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t t = 0; t < in.size(); ++t) stream.step(std::span(in).subspan(t, 1), std::span(out).subspan(t, 1));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  const bool same = out == select(played, 0, 0).to_vector<float>();
  std::cout << "error to signal of notes that it has not heard " << error
            << "\nsample by sample: " << (same ? "the same bits" : "OTHER BITS") << ", "
            << took.count() / static_cast<double>(in.size()) << " us a sample\n";
  return error <= 0.01F && same ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "overdrive: " << e.what() << '\n';
  return 1;
}
