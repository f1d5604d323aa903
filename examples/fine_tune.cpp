// Fine-tuning: a GRU that PyTorch trained to tell nine speakers apart learns from a few recordings which three groups
// they belong to, first its new head alone, then the whole net at a lower rate.
#include <ferrite/ferrite.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

namespace {

train::Dataset part(const std::string& path, const std::string& name) {
  const io::TensorFile file = io::read_safetensors(path);
  const Tensor group = floor_divide(cast(file.tensor(name + ".labels"), Dtype::i64), full({}, 3, Dtype::i64));
  return {{train::sequences(file.tensor(name + ".x"), file.tensor(name + ".lengths")), group}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/japanese_vowels.safetensors", weights = FERRITE_DATA "/vowels_torch.safetensors";
  std::uint64_t seed = 0;
  CLI::App app("Fine-tunes a net from PyTorch and fails below 90 % of the test recordings");
  app.add_option("--data", path), app.add_option("--weights", weights), app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);

  const train::Dataset all = part(path, "train"),
                       few = train::split(all, {0.2}, {.seed = seed, .stratify = all.all().y()})[0];
  const train::DataLoader training(few, {.batch_size = 8, .seed = seed}), test(part(path, "test"), {.shuffle = false});
  const auto net = dsl::sequence(12).gru(64).last_step().linear(3, "head").build(seed);
  io::load(net, io::read_safetensors(weights), {.strict = false});  // "0.*" of the GRU; the old head is left out
  const auto accuracy = [&] {
    return train::evaluate(net, test, {.loss = "cross_entropy", .metrics = {"accuracy"}})["accuracy"];
  };
  const auto train_on = [&](nn::Optimizer& optimizer, std::int64_t epochs) {
    train::fit(net, training, {.loss = "cross_entropy", .optimizer = &optimizer, .epochs = epochs, .clip_norm = 1});
    std::cout << "test accuracy " << 100 * accuracy() << " %\n";
  };
  std::cout << few.size() << " recordings to learn from\n";
  const std::vector<Parameter> parameters = net.parameters();
  nn::Adam adam({parameters.end() - 2, parameters.end()}, {.learning_rate = 1e-2});
  train_on(adam, 20);
  nn::Adam slow(parameters, {.learning_rate = 3e-4});
  train_on(slow, 20);
  return accuracy() >= 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "fine_tune: " << e.what() << '\n';
  return 1;
}
