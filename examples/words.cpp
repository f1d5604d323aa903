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

/// Each letter, and the end, from those before.
train::Dataset examples_of(std::span<const Tokens> words) {
  std::vector<Tensor> x, y;
  for (Tokens word : words) {
    word.push_back(kStop);
    y.push_back(Tensor::from(word, {std::ssize(word)}));
    std::ranges::rotate(word, word.end() - 1);
    x.push_back(Tensor::from(word, {std::ssize(word)}));
  }
  return {{train::sequences(x), train::sequences(y)}};
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
  const train::DataLoader loader(examples_of(training), {.batch_size = 64});
  const train::DataLoader validation(examples_of(held_out), {.batch_size = 64, .shuffle = false});
  train::fit(net, loader,
             {.loss = "cross_entropy",  // in nats a letter
              .optimizer = &adam,
              .epochs = epochs,
              .validation = &validation,
              .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)}});
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
