// Fine-tuning: a GRU that PyTorch trained to distinguish nine speakers learns from a few recordings which of three
// groups they belong to, first its new head alone, then the whole net at a lower rate.
#include <ferrite/ferrite.h>

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
  std::string path = FERRITE_DATA "/japanese_vowels.safetensors", out = ".",
              weights = FERRITE_DATA "/vowels_torch.safetensors";
  std::uint64_t seed = 0;
  CLI::App app("Fine-tunes a net from PyTorch and fails below 90 % of the test recordings");
  app.add_option("--data", path), app.add_option("--weights", weights), app.add_option("--seed", seed);
  app.add_option("--out", out, "A folder");
  CLI11_PARSE(app, argc, argv);

  const train::Dataset all = part(path, "train"),
                       few = train::split(all, {0.2}, {.seed = seed, .stratify = all.all().y()})[0];
  const train::DataLoader training(few, {.batch_size = 8, .seed = seed}), test(part(path, "test"), {.shuffle = false});
  const auto net = dsl::sequence(12).gru(64).last_step().linear(3, "head").build(seed);
  io::load(net, io::read_safetensors(weights), {.strict = false});  // loads "0.*", the GRU; leaves out the old head
  const auto train_on = [&](nn::Optimizer& optimizer, std::int64_t epochs) {
    train::FitOptions options{.loss = "cross_entropy", .optimizer = &optimizer, .epochs = epochs, .validation = &test};
    options.metrics = {"accuracy"}, options.clip_norm = 1;
    const train::History history = train::fit(net, training, options);
    std::cout << "test accuracy " << 100 * history["val_accuracy"].back() << " %\n";
    return history["val_accuracy"];
  };
  std::cout << few.size() << " recordings to learn from\n";
  const std::vector<Parameter> parameters = net.parameters();
  nn::Adam adam({parameters.end() - 2, parameters.end()}, {.learning_rate = 1e-2});
  const std::vector<double> head = train_on(adam, 20);
  nn::Adam slow(parameters, {.learning_rate = 3e-4});
  const std::vector<double> whole = train_on(slow, 20);
  const Tensor epoch = arange(1, 41);
  train::write_line_chart(
      out + "/fine_tune.svg",
      {train::Series::of("its new head", slice(epoch, 0, 0, 20), Tensor::from(head, {20})),
       train::Series::of("all of it", slice(epoch, 0, 20), Tensor::from(whole, {20}))},
      {.title = "Test accuracy while a part is trained", .x_label = "epoch", .y_label = "accuracy"});
  return whole.back() >= 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "fine_tune: " << e.what() << '\n';
  return 1;
}
