// A small convolutional net learns handwritten digits.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

/// Every fifth digit, or all others: images f32 [1, 8, 8], 0 to 1, and labels.
train::Dataset read_digits(const std::string& path, bool held_out) {
  const io::TensorFile file = io::read_safetensors(path);
  const train::Dataset all(
      {unsqueeze(cast(file.tensor("images"), Dtype::f32), 1) / 16, cast(file.tensor("labels"), Dtype::i64)});
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < all.size(); ++i)
    if ((i % 5 == 0) == held_out) places.push_back(i);
  return all.subset(places);
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors";
  std::int64_t epochs = 15;
  std::uint64_t seed = 0;
  CLI::App app("Learns handwritten digits and fails below 98 % of those that it has not seen");
  app.add_option("--data", path), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const train::DataLoader training(read_digits(path, false), {.batch_size = 64, .seed = seed});
  const train::DataLoader held_out(read_digits(path, true), {.batch_size = 360, .shuffle = false});
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
  train::fit(net, training,
             {.loss = "cross_entropy",
              .optimizer = &adam,
              .epochs = epochs,
              .validation = &held_out,
              .metrics = {"accuracy"},
              .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)}});
  net.eval();
  const auto folded = nn::fold_batch_norms(net);  // what a program that only reads digits would hold
  const auto accuracy = [&](const nn::Layer& model) {
    return train::evaluate(model, held_out, {.loss = "cross_entropy", .metrics = {"accuracy"}})["accuracy"];
  };
  std::cout << "accuracy " << 100 * accuracy(net) << " %, with the norms folded into the convolutions "
            << 100 * accuracy(*folded) << " %\n";
  return accuracy(net) >= 0.98 && accuracy(*folded) == accuracy(net) ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "digits: " << e.what() << '\n';
  return 1;
}
