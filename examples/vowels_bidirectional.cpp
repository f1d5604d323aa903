// The demo's task, who is speaking?, with a two-layer bidirectional LSTM.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

namespace {

train::Dataset part(const io::TensorFile& file, const std::string& name) {
  return {{train::sequences(file.tensor(name + ".x"), file.tensor(name + ".lengths")), file.tensor(name + ".labels")}};
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
  const train::DataLoader training(part(file, "train"), {.seed = seed});
  const train::DataLoader test(part(file, "test"), {.batch_size = 64, .shuffle = false});
  const auto net = dsl::sequence(12)
                       .lstm(hidden, {.layers = 2, .bidirectional = true, .dropout = 0.2})
                       .mean_over_time()
                       .linear(9)
                       .build(seed);
  std::cout << net.summary();
  nn::AdamW adam(net.parameters(), {.learning_rate = 3e-3});
  nn::CosineSchedule schedule(adam, epochs);
  train::fit(net, training,
             {.loss = "cross_entropy",
              .optimizer = &adam,
              .epochs = epochs,
              .metrics = {"accuracy"},
              .callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())},
              .clip_norm = 1,
              .schedule = &schedule,
              .schedule_by_epoch = true});
  const train::Logs logs = train::evaluate(net, test, {.loss = "cross_entropy", .metrics = {"accuracy"}});
  std::cout << "test accuracy " << 100 * logs["accuracy"] << "%\n";
} catch (const std::exception& e) {
  std::cerr << "vowels_bidirectional: " << e.what() << '\n';
  return 1;
}
