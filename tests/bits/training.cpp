// Training steps of every optimiser.
#include "bits/results.h"
#include "ferrite/ferrite.h"

namespace bits {
namespace {

using namespace ferrite;

constexpr int kSteps = 12;

/// Returns the losses, norms of gradients and parameters of some steps of a small recurrent net with dropout.
template <class Optimizer, class Options>
Tensors trained(const Options& options) {
  dsl::Network net =
      dsl::sequence(5).gru(17).layer_norm().dropout(0.2).last_step().linear(20).gelu().linear(4).build(6);
  net.train();
  Optimizer optimizer(net.parameters(), options);
  const Tensor x = uniform({6, 9, 5}, {31, 1, 0}, -1, 1);
  const Tensor classes = cast(uniform({6}, {31, 2, 0}, 0, 4), Dtype::i64);
  Tensors all;
  for (int i = 0; i < kSteps; ++i) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), classes);
    const nn::ClippedGradients g = nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1.0);
    optimizer.step(g.grads);
    all.push_back(loss);
    all.push_back(g.norm);
  }
  for (const Parameter& p : net.parameters()) all.push_back(p.peek());
  return all;
}

/// Returns a large parameter after some steps with random gradients.
template <class Optimizer>
Tensors updated() {
  const Parameter w("w", uniform({200, 131}, {32, 1, 0}, -1, 1));
  Optimizer optimizer({w});
  for (std::uint64_t i = 0; i < 4; ++i) optimizer.step(Tensors{normal({200, 131}, {32, 2 + 2 * i, 0})});
  return {w.peek()};
}

template <class Optimizer, class Options>
Result training(const std::string& name, const Options& options) {
  return {"training/" + name, [=] { return trained<Optimizer>(options); }};
}

}  // namespace

std::vector<Result> training_results() {
  return {{"training/adam_large", updated<nn::Adam>},
          {"training/rmsprop_large", updated<nn::RmsProp>},
          training<nn::Sgd>("sgd", nn::SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}),
          training<nn::Adam>("adam", nn::AdamOptions{.learning_rate = 0.01}),
          training<nn::AdamW>("adamw", nn::AdamOptions{.learning_rate = 0.01, .weight_decay = 0.1}),
          training<nn::RmsProp>("rmsprop", nn::RmsPropOptions{.momentum = 0.9, .centered = true}),
          training<nn::Adagrad>("adagrad", nn::AdagradOptions{}),
          training<nn::Adadelta>("adadelta", nn::AdadeltaOptions{}),
          training<nn::Adamax>("adamax", nn::AdamaxOptions{}),
          training<nn::NAdam>("nadam", nn::NAdamOptions{}),
          training<nn::RAdam>("radam", nn::RAdamOptions{}),
          training<nn::Lion>("lion", nn::LionOptions{}),
          training<nn::Adafactor>("adafactor", nn::AdafactorOptions{})};
}

std::vector<Result> all_results() {
  std::vector<Result> all;
  for (const std::vector<Result>& part :
       {operation_results(), large_results(), layer_results(), training_results(), program_results()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace bits
