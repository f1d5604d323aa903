// A transformer learns first names, letter by letter, and then makes up new ones from its cache.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kVocabulary = 27, kLongest = 16;  // 0 begins and ends a name, then a..z

/// Names as examples: x begins with 0, y is one letter ahead and ends with 0.
train::Dataset read_names(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw IoError(path + ": cannot be opened");
  std::vector<Tensor> x, y;
  for (std::string name; in >> name;) {
    if (std::ssize(name) >= kLongest) continue;
    std::vector<std::int64_t> letters = {0};
    for (const char c : name) letters.push_back(c - 'a' + 1);
    x.push_back(Tensor::from(letters, {std::ssize(letters)}));
    std::rotate(letters.begin(), letters.begin() + 1, letters.end());
    y.push_back(Tensor::from(letters, {std::ssize(letters)}));
  }
  return {{train::sequences(x), train::sequences(y)}};
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/names.txt";
  std::int64_t epochs = 8;
  std::uint64_t seed = 0;
  CLI::App app("Learns first names and fails above 2.05 nats a letter of those that it has not seen");
  app.add_option("FILE", path, "Names in small letters"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const std::vector<train::Dataset> parts = train::split(read_names(path), {0.9, 0.1}, {.seed = seed});
  const train::DataLoader training(parts[0], {.seed = seed}), held_out(parts[1], {.batch_size = 512, .shuffle = false});
  const auto block = [](dsl::Builder& b) {
    b.transformer(4, {.dim_feedforward = 128,
                      .dropout = 0.1,
                      .activation = "gelu",
                      .norm_first = true,
                      .causal = true,
                      .capacity = kLongest + 1});
  };
  const auto net = dsl::tokens(kVocabulary)
                       .embedding(48)
                       .positions(kLongest + 1)
                       .repeat(2, block)
                       .layer_norm()
                       .linear(kVocabulary)
                       .build(seed);
  std::cout << net.summary() << '\n';
  nn::AdamW adam(net.parameters(), {.learning_rate = 2e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(epochs));
  const train::History history = train::fit(net, training,
                                            {.loss = "cross_entropy",  // in nats a letter
                                             .optimizer = &adam,
                                             .epochs = epochs,
                                             .validation = &held_out,
                                             .callbacks = {train::ProgressBar(std::cout, isatty(STDOUT_FILENO) != 0)},
                                             .clip_norm = 1,
                                             .schedule = &schedule,
                                             .schedule_by_epoch = true});
  const double held_loss = history["val_loss"].back();
  net.eval();
  nn::Stream stream = net.stream();  // each step reads the keys and values of those before
  std::vector<float> logits(kVocabulary);
  for (std::uint64_t name = 0; name < 12; ++name, stream.reset()) {
    std::int64_t last = 0;
    for (std::uint64_t t = 0; t < kLongest && (t == 0 || last != 0); ++t) {
      stream.step(std::span(&last, 1), logits);
      last = sample_logits(Tensor::from(logits, {kVocabulary}), RandomKey{seed, name, t}, {.temperature = 0.8})
                 .item<std::int64_t>();
      if (last != 0) std::cout << static_cast<char>('a' + last - 1);
    }
    std::cout << (name % 6 == 5 ? '\n' : ' ');
  }
  std::cout << "held out " << held_loss << " nats a letter\n";
  return held_loss <= 2.05 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "names: " << e.what() << '\n';
  return 1;
}
