#pragma once
/// Steps of training as programs that can be printed as C, for devices that learn.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::exchange {

/// A step of training: its inputs are a batch, its outputs the loss, and its variables what the step reads and assigns.
struct TrainingStep {
  /// The program. Its operations are those of tensors, scans with sums, and Adam's `adam_begin`. Replayed, or printed
  /// as C, it assigns the bits that training in the library assigns.
  Graph graph;
  /// Names of the variables as C identifiers, in the order of `graph.variables`: "gru_weight_hh_l0",
  /// "exp_avg_gru_weight_hh_l0", "step", "learning_rate".
  std::vector<std::string> names;
};

/// Returns one step of training as a program:
///
///   nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
///   const auto loss = [&](const Tensors& in) { return nn::mse_loss(net(in[0]), in[1]); };  // x, target
///   const auto step = exchange::training_step(loss, adam, std::vector<Spec>{{{1, 32, 2}}, {{1, 32, 1}}});
///
/// The step computes the loss, its gradients with respect to the optimiser's parameters, and the optimiser's update, in
/// one program. Nothing is computed here and no variable changes. Recurrent layers run in their default form, fused,
/// and keep its bits: their steps are loops in the program. A loss of several tensors gives them all; the first one is
/// differentiated.
///
/// Throws ValueError for a null function and one that draws random numbers (dropout: call `eval`); ExportError for
/// recurrent layers without a plain form: lengths, resets, projections, and cells other than the GRU with the reset
/// after the product, the LSTM and the Elman network; TraceError for an optimiser with `skip_nonfinite`; and whatever
/// the function and the optimiser throw.
TrainingStep training_step(const std::function<Tensors(const Tensors&)>& loss, nn::Optimizer& optimizer,
                           std::span<const Spec> inputs);
TrainingStep training_step(const std::function<Tensor(const Tensors&)>& loss, nn::Optimizer& optimizer,
                           std::span<const Spec> inputs);

/// Returns a program for a step of training that the caller writes, such as one that clips gradients:
///
///   const auto step = exchange::training_program([&](const Tensors& in) {
///     Tape tape;
///     const Tensor loss = nn::mse_loss(net(in[0]), in[1]);
///     adam.step(nn::clip_grad_norm(tape.grad(loss, net.parameters()), 1).grads);
///     return Tensors{loss};
///   }, inputs, &adam);
///
/// The optimiser, which may be null, only gives its variables their names. Throws as `training_step` does.
TrainingStep training_program(const std::function<Tensors(const Tensors&)>& step, std::span<const Spec> inputs,
                              const nn::Optimizer* optimizer = nullptr);

}  // namespace ferrite::exchange
