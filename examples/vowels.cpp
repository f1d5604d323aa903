// Who is speaking? A GRU learns nine speakers from recordings of two Japanese vowels, and weights trained in PyTorch
// reproduce PyTorch's outputs.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace {

using namespace ferrite;
using train::Dataset;

struct Options {
  std::int64_t hidden = 64;
  std::int64_t epochs = 60;
  std::int64_t batch = 32;
  std::uint64_t seed = 0;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::filesystem::path data = FERRITE_DATA "/japanese_vowels.safetensors";
  std::filesystem::path weights = FERRITE_DATA "/vowels_torch.safetensors";
  std::filesystem::path out = ".";
};

constexpr std::int64_t kFeatures = 12, kSpeakers = 9;

struct Vowels {
  Dataset training, test;
};

Vowels read_vowels(const std::filesystem::path& path) {
  const io::TensorFile file = io::read_safetensors(path);
  const auto part = [&](const std::string& name) {
    return Dataset(
        {train::sequences(file.tensor(name + ".x"), file.tensor(name + ".lengths")), file.tensor(name + ".labels")});
  };
  return {part("train"), part("test")};
}

dsl::Network build(std::int64_t hidden, std::uint64_t seed) {
  return dsl::sequence(kFeatures).gru(hidden).last_step().linear(kSpeakers).build(seed);
}

/// Trains, and draws the loss and the test accuracy.
void train_net(const dsl::Network& net, const Vowels& data, const Options& o) {
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const train::DataLoader training(data.training, {.batch_size = o.batch, .seed = o.seed});
  const train::DataLoader test(data.test, {.batch_size = 64, .shuffle = false});
  train::fit(net, training,
             {.loss = "cross_entropy",
              .optimizer = &adam,
              .epochs = o.epochs,
              .validation = &test,
              .metrics = {"accuracy"},
              .callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal()),
                            train::Curves(o.out / "loss.svg", {"loss", "val_accuracy"}, "Who is speaking?")}});
}

/// Saves the network, loads it into a fresh one and compares all logits bit for bit.
void check_reload(const dsl::Network& net, const Vowels& data, const Options& o) {
  const std::filesystem::path path = o.out / "vowels.safetensors";
  io::save(net, path);
  const dsl::Network again = build(o.hidden, o.seed + 1);
  io::load(again, path);
  if (sum(ne(train::predict(net, data.test), train::predict(again, data.test))).item<std::int64_t>() != 0)
    throw Error("reloaded weights give other logits");
  std::cout << "saved to " << path.string() << ", reloaded: the same logits to the bit\n";
}

/// Weights of the same net trained in PyTorch, and PyTorch's logits.
struct Reference {
  io::TensorFile weights, expected;
};

Reference read_reference(const std::filesystem::path& path) {
  std::filesystem::path logits = path;
  logits.replace_filename(path.stem().string() + "_logits" + path.extension().string());
  return {io::read_safetensors(path), io::read_safetensors(logits)};
}

void check_pytorch(const Vowels& data, const Reference& reference) {
  const io::TensorFile& expected = reference.expected;
  const dsl::Network net = build(reference.weights.tensor("0.weight_hh_l0").shape()[1], 0);
  io::load(net, reference.weights);
  const Tensor logits = train::predict(net, data.test);
  const float gap = amax(abs(logits - expected.tensor("logits"))).item();
  const std::int64_t differing = sum(ne(argmax(logits, 1), expected.tensor("predictions"))).item<std::int64_t>();
  std::cout << "weights trained in PyTorch: logits within " << gap << " of PyTorch's, " << data.test.size() - differing
            << " of " << data.test.size() << " predictions the same, accuracy "
            << 100 * nn::accuracy(logits, data.test.all().y()) << "%\n";
  if (!(gap <= 1e-5F) || differing != 0) throw Error("the numbers are not PyTorch's");
}

void run(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  set_threads(o.threads);
  const Vowels data = read_vowels(o.data);
  const Reference reference = read_reference(o.weights);  // a missing file is reported before the training
  std::filesystem::create_directories(o.out);
  std::cout << data.training.size() << " training recordings, " << data.test.size() << " test recordings\n\n";
  const dsl::Network net = build(o.hidden, o.seed);
  std::cout << net.summary() << '\n';
  train_net(net, data, o);

  train::Confusion confusion(kSpeakers);
  confusion.add(argmax(train::predict(net, data.test), 1), data.test.all().y());
  std::cout << "\n" << confusion.str() << "test accuracy " << 100 * confusion.accuracy() << "%\n\n";
  std::cout << "training curves in " << (o.out / "loss.svg").string() << '\n';
  check_reload(net, data, o);
  check_pytorch(data, reference);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << "done in " << seconds.count() << " s\n";
}

/// Refuses negative numbers, because CLI11 reads "-1" as a large unsigned number.
std::string not_negative(const std::string& text) {
  return text.starts_with('-') ? "must not be negative: " + text : "";
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Learns to recognise nine speakers in recordings of Japanese vowels"};
  app.add_option("--hidden", o.hidden, "size of the GRU's state")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--epochs", o.epochs, "passes over the training set")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "fixes weights and order")->check(not_negative)->capture_default_str();
  app.add_option("--threads", o.threads, "threads to use")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--data", o.data, "recordings (safetensors)")->capture_default_str();
  app.add_option("--weights", o.weights, "weights trained in PyTorch (safetensors)")->capture_default_str();
  app.add_option("--out", o.out, "folder for loss.svg and the trained weights")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(o);
  } catch (const std::exception& e) {
    std::cerr << "vowels: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
