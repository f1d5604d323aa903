// A small convolutional net learns handwritten digits.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

struct Digits {
  Tensor images;  ///< f32 [N, 1, 8, 8], 0 to 1
  Tensor labels;  ///< i64 [N]

  std::int64_t size() const { return labels.numel(); }
  Digits at(const Tensor& places) const { return {index_select(images, 0, places), index_select(labels, 0, places)}; }
};

Digits read_digits(const std::string& path) {
  const io::TensorFile file = io::read_safetensors(path);
  return {unsqueeze(cast(file.tensor("images"), Dtype::f32), 1) / 16, cast(file.tensor("labels"), Dtype::i64)};
}

/// Every fifth digit, or all others.
Digits part_of(const Digits& all, bool held_out) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < all.size(); ++i)
    if ((i % 5 == 0) == held_out) places.push_back(i);
  return all.at(Tensor::from(places, {std::ssize(places)}));
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors";
  std::int64_t epochs = 15;
  std::uint64_t seed = 0;
  CLI::App app("Learns handwritten digits and fails below 98 % of those that it has not seen");
  app.add_option("--data", path), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Digits all = read_digits(path), training = part_of(all, false), held_out = part_of(all, true);
  const auto net = dsl::image(1, 8, 8)
                       .conv2d(16, 3, {.padding = {1}})
                       .batch_norm()
                       .relu()
                       .conv2d(32, 3, {.padding = {1}})
                       .batch_norm()
                       .relu()
                       .max_pool2d(2)
                       .conv2d(32, 3, {.padding = {1}})
                       .batch_norm()
                       .relu()
                       .flatten()
                       .dropout(0.3)
                       .linear(10)
                       .build(seed);
  std::cout << net.summary() << '\n';
  nn::Adam adam(net.parameters(), {.learning_rate = 2e-3});
  const auto step = compile([&](const Tensor& images, const Tensor& labels) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(images), labels);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  });
  const auto accuracy = [&](const nn::Layer& model) { return nn::accuracy(model(held_out.images), held_out.labels); };
  train::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0, epochs, training.size());
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    progress.begin_epoch();
    const Tensor order = permutation(training.size(), {seed, stream_of("order"), static_cast<std::uint64_t>(epoch)});
    for (const Tensor& places : split(order, 64)) {
      const Digits batch = training.at(places);
      progress.batch(batch.size(), step(batch.images, batch.labels).item());
    }
    net.eval();
    progress.end_epoch("held out " + std::to_string(100 * accuracy(net)) + " %");
    net.train();
  }
  net.eval();
  const auto folded = nn::fold_batch_norms(net);  // what a program that only reads digits would hold
  std::cout << "accuracy " << 100 * accuracy(net) << " %, with the norms folded into the convolutions "
            << 100 * accuracy(*folded) << " %\n";
  return accuracy(net) >= 0.98 && accuracy(*folded) == accuracy(net) ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "digits: " << e.what() << '\n';
  return 1;
}
