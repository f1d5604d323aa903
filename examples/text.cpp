// A GRU learns this project's own documentation, character by character, by truncated back-propagation through time:
// states are carried from piece to piece, gradients end at their borders. Then it writes.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::vector<std::string> files = {FERRITE_SOURCE "/docs/tutorial.md", FERRITE_SOURCE "/docs/recurrent.md"};
  std::string out = ".", all;
  std::int64_t epochs = 12;
  double bound = 2;
  CLI::App app("Learns texts and fails where a character takes more nats than --bound");
  app.add_option("FILE", files), app.add_option("--bound", bound), app.add_option("--out", out, "A folder");
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  for (const std::string& file : files) all += io::read_text(file);
  const auto characters = train::Characters::of(all);
  const Tensor text = characters.tokens(all);
  constexpr std::int64_t kRows = 16;
  const train::DataLoader data(train::side_by_side(text, kRows, 50), {.batch_size = kRows, .shuffle = false});

  const auto net = dsl::tokens(characters.size()).embedding(32).gru(128).linear(characters.size()).build(/*seed=*/0);
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
                                train::ProgressBar(std::cout, train::ProgressBar::on_terminal()),
                                train::Curves(out + "/text.svg", {"perplexity"}, "Characters that it hesitates among")},
                  .clip_norm = 1,
                  .compile = train::Compile::always});

  nn::Stream stream = net.stream();
  const Tensor written =
      nn::generate(stream, slice(text, 0, 0, 1), {.length = 400, .sampling = {.temperature = 0.6}, .seed = 1});
  std::cout << characters.text(written) << "\n\n" << history["loss"].back() << " nats a character\n";
  return history["loss"].back() <= bound ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "text: " << e.what() << '\n';
  return 1;
}
