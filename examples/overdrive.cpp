// A temporal convolutional net learns the sound of an overdriven amplifier, and then plays it sample by sample.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

using namespace ferrite;
constexpr std::int64_t kRate = 16000, kEpochs = 20;

/// Returns notes of a guitar of sorts, four harmonics that decay, [n, T, 1].
Tensor notes(std::int64_t n, std::int64_t length, std::uint64_t seed) {
  const Tensor seconds = arange(0.0, static_cast<double>(length)) / kRate, h = reshape(arange(1.0, 5.0), {4, 1, 1});
  const Tensor pitch = uniform({n, 1}, {.seed = seed}, 80, 400);
  return unsqueeze(sum(0.4 / h * exp(-8 * h * seconds) * sin(6.283185307 * h * pitch * seconds), {0}), 2);
}

/// Returns the amplifier's output: a high pass, a soft clipper that is not symmetric, and a low pass.
Tensor amplifier(const Tensor& dry) {
  const Tensor change = dry - pad(slice(dry, 1, 0, -1), Shape{0, 1, 0}, Shape{0, 0, 0});
  const Tensor high = linear_scan(full({1}, 0.97), 0.97 * change);
  return linear_scan(full({1}, 0.6), 0.4 * (tanh(6 * high + 0.3) - std::tanh(0.3)));
}

int main(int argc, char** argv) try {
  std::string folder = ".";
  std::uint64_t seed = 0;
  CLI::App app("Learns an overdrive and fails where more than 1 % of the signal's energy is wrong");
  app.add_option("--seed", seed), app.add_option("--out", folder, "A folder");
  CLI11_PARSE(app, argc, argv);

  dsl::Builder words = dsl::sequence(1).causal_conv1d(12, 3).tanh();
  for (const std::int64_t dilation : {2, 4, 8, 16, 32})
    words.residual([&](dsl::Builder& b) { b.causal_conv1d(12, 3, {.dilation = dilation}).tanh().linear(12); });
  const auto net = words.linear(1).build(seed);
  const Tensor heard = notes(256, kRate / 16, seed + 1);
  const train::DataLoader data(train::Dataset({heard, amplifier(heard)}), {.batch_size = 8, .seed = seed});
  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(kEpochs * data.batches()));
  train::FitOptions options{.loss = [](const Tensor& y, const Tensor& t) { return nn::esr_loss(y, t); }};
  options.optimizer = &adam, options.epochs = kEpochs, options.schedule = &schedule;
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())};
  train::fit(net, data, options);
  const Tensor dry = reshape(notes(4, kRate / 4, seed + 2), {1, kRate, 1}), wet = amplifier(dry), told = net(dry);
  std::vector<float> in = dry.to_vector<float>(), out(in.size());
  nn::Stream stream = net.stream();
  for (std::size_t t = 0; t < in.size(); ++t) stream.step(std::span(&in[t], 1), std::span(&out[t], 1));
  io::write_wav(folder + "/overdrive.wav", {Tensor::from(out, {1, kRate}), kRate});
  const float error = nn::esr_loss(told, wet).item();
  const bool same = out == told.to_vector<float>();
  std::cout << "error to signal " << error << (same ? ", as a stream the same bits\n" : ", as a stream OTHER BITS\n");
  const auto line = [](const char* name, const Tensor& x) { return train::Series::of(name, slice(x, 1, 0, 400)); };
  train::write_line_chart(folder + "/overdrive.svg", {line("guitar", dry), line("amplifier", wet), line("net", told)},
                          {.title = "A note that it has not heard", .x_label = "sample", .y_label = "sound"});
  return error <= 0.01F && same ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "overdrive: " << e.what() << '\n';
  return 1;
}
