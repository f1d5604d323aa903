#pragma once
/// Writing a step of training as C, for devices that learn.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/freeze.h"
#include "ferrite/exchange/freeze/training.h"

namespace ferrite::exchange {

/// A function of tensors that a device also runs with the weights that it trains, such as the net's forward pass.
struct FrozenPrediction {
  std::function<Tensors(const Tensors&)> function{};  ///< null: there is none
  std::vector<Spec> inputs{};                         ///< the types of its inputs
  /// The names of its inputs and results; empty: x, x1, ..., y, y1, ...
  std::vector<std::string> input_names{}, output_names{};
};

/// Writes a step of training as C, with the bits of training in the library:
///
///   nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
///   const auto loss = [&](const Tensors& in) { return nn::mse_loss(net(in[0]), in[1]); };  // x, target
///   const auto step = exchange::training_step(loss, adam, std::vector<Spec>{{{1, 32, 2}}, {{1, 32, 1}}});
///   const exchange::FrozenNet c = exchange::freeze_training(step, {.name = "learner"});
///
/// The struct `learner` holds the variables as members with their names: weights, moments, the number of updates, the
/// learning rate. `learner_init` gives them their present values, `learner_train(n, x, target, loss)` makes a step, and
/// `learner_save` and `learner_restore` keep them. `learner_check` makes 8 stored steps and compares their losses. With
/// `predict`, `learner_predict(n, x, y)` runs that function with the present weights. Nothing is allocated: all memory
/// is the struct and the stack, of which working memory takes at most 8 KiB.
///
/// Inputs are called x and target, and the output loss, unless `options` says otherwise; more are x2, ..., y1, ...
/// Throws ExportError for operations that have no form in C and for variables that are assigned the value of another
/// one, and ValueError for a name that is no identifier and for a prediction that assigns variables or reads others
/// than the step does.
FrozenNet freeze_training(const TrainingStep& step, const FreezeOptions& options = {},
                          const FrozenPrediction& predict = {});

}  // namespace ferrite::exchange
