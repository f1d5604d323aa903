// A transformer learns first names, letter by letter, and then makes up new ones from its cache.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

using namespace ferrite;

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/names.txt", out = ".";
  std::int64_t epochs = 8;
  std::uint64_t seed = 0;
  CLI::App app("Learns first names and fails above 2.05 nats a letter of those that it has not seen");
  app.add_option("FILE", path, "Names in small letters"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber), app.add_option("--out", out, "A folder");
  CLI11_PARSE(app, argc, argv);

  constexpr std::int64_t kLongest = 16;
  const train::Characters letters(".abcdefghijklmnopqrstuvwxyz");  // the first character begins and ends a name
  std::vector<Tensor> names;
  std::istringstream text(io::read_text(path));
  for (std::string name; text >> name;)
    if (std::ssize(name) < kLongest) names.push_back(letters.tokens(name));
  const auto parts = train::split(train::next_tokens(names, 0), {0.9, 0.1}, {.seed = seed});
  const train::DataLoader training(parts[0], {.seed = seed}), held_out(parts[1], {.batch_size = 512, .shuffle = false});

  nn::TransformerLayerOptions block{.dim_feedforward = 128, .dropout = 0.1, .activation = "gelu"};
  block.norm_first = block.causal = true, block.capacity = kLongest + 1;
  dsl::Builder words = dsl::tokens(letters.size()).embedding(48).positions(kLongest + 1);
  words.repeat(2, [&](dsl::Builder& b) { b.transformer(4, block); }).layer_norm().linear(letters.size());
  const auto net = words.build(seed);
  std::cout << net.summary() << '\n';
  nn::AdamW adam(net.parameters(), {.learning_rate = 2e-3});
  nn::CosineSchedule schedule(adam, epochs);
  train::FitOptions options{
      .loss = "cross_entropy_classes_last", .optimizer = &adam, .epochs = epochs};  // in nats a letter
  options.validation = &held_out, options.clip_norm = 1, options.schedule = &schedule, options.schedule_by_epoch = true;
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal()),
                       train::Curves(out + "/names.svg", {}, "Nats a letter")};
  const double held_loss = train::fit(net, training, options)["val_loss"].back();

  net.eval();
  nn::Stream stream = net.stream();  // each step reads the keys and values of the steps before
  for (std::uint64_t name = 0; name < 12; ++name, stream.reset())
    std::cout << letters.text(nn::generate(
                     stream, letters.tokens("."),
                     {.length = kLongest, .stop = 0, .sampling = {.temperature = 0.8}, .seed = seed, .sequence = name}))
              << (name % 6 == 5 ? '\n' : ' ');
  std::cout << "held out " << held_loss << " nats a letter\n";
  return held_loss <= 2.05 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "names: " << e.what() << '\n';
  return 1;
}
