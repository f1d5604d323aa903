// A GRU learns this project's own documentation, character by character, by truncated back-propagation through time:
// the states go on from piece to piece, gradients end at their borders. Then it writes.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::vector<std::string> files = {FERRITE_SOURCE "/docs/tutorial.md", FERRITE_SOURCE "/docs/recurrent.md"};
  std::int64_t epochs = 12;
  double bound = 2;
  CLI::App app("Learns texts and fails where a character takes more nats than --bound");
  app.add_option("FILE", files), app.add_option("--bound", bound);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  std::vector<std::int64_t> characters;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) throw IoError(file + ": cannot be opened");
    for (char c = 0; in.get(c);) characters.push_back(c >= ' ' && c <= '~' ? c - ' ' + 1 : 0);  // 0: a new line
  }
  constexpr std::int64_t kRows = 16, kVocabulary = 96;
  const Tensor text = Tensor::from(characters, {std::ssize(characters)});
  const train::DataLoader data(train::side_by_side(text, kRows, 50), {.batch_size = kRows, .shuffle = false});

  const auto net = dsl::tokens(kVocabulary).embedding(32).gru(128).linear(kVocabulary).build(/*seed=*/0);
  const nn::Carry carry(net, kRows);
  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor logits = net(b.x(), {.carry = &carry});
    return train::StepOutput{nn::cross_entropy(logits, b.y(), {.classes_last = true}), logits};
  };
  const train::History history =
      train::fit(net, forward, data,
                 {.optimizer = &adam,
                  .epochs = epochs,
                  .metrics = {"perplexity"},
                  .callbacks = {train::LambdaCallback({.on_epoch_begin = [&](train::Training&) { carry.reset(); }}),
                                train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)},
                  .clip_norm = 1,
                  .compile = train::Compile::always});

  nn::Stream stream = net.stream();
  std::vector<float> logits(kVocabulary);
  for (std::int64_t i = 0, last = 0; i < 400; ++i) {
    stream.step(std::span(&last, 1), logits);
    const RandomKey key{.seed = 1, .call = static_cast<std::uint64_t>(i)};
    last = sample_logits(Tensor::from(logits, {kVocabulary}), key, {.temperature = 0.6}).item<std::int64_t>();
    std::cout << (last == 0 ? '\n' : static_cast<char>(' ' + last - 1));
  }
  std::cout << "\n\n" << history["loss"].back() << " nats a character\n";
  return history["loss"].back() <= bound ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "text: " << e.what() << '\n';
  return 1;
}
