// Handwritten digits by a plain net of two layers: the shortest training with everything around it.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors", folder = "digits_mlp";
  std::int64_t epochs = 40;
  std::uint64_t seed = 0;
  CLI::App app("Learns handwritten digits and fails below 95.5 % of those that it has not seen");
  app.add_option("--data", path), app.add_option("--out", folder), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const io::TensorFile file = io::read_safetensors(path);
  const Tensor images = flatten(cast(file.tensor("images"), Dtype::f32), 1) / 16;
  const Tensor labels = cast(file.tensor("labels"), Dtype::i64);
  const auto parts =
      train::split(train::Dataset({images, labels}), {0.7, 0.1, 0.2}, {.seed = seed, .stratify = labels});
  const train::DataLoader training(parts[0], {.batch_size = 64, .seed = seed});
  const train::DataLoader validation(parts[1], {.batch_size = 256}), test(parts[2], {.batch_size = 256});

  const auto net = dsl::features(64).linear(64).relu().dropout(0.2).linear(10).build(seed);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const train::History history =
      train::fit(net, training,
                 {.loss = "cross_entropy",
                  .optimizer = &adam,
                  .epochs = epochs,
                  .validation = &validation,
                  .metrics = {"accuracy"},
                  .callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal()),
                                train::EarlyStopping({.patience = 8}), train::ModelCheckpoint(folder),
                                train::Curves(folder + "/digits_mlp.svg", {"accuracy", "val_accuracy"}, "Accuracy"),
                                train::CSVLogger(folder + "/log.csv")}});
  const double right = train::evaluate(net, test, {.loss = "cross_entropy", .metrics = {"accuracy"}})["accuracy"];
  std::cout << history.epochs() << " epochs, test accuracy " << 100 * right << " %\n";
  return right >= 0.955 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "digits_mlp: " << e.what() << '\n';
  return 1;
}
