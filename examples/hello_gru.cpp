// A GRU learns to distinguish rising sequences from falling ones.
#include <ferrite/ferrite.h>

#include <iostream>

using namespace ferrite;

int main() {
  auto net = dsl::sequence(1).gru(16).last_step().linear(2).build(/*seed=*/0);
  std::cout << net.summary();

  const Tensor slope = uniform({64, 1, 1}, {.seed = 1}, -1, 1);
  const Tensor x = slope * reshape(linspace(0, 1, 10), {1, 10, 1});  // [B, T, D]
  const Tensor y = cast(gt(reshape(slope, {64}), 0), Dtype::i64);

  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  for (int step = 0; step < 60; ++step) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), y);
    adam.step(tape.grad(loss, net.parameters()));
    if (step % 20 == 19) std::cout << "step " << step + 1 << ": loss " << loss.item() << '\n';
  }
  std::cout << "accuracy " << nn::accuracy(net(x), y) << '\n';
}
