// The demo's training over several seeds: test accuracy and seconds. Takes the file of recordings as an argument.
#include <cstdio>
#include <cstdlib>

#include "ferrite/ferrite.h"
#include "timing.h"

using namespace ferrite;
namespace {

train::Dataset part(const io::TensorFile& file, const std::string& name) {
  return {{train::sequences(file.tensor(name + ".x"), file.tensor(name + ".lengths")), file.tensor(name + ".labels")}};
}

double trained_accuracy(const train::Dataset& training, const train::Dataset& test, std::uint64_t seed) {
  const auto net = dsl::sequence(12).gru(64).last_step().linear(9).build(seed);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const train::DataLoader loader(training, {.seed = seed});
  train::fit(net, loader, {.loss = "cross_entropy", .optimizer = &adam, .epochs = 60});
  return nn::accuracy(train::predict(net, test), test.all().y());
}

}  // namespace

int main(int argc, char** argv) {
  const io::TensorFile file = io::read_safetensors(argc > 1 ? argv[1] : "data/japanese_vowels.safetensors");
  const int seeds = argc > 2 ? std::atoi(argv[2]) : 5;
  const train::Dataset training = part(file, "train");
  const train::Dataset test = part(file, "test");
  double total = 0;
  const double start = bench::now();
  for (int seed = 0; seed < seeds; ++seed) {
    const double a = trained_accuracy(training, test, static_cast<std::uint64_t>(seed));
    std::printf("seed %d: test accuracy %.2f%%\n", seed, 100 * a);
    total += a;
  }
  std::printf("mean %.2f%%, %.2f s of training each\n", 100 * total / seeds, (bench::now() - start) / seeds);
}
