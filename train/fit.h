#pragma once
/// Training in one call: epochs over a data set, validation, metrics, callbacks, checkpoints.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/nn/optim/schedule.h"
#include "ferrite/train/callback.h"
#include "ferrite/train/callbacks.h"
#include "ferrite/train/loss.h"
#include "ferrite/train/metrics.h"
#include "ferrite/train/parallel.h"

namespace ferrite::train {

/// A metric in `fit`'s list: a name, or an object from metrics.h.
class AnyMetric {
 public:
  AnyMetric(const char* name) : AnyMetric(metric(name)) {}
  AnyMetric(const std::string& name) : AnyMetric(metric(name)) {}
  AnyMetric(std::unique_ptr<Metric> metric) : metric_(std::move(metric)) {}
  Metric* operator->() const { return metric_.get(); }

 private:
  std::shared_ptr<Metric> metric_;
};

/// A step of the user's that makes its own backward passes and updates, as adversarial nets and reinforcement learning
/// need.
struct OwnStep {
  std::function<StepOutput(const Batch&)> run;  ///< trains on one batch, updates included
  /// The optimisers that checkpoints hold; callbacks see the first one as Training::optimizer.
  std::vector<nn::Optimizer*> optimizers{};
  /// The forward pass for validation, without updates. Empty: validation is not possible.
  Forward evaluate{};
};

/// The choice of running steps as compiled programs, with the same bits as eager ones. `automatic` compiles the steps
/// of a net whose loss is a name or a function without captures, from the second batch of the same shapes on, for at
/// most 64 combinations of shapes, unless the step reads values and so cannot be traced. `never` compiles nothing.
/// `always` compiles every step; numbers that a function captures become constants of the program, and TraceError is
/// thrown when they are found to have changed.
enum class Compile : std::uint8_t { automatic, never, always };

/// The options of `fit`. A net needs `loss` and `optimizer`, a Forward needs `optimizer`, an OwnStep neither.
struct FitOptions {
  Loss loss{};                             ///< loss of a net's output; a Forward computes its own
  nn::Optimizer* optimizer = nullptr;      ///< must outlive the call, as must the other objects pointed to
  std::int64_t epochs = 1;                 ///< number of all epochs, those before training was resumed included
  const DataLoader* validation = nullptr;  ///< data to evaluate after each epoch, in evaluation mode
  std::vector<AnyMetric> metrics{};        ///< metrics of training and validation, there with the prefix "val_"
  std::vector<AnyCallback> callbacks{};
  std::int64_t accumulate = 1;       ///< batches per update; gradients are means over all of their examples
  double clip_norm = 0;              ///< largest norm of all gradients together (nn::clip_grad_norm); 0: no limit
  double clip_value = 0;             ///< largest absolute value of a gradient's elements; 0: no limit
  nn::Schedule* schedule = nullptr;  ///< schedule to advance after each update, or epoch with schedule_by_epoch
  bool schedule_by_epoch = false;    ///< whether the schedule advances after each epoch instead
  Compile compile = Compile::automatic;
  /// File in which training is saved, with everything needed to resume within an epoch. If it exists, training resumes
  /// from it. It must be of the same training except for the number of epochs: the same net, loss, optimiser and its
  /// options, learning rate, schedule, data, batches, seed, clipping and callbacks with settings. Empty: no file.
  std::filesystem::path checkpoint{};
  std::int64_t checkpoint_every = 0;  ///< updates between saves, in addition to each epoch's end; 0: only at its end
  /// Names for things that a checkpoint cannot compare, such as your own functions, {{"loss", "focal, gamma 2"}}, or
  /// the version of a forward pass. A difference is refused like any other.
  Fingerprint identity{};
  /// Entries that may differ from the checkpoint, because that is intended: "learning_rate", "loss", "data". Training
  /// then continues with the new values.
  std::vector<std::string> changed{};
  /// Processes that train together: mpi::ranks(world) (docs/distributed.md). Every process makes this call with the
  /// same model, data and options. Null: this process alone.
  std::shared_ptr<const Parallel> parallel{};
};

/// Trains a net: forward, loss, backward and update for every batch of every epoch. The parameters are bit for bit
/// those of a hand-written loop, compiled or not. The model trains in training mode, validates in evaluation mode, and
/// has its previous modes at the end.
///
///   nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
///   const train::History history = train::fit(net, loader, {.loss = "cross_entropy",
///                                                          .optimizer = &adam,
///                                                          .epochs = 20,
///                                                          .validation = &validation,
///                                                          .metrics = {"accuracy"},
///                                                          .callbacks = {train::EarlyStopping({.patience = 3})}});
///
/// The net gets the first field of a batch and its lengths; the second field is the target. "loss" is the mean over an
/// epoch's examples, or over all steps of padded targets (Loss::weight).
///
/// Throws ValueError for options that do not fit, IoError for a checkpoint that does not fit, OtherTrainingError for a
/// checkpoint of another training, and what the data, the net, the loss and callbacks throw; the model is then as the
/// last update left it. Throws AnomalyError when a loss or a gradient is not finite, before any parameter changes; the
/// message names the step, the layer and the operation. (The updates of an OwnStep are made before its loss is known.)
///
/// With `parallel`, parameters, history and files have the same bits for every number of ranks. Every rank makes the
/// whole batch and computes its part. The loss must be a name or return a LossSum (a Forward: StepOutput::count),
/// because a mean of the parts' means would be wrong when parts count unequally; other losses throw ValueError.
/// Callbacks run on every rank; those of the library write and show things on the main one alone (Training::is_main).
/// Throws what `parallel` throws, mpi::RankError when a rank is lost, and ValueError when ranks have different options,
/// data or parameters.
History fit(const nn::Layer& net, const DataLoader& data, const FitOptions& options);
/// Trains any model whose forward pass returns loss and prediction.
///
///   fit(model, [&](const train::Batch& b) { return train::StepOutput{model.loss(b.field(0), b.field(1))}; }, ...);
History fit(const nn::Module& model, const Forward& forward, const DataLoader& data, const FitOptions& options);
/// Trains a model with a step of the user's, which makes its own updates. Throws ValueError when `optimizer`, `loss`,
/// `accumulate`, clipping or `parallel` are given.
History fit(const nn::Module& model, const OwnStep& step, const DataLoader& data, const FitOptions& options);

/// The options of `evaluate`: which values it computes. A net needs `loss`, a Forward computes its own.
struct EvaluateOptions {
  Loss loss{};
  std::vector<AnyMetric> metrics{};
  std::shared_ptr<const Parallel> parallel{};  ///< processes that evaluate together; each gets all values
};
/// Returns "loss" and metrics over all batches of a loader, in evaluation mode, without a tape. Throws ValueError
/// without a loss or batches, and what net and data throw.
Logs evaluate(const nn::Layer& net, const DataLoader& data, const EvaluateOptions& options);
/// Evaluates any model whose forward pass returns loss and prediction. Throws as the other form.
Logs evaluate(const nn::Module& model, const Forward& forward, const DataLoader& data, const EvaluateOptions& options);

/// Returns the output of a net for all examples in their order, [N, ...], in evaluation mode. Sequences of different
/// lengths are padded with zeros to the longest. Throws ValueError for an empty set.
Tensor predict(const nn::Layer& net, const Dataset& data, std::int64_t batch_size = 256);

}  // namespace ferrite::train
