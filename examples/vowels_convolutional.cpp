// Who is speaking? The vowels of examples/vowels.cpp, told by convolutions over time.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;
using train::SequenceSet;

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
    return SequenceSet(file.tensor(name + ".x"), file.tensor(name + ".lengths"), file.tensor(name + ".labels"));
  };
  const SequenceSet training = part("train"), test = part("test");
  const auto net = dsl::sequence(training.features())
                       .causal_conv1d(48, 5)
                       .batch_norm()
                       .relu()
                       .causal_conv1d(48, 5)
                       .batch_norm()
                       .relu()
                       .dropout(0.3)
                       .mean_over_time()
                       .linear(training.classes())
                       .build(seed);
  std::cout << net.summary() << '\n';
  nn::AdamW adam(net.parameters(), {.learning_rate = 3e-3});
  train::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0, epochs, training.size());
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    progress.begin_epoch();
    for (const train::Batch& b : train::batches(training, 32, {.seed = seed, .epoch = epoch})) {
      Tape tape;
      const Tensor logits = net(b.x, b.context()), loss = nn::cross_entropy(logits, b.y);
      adam.step(tape.grad(loss, net.parameters()));
      progress.batch(b.size(), static_cast<double>(loss.item()), nn::accuracy(logits, b.y));
    }
    progress.end_epoch();
  }
  net.eval();
  train::Confusion confusion(training.classes());
  for (const train::Batch& b : train::batches(test, 64, {.shuffle = false}))
    confusion.add(argmax(net(b.x, b.context()), 1), b.y);
  std::cout << confusion.str() << "test accuracy " << 100 * confusion.accuracy() << " %\n";
  return confusion.accuracy() >= 0.95 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "vowels_convolutional: " << e.what() << '\n';
  return 1;
}
