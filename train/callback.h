#pragma once
/// Callbacks: code that `fit` calls at the beginning and end of training, epochs, batches and validation.
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/train/data_loader.h"

namespace ferrite::train {

/// The values (loss and metrics) of one epoch by name, in the order "loss", "accuracy", "val_loss", "val_accuracy".
class Logs {
 public:
  /// Returns the value of a name, NaN for an unknown one.
  double operator[](std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Sets a value; a new name is added at the end.
  void set(std::string_view name, double value);
  void clear() { values_.clear(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_;
};

/// The values of every epoch by name, as `fit` returns them. When training resumed, those of the checkpoint come first.
class History {
 public:
  /// Returns a value of every epoch, NaN where an epoch did not have it. Throws ValueError for an unknown name.
  const std::vector<double>& operator[](std::string_view name) const;
  /// Returns the names of all values, in the order in which they first appeared.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the number of epochs whose values are held.
  std::int64_t epochs() const { return epochs_; }
  /// Returns the values of an epoch, counted from 0. Throws ShapeError for an epoch that does not exist.
  Logs at(std::int64_t epoch) const;
  /// Adds the values of the next epoch.
  void add(const Logs& logs);
  /// Sets a value of the last epoch. Throws ShapeError before the first.
  void set(std::string_view name, double value);
  /// Returns the number of finished epochs in the checkpoint from which this training resumed; 0 if it did not.
  std::int64_t resumed() const { return resumed_; }
  void set_resumed(std::int64_t epochs) { resumed_ = epochs; }
  /// Returns why training ended before its last epoch; empty when it did not.
  const std::string& stopped() const { return stopped_; }
  void set_stopped(std::string reason) { stopped_ = std::move(reason); }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> values_;  ///< values of every epoch, for each name
  std::int64_t epochs_ = 0, resumed_ = 0;
  std::string stopped_;
};

/// The running training, as callbacks see it.
class Training {
 public:
  virtual ~Training() = default;

  virtual const nn::Module& model() const = 0;
  /// Returns the optimiser, the first one of an OwnStep. Throws ValueError when an OwnStep names none.
  virtual nn::Optimizer& optimizer() const = 0;
  virtual const DataLoader& data() const = 0;
  /// Returns the running epoch, counted from 0.
  virtual std::int64_t epoch() const = 0;
  /// Returns the number of epochs that the training is to have, FitOptions::epochs.
  virtual std::int64_t epochs() const = 0;
  /// Returns the number of finished batches of this epoch.
  virtual std::int64_t batch() const = 0;
  /// Returns the number of updates so far, in all epochs.
  virtual std::int64_t step() const = 0;
  /// Returns the values of this epoch's batches so far, at its end also those of the validation.
  virtual const Logs& logs() const = 0;
  /// Returns the values of the epochs that have ended; in `on_epoch_end` they include the running one.
  virtual const History& history() const = 0;
  /// Returns the parameters and buffers, in the order of the model's lists, with which the values "val_..." of this
  /// epoch were computed: the averages where a callback (Ema) exchanges the weights for them. Without a validation
  /// these are the current ones.
  virtual std::vector<Tensor> validated() const = 0;
  /// Returns whether this process writes files and shows progress: false on every rank except the first
  /// (FitOptions::parallel).
  virtual bool is_main() const { return true; }
  /// Adds a value to this epoch's logs, and in `on_epoch_end` to the history; later callbacks see it.
  virtual void log(std::string_view name, double value) = 0;
  /// Ends the training after this batch or epoch; after a batch other than the last one, without a validation. The
  /// reason becomes History::stopped.
  virtual void stop(std::string reason) = 0;
};

/// An observer of a training. `fit` calls callbacks in the order of its list; an exception from one ends the training.
/// A callback returns the numbers that it needs when training resumes (`state`).
///
/// If several ranks train (FitOptions::parallel), every rank calls its own copy with the same values. A callback that
/// writes asks Training::is_main first. One that stops the training on any rank stops it on all.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Returns the callback's name in checkpoints; of two with the same name the second is saved as "<name>#2".
  virtual std::string name() const = 0;

  virtual void on_train_begin(Training&) {}
  virtual void on_epoch_begin(Training&) {}
  /// Called after each batch, its update included.
  virtual void on_batch_end(Training&) {}
  virtual void on_validation_begin(Training&) {}
  /// Called after the validation, even when it threw, so that what `on_validation_begin` changed can be restored.
  virtual void on_validation_end(Training&) {}
  /// Called after each epoch and its validation, whose values the logs then hold.
  virtual void on_epoch_end(Training&) {}
  /// Called once after the last epoch, but not when training ended by an exception.
  virtual void on_train_end(Training&) {}
  /// Called when a loss or gradient is not finite; `what` names operation, layer and step. Returns whether training
  /// ends without an exception.
  virtual bool on_not_finite(Training&, const std::string& what) { return (void)what, false; }

  /// Returns the options as text, "patience=3, monitor=val_loss", of a callback that changes what training computes,
  /// such as an average, a stop or a rate; empty for one that only observes. A checkpoint resumes only with the same
  /// settings, unless FitOptions::changed allows others.
  virtual std::string settings() const { return {}; }
  /// Returns whether the callback sets learning rates relative to those at the beginning of training. When training
  /// resumes with a rate that was changed on purpose, such a callback starts over instead of restoring its state.
  virtual bool sets_rate() const { return false; }
  /// Returns the numbers that the callback needs when training resumes; checkpoints hold them.
  virtual std::vector<double> state() const { return {}; }
  /// Restores what `state` returned. Throws ValueError for numbers that `state` cannot have returned.
  virtual void restore(const std::vector<double>& state);
  /// Returns the variables that checkpoints hold in addition to the model's; they must exist after `on_train_begin`.
  virtual std::vector<nn::Named<State>> variables() const { return {}; }
};

/// A callback in `fit`'s list: holds a copy of a callback, shares one, or points to one that outlives training.
class AnyCallback {
 public:
  template <std::derived_from<Callback> C>
  AnyCallback(C callback) : callback_(std::make_shared<C>(std::move(callback))) {}
  AnyCallback(std::shared_ptr<Callback> callback) : callback_(std::move(callback)) {}
  AnyCallback(Callback* callback) : callback_(callback, [](Callback*) {}) {}

  Callback* operator->() const { return callback_.get(); }
  Callback& operator*() const { return *callback_; }

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace ferrite::train
