// A small convolutional net learns handwritten digits.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors", out = ".";
  std::int64_t epochs = 15;
  std::uint64_t seed = 0;
  CLI::App app("Learns handwritten digits and fails below 98 % of those that it has not seen");
  app.add_option("--data", path), app.add_option("--out", out, "A folder"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const io::TensorFile file = io::read_safetensors(path);
  const Tensor images = unsqueeze(cast(file.tensor("images"), Dtype::f32), 1) / 16;  // [N, 1, 8, 8], 0 to 1
  const Tensor labels = cast(file.tensor("labels"), Dtype::i64);
  const auto parts = train::split(train::Dataset({images, labels}), {0.8, 0.2}, {.stratify = labels});
  const train::DataLoader training(parts[0], {.batch_size = 64, .seed = seed});
  const train::DataLoader held_out(parts[1], {.batch_size = 360, .shuffle = false});
  dsl::Builder words = dsl::image(1, 8, 8);
  const auto convolution = [&](std::int64_t n) { words.conv2d(n, 3, {.padding = {1}}).batch_norm().relu(); };
  convolution(16), convolution(32), words.max_pool2d(2), convolution(32);
  const auto net = words.flatten().dropout(0.3).linear(10).build(seed);
  std::cout << net.summary() << '\n';
  nn::Adam adam(net.parameters(), {.learning_rate = 2e-3});
  train::FitOptions options{.loss = "cross_entropy", .optimizer = &adam, .epochs = epochs, .validation = &held_out};
  options.metrics = {"accuracy"};
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())};
  train::fit(net, training, options);

  net.eval();
  const auto folded = nn::fold_batch_norms(net);  // the net that a program needs which only reads digits
  const auto judge = [&](const nn::Layer& model) {
    train::Confusion confusion(10);
    confusion.add(argmax(train::predict(model, parts[1]), 1), parts[1].all().y());
    return confusion;
  };
  const train::Confusion read = judge(net), folded_read = judge(*folded);
  std::cout << "accuracy " << 100 * read.accuracy() << " %, with the norms folded into the convolutions "
            << 100 * folded_read.accuracy() << " %\n";
  const std::vector<std::string> names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  train::write_heat_map(out + "/digits.svg", read.counts(),
                        {.title = "Digits that it has not seen",
                         .x_label = "read as",
                         .y_label = "digit",
                         .columns = names,
                         .rows = names,
                         .numbers = true});
  return read.accuracy() >= 0.98 && folded_read.accuracy() == read.accuracy() ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "digits: " << e.what() << '\n';
  return 1;
}
