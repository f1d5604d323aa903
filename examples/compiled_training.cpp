// Trains with the same step eagerly and compiled: the bits are the same. Prints what the plan does.
#include <ferrite/ferrite.h>

#include <chrono>
#include <iostream>

using namespace ferrite;

namespace {

double microseconds(const std::function<void()>& f, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / calls;
}

}  // namespace

int main() {
  // Two nets with the same weights: one trains eagerly, the other compiled.
  const auto build = [] { return dsl::sequence(12).gru(32).last_step().linear(9).build(/*seed=*/0); };
  auto eager = build();
  auto net = build();
  nn::Adam eager_adam(eager.parameters(), {.learning_rate = 3e-3});
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});

  const auto train = [](const auto& model, nn::Adam& optimizer, const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(model(x), y);
    optimizer.step(tape.grad(loss, model.parameters()));
    return loss;
  };
  const auto step = compile([&](const Tensor& x, const Tensor& y) { return train(net, adam, x, y); });

  bool same = true;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Tensor x = uniform({8, 20, 12}, {.seed = 1, .call = i}, -1, 1);
    const Tensor y = cast(uniform({8}, {.seed = 2, .call = i}, 0, 9), Dtype::i64);
    same = same && step(x, y).item() == train(eager, eager_adam, x, y).item();
  }
  std::cout << "20 losses " << (same ? "are the same to the bit" : "DIFFER") << "\n\n" << step.report().str();

  const Tensor x = uniform({8, 20, 12}, {.seed = 3}, -1, 1);
  const Tensor y = cast(uniform({8}, {.seed = 4}, 0, 9), Dtype::i64);
  std::cout << "\neager    " << microseconds([&] { (void)train(eager, eager_adam, x, y); }, 200) << " us a step\n"
            << "compiled " << microseconds([&] { (void)step(x, y); }, 200) << " us a step\n";
  return same ? 0 : 1;
}
