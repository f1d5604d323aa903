// Who is speaking? The speakers of examples/vowels.cpp, recognised by convolutions over time.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/japanese_vowels.safetensors";
  std::int64_t epochs = 40;
  std::uint64_t seed = 0;
  CLI::App app("Learns nine speakers from recordings of two vowels and fails below 95 % of the test recordings");
  app.add_option("--data", path), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const io::TensorFile file = io::read_safetensors(path);
  const auto part = [&](const std::string& name) {
    return train::Dataset(
        {train::sequences(file.tensor(name + ".x"), file.tensor(name + ".lengths")), file.tensor(name + ".labels")});
  };
  const train::DataLoader training(part("train"), {.seed = seed});
  const train::Dataset test = part("test");
  const auto net = dsl::sequence(12)
                       .causal_conv1d(48, 5)
                       .batch_norm()
                       .relu()
                       .causal_conv1d(48, 5)
                       .batch_norm()
                       .relu()
                       .dropout(0.3)
                       .mean_over_time()
                       .linear(9)
                       .build(seed);
  std::cout << net.summary() << '\n';
  nn::AdamW adam(net.parameters(), {.learning_rate = 3e-3});
  train::fit(net, training,
             {.loss = "cross_entropy",
              .optimizer = &adam,
              .epochs = epochs,
              .metrics = {"accuracy"},
              .callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())}});
  train::Confusion confusion(9);
  confusion.add(argmax(train::predict(net, test), 1), test.all().y());
  std::cout << confusion.str() << "test accuracy " << 100 * confusion.accuracy() << " %\n";
  return confusion.accuracy() >= 0.95 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "vowels_convolutional: " << e.what() << '\n';
  return 1;
}
