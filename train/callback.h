#pragma once
/// Callbacks: what happens beside training, at the beginnings and ends of epochs and batches.
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

/// Values of an epoch under their names: "loss", "accuracy", "val_loss", "val_accuracy", in that order.
class Logs {
 public:
  /// NaN for a name that there is not.
  double operator[](std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Sets a value; a new name goes behind the others.
  void set(std::string_view name, double value);
  void clear() { values_.clear(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_;
};

/// The values of all epochs: what `fit` gives.
class History {
 public:
  /// A value by epochs, NaN where an epoch did not have it. Throws ValueError for a name that there is not.
  const std::vector<double>& operator[](std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }
  std::int64_t epochs() const { return epochs_; }
  /// The values of an epoch, which count from 0. Throws ShapeError for one that there is not.
  Logs at(std::int64_t epoch) const;
  void add(const Logs& logs);
  /// Sets a value of the last epoch. Throws ShapeError before the first.
  void set(std::string_view name, double value);
  /// How many of the epochs a checkpoint held already when training began.
  std::int64_t resumed() const { return resumed_; }
  void set_resumed(std::int64_t epochs) { resumed_ = epochs; }
  /// Why training ended before its last epoch; empty where it did not.
  const std::string& stopped() const { return stopped_; }
  void set_stopped(std::string reason) { stopped_ = std::move(reason); }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> values_;  ///< by name
  std::int64_t epochs_ = 0, resumed_ = 0;
  std::string stopped_;
};

/// A training that runs, as callbacks see it.
class Training {
 public:
  virtual ~Training() = default;

  virtual const nn::Module& model() const = 0;
  /// Throws ValueError where the training has none: a step of the user's that does not say which ones it has.
  virtual nn::Optimizer& optimizer() const = 0;
  virtual const DataLoader& data() const = 0;
  /// The running epoch, which counts from 0, and all epochs.
  virtual std::int64_t epoch() const = 0;
  virtual std::int64_t epochs() const = 0;
  /// Finished batches of this epoch, of `data().batches()`, and finished updates in all.
  virtual std::int64_t batch() const = 0;
  virtual std::int64_t step() const = 0;
  /// The values so far: of the batches of this epoch, at its end those of the validation as well.
  virtual const Logs& logs() const = 0;
  /// The epochs that have ended; in `on_epoch_end` the running one stands there already.
  virtual const History& history() const = 0;
  /// Parameters and buffers, in the order of the model's lists, with which the values "val_..." of this epoch were
  /// computed: the averages where a callback puts them in place of the weights (Ema). Without a validation, those of
  /// now.
  virtual std::vector<Tensor> validated() const = 0;
  /// Whether this process writes files and shows progress: false on all ranks but the first (FitOptions::parallel).
  virtual bool is_main() const { return true; }
  /// Another value of this epoch, which the history keeps: callbacks behind this one see it.
  virtual void log(std::string_view name, double value) = 0;
  /// Ends the training behind this batch or epoch.
  virtual void stop(std::string reason) = 0;
};

/// Something that is told how a training goes on. Its functions are called in the order of the list that `fit` is
/// given, and may throw, which ends the training. What it must not forget when training is resumed it gives as numbers.
///
/// On several ranks (FitOptions::parallel) each has the callback and calls it with the same values. A callback that
/// writes asks Training::is_main; one that stops the training stops it on all ranks, whichever it stops it on.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Its name in checkpoints: of two with one name the second is called "<name>#2".
  virtual std::string name() const = 0;

  virtual void on_train_begin(Training&) {}
  virtual void on_epoch_begin(Training&) {}
  virtual void on_batch_end(Training&) {}
  virtual void on_validation_begin(Training&) {}
  /// Also where the validation threw, so that what its beginning changed can be put back.
  virtual void on_validation_end(Training&) {}
  virtual void on_epoch_end(Training&) {}
  /// Once behind the last epoch; not where training ended by an exception.
  virtual void on_train_end(Training&) {}
  /// Something was not finite; `what` names operation, layer and step. Whether training ends without an exception.
  virtual bool on_not_finite(Training&, const std::string& what) { return (void)what, false; }

  /// Its options in words, "patience=3, monitor=val_loss", if it changes what training computes: an averaging, a stop,
  /// a rate. Empty for one that only looks on. A checkpoint continues with the same ones alone (FitOptions::changed).
  virtual std::string settings() const { return {}; }
  /// Whether it sets learning rates from those that it found when training began: it then begins anew, and does not
  /// restore its numbers, where the learning rate was changed on purpose.
  virtual bool sets_rate() const { return false; }
  virtual std::vector<double> state() const { return {}; }
  /// Throws ValueError for numbers that `state` never gave.
  virtual void restore(const std::vector<double>& state);
  /// Variables that checkpoints hold beside the model's; they must be there once `on_train_begin` has ended.
  virtual std::vector<nn::Named<State>> variables() const { return {}; }
};

/// A callback in `fit`'s list: made of a callback, which it then holds, or of a pointer to one that outlives training.
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
