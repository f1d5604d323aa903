// The demo's training over several seeds: test accuracy and seconds. Given the file of recordings.
#include <cstdio>
#include <cstdlib>

#include "ferrite/ferrite.h"
#include "timing.h"

using namespace ferrite;
using train::Batch;
using train::SequenceSet;

namespace {

SequenceSet part(const io::TensorFile& file, const std::string& name) {
  return {file.tensor(name + ".x"), file.tensor(name + ".lengths"), file.tensor(name + ".labels")};
}

double accuracy(const dsl::Network& net, const SequenceSet& data) {
  double right = 0;
  for (const Batch& b : train::batches(data, 64, {.shuffle = false}))
    right += nn::accuracy(net(b.x, b.context()), b.y) * static_cast<double>(b.size());
  return right / static_cast<double>(data.size());
}

double trained_accuracy(const SequenceSet& training, const SequenceSet& test, std::uint64_t seed) {
  const auto net = dsl::sequence(12).gru(64).last_step().linear(9).build(seed);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  for (std::int64_t epoch = 0; epoch < 60; ++epoch)
    for (const Batch& b : train::batches(training, 32, {.seed = seed, .epoch = epoch})) {
      Tape tape;
      const Tensor loss = nn::cross_entropy(net(b.x, b.context()), b.y);
      adam.step(tape.grad(loss, net.parameters()));
    }
  return accuracy(net, test);
}

}  // namespace

int main(int argc, char** argv) {
  const io::TensorFile file = io::read_safetensors(argc > 1 ? argv[1] : "data/japanese_vowels.safetensors");
  const int seeds = argc > 2 ? std::atoi(argv[2]) : 5;
  const SequenceSet training = part(file, "train");
  const SequenceSet test = part(file, "test");
  double total = 0;
  const double start = bench::now();
  for (int seed = 0; seed < seeds; ++seed) {
    const double a = trained_accuracy(training, test, static_cast<std::uint64_t>(seed));
    std::printf("seed %d: test accuracy %.2f%%\n", seed, 100 * a);
    total += a;
  }
  std::printf("mean %.2f%%, %.2f s of training each\n", 100 * total / seeds, (bench::now() - start) / seeds);
}
