// A GRU learns the words of any text, letter by letter, and then makes up new ones.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <ranges>

using namespace ferrite;
using Tokens = std::vector<std::int64_t>;
constexpr std::int64_t kStop = 0, kVocabulary = 27;  // the end (and the beginning) of a word, then a..z

/// The words of a text as tokens, in an order of chance.
std::vector<Tokens> read_words(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw IoError(path + ": cannot be opened");
  std::map<std::uint64_t, Tokens> words;
  for (std::string text; in >> text;) {
    Tokens word;
    for (const char c : text)
      if (std::isalpha(static_cast<unsigned char>(c)) && word.size() < 20) word.push_back((c | 0x20) - 'a' + 1);
    if (!word.empty()) words[stream_of(text)] = word;
  }
  if (words.size() < 20) throw IoError(path + ": has fewer than 20 words");
  const auto values = std::views::values(words);
  return {values.begin(), values.end()};
}

/// Mean loss in nats a letter: each letter, and the end, from those before.
Tensor loss_of(const dsl::Network& net, std::span<const Tokens> words) {
  const std::size_t longest = 1 + std::ranges::max(words, {}, &Tokens::size).size();
  Tokens x(words.size() * longest, kStop), targets, valid;
  for (std::size_t b = 0; b < words.size(); ++b)
    for (std::size_t t = 0; t <= words[b].size(); ++t) {
      if (t > 0) x[b * longest + t] = words[b][t - 1];
      targets.push_back(t < words[b].size() ? words[b][t] : kStop);
      valid.push_back(static_cast<std::int64_t>(b * longest + t));
    }
  const Tensor logits = net(Tensor::from(x, {std::ssize(words), static_cast<std::int64_t>(longest)}));
  const Tensor rows = index_select(reshape(logits, {-1, kVocabulary}), 0, Tensor::from(valid, {std::ssize(valid)}));
  return nn::cross_entropy(rows, Tensor::from(targets, {std::ssize(targets)}));
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_SOURCE "/README.md";
  std::int64_t epochs = 4;
  CLI::App app("Learns the words of a text, letter by letter, and makes up new ones");
  app.add_option("FILE", path, "A text"), app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const std::vector<Tokens> words = read_words(path);
  const auto held_out = std::span(words).first(words.size() / 10), training = std::span(words).subspan(held_out.size());
  const auto net = dsl::tokens(kVocabulary).embedding(32).gru(64).linear(kVocabulary).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  train::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0, epochs, std::ssize(training));
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    progress.begin_epoch();
    for (std::size_t at = 0; at < training.size(); at += 64) {
      const auto batch = training.subspan(at, std::min<std::size_t>(64, training.size() - at));
      Tape tape;
      const Tensor loss = loss_of(net, batch);
      adam.step(tape.grad(loss, net.parameters()));
      progress.batch(std::ssize(batch), loss.item<float>());
    }
    progress.end_epoch("held out " + std::to_string(loss_of(net, held_out).item()) + " nats a letter");
  }
  nn::Stream stream = net.stream();
  std::vector<float> logits(kVocabulary);
  for (std::uint64_t seed = 0; seed < 10; ++seed, stream.reset())
    for (std::int64_t n = 0, last = kStop; n < 20 && (n == 0 || last != kStop); ++n) {
      stream.step(std::span(&last, 1), logits);  // the largest of logits plus Gumbel noise: a draw from their softmax
      const Tensor noise = -log(-log(uniform({kVocabulary}, {seed, static_cast<std::uint64_t>(n), 0}, 1e-9, 1)));
      last = argmax(Tensor::from(logits, {kVocabulary}) / 0.8 + noise).item<std::int64_t>();
      std::cout << (last == kStop ? '\n' : static_cast<char>('a' + last - 1));
    }
} catch (const std::exception& e) {
  std::cerr << "words: " << e.what() << '\n';
  return 1;
}
