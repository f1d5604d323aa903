#pragma once
/// A training that saves and loads checkpoints, for the tests of them.
#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/train/checkpoint.h"
#include "ferrite/train/data_loader.h"
#include "support/compare.h"

namespace train_test {

using namespace ferrite;

inline dsl::Network network(std::uint64_t seed) {
  return dsl::sequence(3).gru(5, {.layers = 2, .dropout = 0.3}).dropout(0.2).last_step().linear(3).build(seed);
}

inline train::Dataset data() {
  std::vector<std::int64_t> lengths, labels;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    lengths.push_back(2 + i * 7 % 5);
    labels.push_back(i % 3);
    total += lengths.back();
  }
  return {{train::sequences(uniform({total, 3}, {5, 1, 0}, -1, 1), Tensor::from(lengths, {20})),
           Tensor::from(labels, {20})}};
}

/// A model in training.
struct Training {
  explicit Training(std::uint64_t seed) : net(network(seed)), adam(net.parameters(), {.learning_rate = 1e-2}) {}

  /// Trains until the given number of updates have been made.
  void run_to(std::int64_t step) {
    const train::DataLoader loader(data(), {.batch_size = 8, .seed = at.seed});
    while (at.step < step) {
      const train::Batch batch = loader.batch(at.epoch, at.batch);
      Tape tape;
      const Tensor loss = nn::cross_entropy(net(batch.x(), batch.context()), batch.y());
      adam.step(tape.grad(loss, net.parameters()));
      schedule.advance();
      ++at.step;
      if (++at.batch == loader.batches()) at = {at.epoch + 1, 0, at.step, at.seed};
    }
  }
  void save(const std::filesystem::path& path) const { train::save_checkpoint(path, net, adam, at, &schedule); }
  void load(const std::filesystem::path& path) { at = train::load_checkpoint(path, net, adam, &schedule); }

  dsl::Network net;
  nn::AdamW adam;
  nn::CosineSchedule schedule{adam, 40};
  train::Position at{.seed = 9};
};

inline bool equal(const nn::Module& a, const nn::Module& b) {
  for (std::size_t i = 0; i < a.named_parameters().size(); ++i)
    if (!support::identical(a.named_parameters()[i].variable.peek(), b.named_parameters()[i].variable.peek()))
      return false;
  return true;
}

}  // namespace train_test
