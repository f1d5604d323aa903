// A transformer learns first names, letter by letter, and then makes up new ones from its cache.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kVocabulary = 27, kLongest = 16;  // 0 begins and ends a name, then a..z

/// Names in rows: x [N, kLongest] begins with 0, y is one letter ahead and ends with 0, the last that counts.
struct Names {
  Tensor x, y, lengths;

  std::int64_t size() const { return x.shape()[0]; }
  Names at(const Tensor& rows) const {
    return {index_select(x, 0, rows), index_select(y, 0, rows), index_select(lengths, 0, rows)};
  }
};

Names read_names(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw IoError(path + ": cannot be opened");
  std::vector<std::int64_t> x, y, lengths;
  for (std::string name; in >> name;) {
    if (std::ssize(name) >= kLongest) continue;
    for (std::int64_t t = 0; t < kLongest; ++t) {
      const auto letter = [&](std::int64_t i) {
        return i >= 0 && i < std::ssize(name) ? name[static_cast<std::size_t>(i)] - 'a' + 1 : 0;
      };
      x.push_back(letter(t - 1)), y.push_back(letter(t));
    }
    lengths.push_back(std::ssize(name) + 1);
  }
  const Shape shape{std::ssize(lengths), kLongest};
  return {Tensor::from(x, shape), Tensor::from(y, shape), Tensor::from(lengths, {std::ssize(lengths)})};
}

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/names.txt";
  std::int64_t epochs = 8;
  std::uint64_t seed = 0;
  CLI::App app("Learns first names and fails above 2.05 nats a letter of those that it has not seen");
  app.add_option("FILE", path, "Names in small letters"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Names all = read_names(path);
  const Tensor order = permutation(all.size(), {seed, stream_of("split"), 0});
  const std::int64_t held = all.size() / 10;
  const Names held_out = all.at(slice(order, 0, 0, held)), training = all.at(slice(order, 0, held, all.size()));
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
  const auto loss_of = [&](const Names& names) {
    return nn::cross_entropy(net(names.x), names.y, {.classes_last = true, .lengths = names.lengths});
  };
  nn::AdamW adam(net.parameters(), {.learning_rate = 2e-3});
  nn::FunctionSchedule schedule(adam, nn::cosine_rate(epochs));
  const auto step = compile([&](const Tensor& x, const Tensor& y, const Tensor& lengths) {
    Tape tape;
    const Tensor loss = loss_of({x, y, lengths});
    adam.step(nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1).grads);
    return loss;
  });
  double held_loss = 0;
  train::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0, epochs, training.size());
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    progress.begin_epoch();
    const Tensor places = permutation(training.size(), {seed, stream_of("order"), static_cast<std::uint64_t>(epoch)});
    for (const Tensor& rows : split(places, 32)) {
      const Names batch = training.at(rows);
      progress.batch(batch.size(), step(batch.x, batch.y, batch.lengths).item());
    }
    schedule.advance();
    net.eval();
    held_loss = static_cast<double>(loss_of(held_out).item());
    net.train();
    progress.end_epoch("held out " + std::to_string(held_loss) + " nats a letter");
  }
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
