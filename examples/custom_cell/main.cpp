// Four custom recurrent cells, trained on the same task: to remember the first of ten symbols.
#include <cstdio>

#include "cells.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kSymbols = 8, kSteps = 10, kUnits = 32, kBatch = 32;

/// Returns the accuracy after `steps` steps of training.
double accuracy_of(dsl::Builder chain, int steps) {
  const auto net = chain.last_step().linear(kSymbols).build(1);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  const auto draw = [](std::uint64_t k) {
    const Tensor u = uniform({kBatch, kSteps}, {3, k, 0}, 0, kSymbols);
    return cast(u, Dtype::i64);
  };
  for (int k = 0; k < steps; ++k) {
    const Tensor symbols = draw(static_cast<std::uint64_t>(k));
    Tape tape;
    const Tensor logits = net(one_hot(symbols, kSymbols));
    adam.step(tape.grad(nn::cross_entropy(logits, reshape(slice(symbols, 1, 0, 1), {kBatch})), net.parameters()));
  }
  const Tensor symbols = draw(1'000'000);
  const Tensor guess = argmax(net(one_hot(symbols, kSymbols)), 1);
  const Tensor right = eq(guess, reshape(slice(symbols, 1, 0, 1), {kBatch}));
  return mean(cast(right, Dtype::f64)).item<double>();
}

}  // namespace

int main() {
  const auto report = [](const char* name, double accuracy) { std::printf("%-18s accuracy %.2f\n", name, accuracy); };
  const auto chain = [] { return dsl::sequence(kSymbols); };
  report("plain GRU", accuracy_of(chain().recurrent<cells::PlainGru>(kUnits), 600));
  report("peephole LSTM", accuracy_of(chain().recurrent<cells::PeepholeLstm>(kUnits), 600));
  report("minimal gated unit", accuracy_of(chain().recurrent<cells::MinimalGated>(kUnits), 600));
  report("layer-norm GRU", accuracy_of(chain().recurrent<nn::LayerNormGruCell>(kUnits), 600));
}
