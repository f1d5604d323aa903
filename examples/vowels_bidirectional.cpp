// The demo's task, who is speaking?, with a two-layer bidirectional LSTM.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;
using train::SequenceSet;

namespace {

SequenceSet part(const io::TensorFile& file, const std::string& name) {
  return {file.tensor(name + ".x"), file.tensor(name + ".lengths"), file.tensor(name + ".labels")};
}

double accuracy(const dsl::Network& net, const SequenceSet& data) {
  net.eval();
  double right = 0;
  for (const train::Batch& b : train::batches(data, 64, {.shuffle = false}))
    right += nn::accuracy(net(b.x, b.context()), b.y) * static_cast<double>(b.size());
  net.train();
  return right / static_cast<double>(data.size());
}

}  // namespace

int main(int argc, char** argv) try {
  std::int64_t hidden = 48, epochs = 40;
  std::uint64_t seed = 0;
  std::string path = FERRITE_DATA "/japanese_vowels.safetensors";
  CLI::App app("Who is speaking? A two-layer bidirectional LSTM");
  app.add_option("--hidden", hidden)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--data", path)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const io::TensorFile file = io::read_safetensors(path);
  const SequenceSet training = part(file, "train"), test = part(file, "test");
  const auto net = dsl::sequence(training.features())
                       .lstm(hidden, {.layers = 2, .bidirectional = true, .dropout = 0.2})
                       .mean_over_time()
                       .linear(training.classes())
                       .build(seed);
  std::cout << net.summary();
  nn::AdamW adam(net.parameters(), {.learning_rate = 3e-3});
  nn::CosineSchedule schedule(adam, epochs);
  train::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0, epochs, training.size());
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    progress.begin_epoch();
    for (const train::Batch& b : train::batches(training, 32, {.seed = seed, .epoch = epoch})) {
      Tape tape;
      const Tensor logits = net(b.x, b.context());
      const Tensor loss = nn::cross_entropy(logits, b.y);
      adam.step(nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1).grads);
      progress.batch(b.size(), static_cast<double>(loss.item()), nn::accuracy(logits, b.y));
    }
    schedule.advance();
    progress.end_epoch();
  }
  std::cout << "test accuracy " << 100 * accuracy(net, test) << "%\n";
} catch (const std::exception& e) {
  std::cerr << "vowels_bidirectional: " << e.what() << '\n';
  return 1;
}
