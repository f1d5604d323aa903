#pragma once
/// Training without plumbing: epochs over a data set, validation, metrics, callbacks, checkpoints.
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

/// A metric in `fit`'s list: a name, or one of metrics.h.
class AnyMetric {
 public:
  AnyMetric(const char* name) : AnyMetric(metric(name)) {}
  AnyMetric(const std::string& name) : AnyMetric(metric(name)) {}
  AnyMetric(std::unique_ptr<Metric> metric) : metric_(std::move(metric)) {}
  Metric* operator->() const { return metric_.get(); }

 private:
  std::shared_ptr<Metric> metric_;
};

/// A step that does all itself, several backward passes and updates included: adversarial nets, reinforcement learning.
struct OwnStep {
  std::function<StepOutput(const Batch&)> run;
  /// For checkpoints, and callbacks: the first one is Training::optimizer.
  std::vector<nn::Optimizer*> optimizers{};
  /// For validation: without updates. Not given: there can be none.
  Forward evaluate{};
};

/// Whether steps run as compiled programs, with the bits of eager ones. `automatic`: those of a net whose loss is a
/// name or a function without captures, from the second batch of the same shapes on, for at most 64 combinations of
/// shapes, and not where the step cannot be traced because it reads values. `always`: whatever is given; numbers that a
/// function captures become constants of the program, and TraceError is thrown where they are found to have changed.
enum class Compile : std::uint8_t { automatic, never, always };

struct FitOptions {
  Loss loss{};                         ///< of a net's output; a Forward has its own
  nn::Optimizer* optimizer = nullptr;  ///< must outlive the call, as what else is pointed to
  std::int64_t epochs = 1;
  const DataLoader* validation = nullptr;  ///< looked at after each epoch, in evaluation mode
  std::vector<AnyMetric> metrics{};        ///< of both; validation has "val_" before their names
  std::vector<AnyCallback> callbacks{};
  std::int64_t accumulate = 1;       ///< batches for one update: gradients are the means over all that they hold
  double clip_norm = 0;              ///< largest norm of all gradients together (nn::clip_grad_norm); 0: any
  double clip_value = 0;             ///< largest absolute value of a gradient; 0: any
  nn::Schedule* schedule = nullptr;  ///< advanced after each update, or
  bool schedule_by_epoch = false;    ///< after each epoch
  Compile compile = Compile::automatic;
  /// A file that training is saved in, with all that it needs to go on within an epoch; where it exists already,
  /// training begins where it was saved. It must be the same training but for the number of epochs: net, loss,
  /// optimiser and its options, learning rate, schedule, data, batches, seed, clipping, callbacks that act. Empty:
  /// none.
  std::filesystem::path checkpoint{};
  std::int64_t checkpoint_every = 0;  ///< updates; 0: after each epoch
  /// Names for what cannot be compared with what a checkpoint is of: functions of yours, {{"loss", "focal, gamma 2"}},
  /// a version of a forward pass. A difference is refused as any other.
  Fingerprint identity{};
  /// What may differ from what the checkpoint is of, because that is intended: "learning_rate", "loss", "data".
  /// Training then goes on with the new one.
  std::vector<std::string> changed{};
  /// Trains on several processes: mpi::ranks(world) (docs/distributed.md). Every process makes this call with the same
  /// model, data and options. Null: this process alone.
  std::shared_ptr<const Parallel> parallel{};
};

/// Trains a net: forward, loss, backward, update, for every batch of every epoch. The parameters have the bits of a
/// loop written by hand, compiled or not. Modes: the model trains in training mode, validates in evaluation mode, and
/// has the mode of before in the end.
///
///   nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
///   const train::History history = train::fit(net, loader, {.loss = "cross_entropy",
///                                                          .optimizer = &adam,
///                                                          .epochs = 20,
///                                                          .validation = &validation,
///                                                          .metrics = {"accuracy"},
///                                                          .callbacks = {train::EarlyStopping({.patience = 3})}});
///
/// A net is given the first field of a batch and its lengths, and the second field is the target. "loss" is the mean
/// over an epoch's examples, of padded targets over all of their steps (Loss::weight). Throws ValueError for options
/// that do not fit; AnomalyError, before any parameter changes, where a loss or a gradient is not finite: it names the
/// step, the layer and the operation; IoError for a checkpoint that does not fit, OtherTrainingError for one of another
/// training; and what the data, the net, the loss
/// and callbacks throw. The model then is as the last update left it.
///
/// With `parallel`, parameters, history and files have the same bits for every number of ranks. Every rank makes each
/// batch whole and computes its part; the loss must be a name or give a LossSum (a Forward: StepOutput::count), because
/// the mean of means of parts would be another number where parts count unequally: others are refused by a ValueError.
/// Callbacks run on every rank; those of the library write and show things on the main one alone
/// (Training::is_main). Throws what `parallel` throws, mpi::RankError where a rank is lost; ValueError where ranks have
/// different options, data or parameters.
History fit(const nn::Layer& net, const DataLoader& data, const FitOptions& options);
/// The same of any model, whose forward pass gives loss and prediction.
///
///   fit(model, [&](const train::Batch& b) { return train::StepOutput{model.loss(b.field(0), b.field(1))}; }, ...);
History fit(const nn::Module& model, const Forward& forward, const DataLoader& data, const FitOptions& options);
/// The same with a step of the user's, which makes its own updates; `optimizer`, `accumulate` and clipping are not for
/// it.
History fit(const nn::Module& model, const OwnStep& step, const DataLoader& data, const FitOptions& options);

struct EvaluateOptions {
  Loss loss{};
  std::vector<AnyMetric> metrics{};
  std::shared_ptr<const Parallel> parallel{};  ///< as in FitOptions: every process then has the values of all
};
/// "loss" and metrics over all batches of a loader, in evaluation mode, without a tape. Throws what net and data throw.
Logs evaluate(const nn::Layer& net, const DataLoader& data, const EvaluateOptions& options);
Logs evaluate(const nn::Module& model, const Forward& forward, const DataLoader& data, const EvaluateOptions& options);

/// What a net gives for all examples in their order, [N, ...], in evaluation mode; sequences of different lengths are
/// padded with zeros to the longest.
Tensor predict(const nn::Layer& net, const Dataset& data, std::int64_t batch_size = 256);

}  // namespace ferrite::train
