// Handwritten digits pixel by pixel, 64 steps of one number: a minimal GRU, Mamba and a GRU of about equal size learn
// the same sequences. Prints and draws their accuracies and times for comparison.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>

using namespace ferrite;

struct Digits {
  Tensor pixels;  ///< f32 [N, 64, 1], 0 to 1
  Tensor labels;  ///< classes, i64 [N]

  std::int64_t size() const { return labels.numel(); }
  Digits at(const Tensor& places) const { return {index_select(pixels, 0, places), index_select(labels, 0, places)}; }
};

/// Returns every fifth digit, or all others.
Digits part_of(const Digits& all, bool held_out) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < all.size(); ++i)
    if ((i % 5 == 0) == held_out) places.push_back(i);
  return all.at(Tensor::from(places));
}

struct Result {
  std::string name;
  std::int64_t parameters = 0;
  double accuracy = 0, seconds = 0;  ///< accuracy of the last epoch, seconds of all epochs
  train::Series curve{};             ///< accuracy over the seconds of training
};

Result learn(const std::string& name, const dsl::Network& net, const Digits& training, const Digits& held_out,
             std::int64_t epochs, std::uint64_t seed) {
  constexpr std::int64_t kBatch = 32;
  nn::AdamW adam(net.parameters(), {.learning_rate = 1e-2});
  const std::int64_t steps = training.size() / kBatch;
  nn::OneCycleSchedule schedule(adam, {.max_learning_rate = {1e-2}, .total_steps = epochs * steps});
  const auto step = compile([&](const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), y);
    adam.step(nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1).grads);
    return loss;
  });
  Result r{.name = name, .parameters = net.parameter_count(), .curve = {.name = name, .x = {}, .y = {}}};
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    net.train();
    const Tensor order = permutation(training.size(), {.seed = seed, .stream = static_cast<std::uint64_t>(epoch)});
    for (std::int64_t i = 0; i < steps; ++i) {
      const Digits batch = training.at(slice(order, 0, i * kBatch, (i + 1) * kBatch));
      step(batch.pixels, batch.labels);
      schedule.advance();
    }
    r.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    net.eval();
    r.accuracy = nn::accuracy(net(held_out.pixels), held_out.labels);
    r.curve.x.push_back(r.seconds);
    r.curve.y.push_back(100 * r.accuracy);
  }
  return r;
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors", picture;
  std::int64_t epochs = 25;
  std::uint64_t seed = 0;
  CLI::App app("Learns digits pixel by pixel with three recurrent layers; fails where one is below 85 %");
  app.add_option("--data", path), app.add_option("--seed", seed);
  app.add_option("--picture", picture, "where the chart goes, as SVG");
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const io::TensorFile file = io::read_safetensors(path);
  const Tensor images = file.tensor("images");
  const Digits all{reshape(cast(images, Dtype::f32) / 16, {images.shape()[0], 64, 1}),
                   cast(file.tensor("labels"), Dtype::i64)};
  const Digits training = part_of(all, false), held_out = part_of(all, true);

  const auto minimal = dsl::sequence(1).linear(32).repeat(
      3, [](dsl::Builder& r) { r.residual([](dsl::Builder& b) { b.layer_norm().min_gru(32); }); });
  const auto mamba = dsl::sequence(1).linear(18).repeat(
      2, [](dsl::Builder& r) { r.residual([](dsl::Builder& b) { b.layer_norm().mamba({.state = 8}); }); });
  const auto gated = dsl::sequence(1).gru(45);
  const auto with_head = [&](dsl::Builder body) { return body.layer_norm().last_step().linear(10).build(seed); };
  const std::vector<Result> results = {learn("minGRU", with_head(minimal), training, held_out, epochs, seed),
                                       learn("Mamba", with_head(mamba), training, held_out, epochs, seed),
                                       learn("GRU", with_head(gated), training, held_out, epochs, seed)};
  std::printf("%-8s %10s %10s %10s\n", "layer", "parameters", "accuracy", "seconds");
  bool enough = true;
  std::vector<train::Series> curves;
  for (const Result& r : results) {
    std::printf("%-8s %10lld %8.1f %% %10.2f\n", r.name.c_str(), static_cast<long long>(r.parameters), 100 * r.accuracy,
                r.seconds);
    enough = enough && r.accuracy >= 0.85;
    curves.push_back(r.curve);
  }
  if (!picture.empty()) {
    const std::string chart = train::line_chart(curves, {.title = "Digits pixel by pixel",
                                                         .x_label = "seconds of training",
                                                         .y_label = "accuracy on digits not seen, %"});
    io::write_atomically(picture, std::as_bytes(std::span(chart)));
  }
  return enough ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "pixel_by_pixel: " << e.what() << '\n';
  return 1;
}
