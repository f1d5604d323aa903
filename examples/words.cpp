// A GRU learns the words of any text, letter by letter, and then makes up new ones.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <set>
#include <sstream>

using namespace ferrite;

/// Returns the words of a text, each once, in lower case.
std::set<std::string> read_words(const std::string& path) {
  std::istringstream in(io::read_text(path));
  std::set<std::string> words;
  for (std::string text; in >> text;) {
    std::string word;
    for (const char c : text)
      if (std::isalpha(static_cast<unsigned char>(c)) && word.size() < 20) word += static_cast<char>(c | 0x20);
    if (!word.empty()) words.insert(word);
  }
  if (words.size() < 20) throw IoError(path + ": has fewer than 20 words");
  return words;
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_SOURCE "/README.md", out = ".";
  std::int64_t epochs = 4;
  CLI::App app("Learns the words of a text, letter by letter, and makes up new ones");
  app.add_option("FILE", path, "A text"), app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  app.add_option("--out", out, "A folder");
  CLI11_PARSE(app, argc, argv);

  const train::Characters letters(".abcdefghijklmnopqrstuvwxyz");  // the first character begins and ends a word
  std::vector<Tensor> words;
  for (const std::string& word : read_words(path)) words.push_back(letters.tokens(word));
  const auto parts = train::split(train::next_tokens(words, 0), {0.9, 0.1});
  const train::DataLoader training(parts[0], {.batch_size = 64});
  const train::DataLoader held_out(parts[1], {.batch_size = 64, .shuffle = false});

  const auto net = dsl::tokens(letters.size()).embedding(32).gru(64).linear(letters.size()).build(/*seed=*/0);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  train::FitOptions options{
      .loss = "cross_entropy_classes_last", .optimizer = &adam, .epochs = epochs};  // in nats a letter
  options.validation = &held_out;
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal()),
                       train::Curves(out + "/words.svg", {}, "Nats a letter")};
  train::fit(net, training, options);

  nn::Stream stream = net.stream();
  for (std::uint64_t seed = 0; seed < 10; ++seed, stream.reset())
    std::cout << letters.text(nn::generate(stream, letters.tokens("."),
                                           {.length = 20, .stop = 0, .sampling = {.temperature = 0.8}, .seed = seed}))
              << '\n';
} catch (const std::exception& e) {
  std::cerr << "words: " << e.what() << '\n';
  return 1;
}
